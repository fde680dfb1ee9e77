"""Another user of this machine beside a workspace with nginx in front: real JupyterLab, real nginx, all addresses that they listen on."""

import asyncio
import json
import os
import shutil
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import psutil
import pytest
from msgspec.structs import replace

from grid.executions.front import TOKEN_HEADER, AuthProxySpec, token
from grid.executions.spec import EnvironmentSpec, ExecutionSpec
from grid.sandbox.needs import SYSTEM_PATH
from tests.end_to_end.grid import IMAGES
from tests.sandbox.kubelet.support import World
from tests.sandbox.kubelet.test_planted_files import TOKEN, launch, workspace
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        shutil.which("nginx", path=f"{os.environ.get('PATH', os.defpath)}:{SYSTEM_PATH}") is None,
        reason="nginx is not installed (Debian: nginx-light)",
    ),
]
KEY, PORT, NGINX = "key-of-abc", 19080, "compute-grid/nginx:1"
FRONT = AuthProxySpec(image=NGINX, port=PORT, cores="10m", memory="32Mi", body_mebibytes=64)
NOBODY = 65534
# What a ZeroMQ peer says first (ZMTP 3.1), and where in its answer the other one names how it knows whom it talks to.
SIGNATURE, MECHANISM = b"\xff" + b"\0" * 8 + b"\x7f\x03\x01", slice(12, 32)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(
        tmp_path / "a-folder-whose-name-is-so-long-that-no-socket-below-it-could-be-bound" / "pods",
        images_directory=IMAGES,
    )
    try:
        yield world
    finally:
        await world.close()


async def start(world: World, spec: ExecutionSpec) -> str:
    for image in (NGINX, spec.environment.image):
        await world.images.pull(image)
    return await launch(world, spec, KEY)


def processes(world: World) -> list[psutil.Process]:
    """All of the pod, which are the children of its containers' shims."""
    shims = [
        process
        for process in psutil.process_iter(["cmdline"])
        if str(world.directory) in " ".join(process.info["cmdline"] or ())
    ]
    return list({process.pid: process for shim in shims for process in shim.children(recursive=True)}.values())


def listening(world: World) -> dict[tuple[str, int], str]:
    """The program that listens at each address."""
    programs = {}
    for process in processes(world):
        for connection in process.net_connections("inet"):
            if connection.status == psutil.CONN_LISTEN:
                programs[connection.laddr[0], connection.laddr[1]] = " ".join(process.cmdline())
    return programs


def opened() -> dict[str, str]:
    return {TOKEN_HEADER: token("abc", KEY, int(time.time()) + 60), "Authorization": f"token {TOKEN}"}


def mechanism_of(address: tuple[str, int]) -> bytes:
    with socket.create_connection(address, timeout=10) as connection:
        connection.sendall(SIGNATURE)
        received = b""
        while len(received) < MECHANISM.stop and (part := connection.recv(64)):
            received += part
    return received[MECHANISM].rstrip(b"\0")


def connects_as_nobody(path: str) -> bool:
    """Whether a program of another user reaches the socket; only root can be another."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            socket.socket(socket.AF_UNIX).connect(path)
        except PermissionError:
            os._exit(13)
        except BaseException:
            os._exit(1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 13), code
    return code == 0


async def test_program_answers_only_its_workspace_nginx(world: World) -> None:
    address = await start(world, replace(workspace(), front=FRONT))
    front = f"http://{address}:{PORT}"
    async with aiohttp.ClientSession() as http:
        async with http.post(f"{front}/api/kernels", headers=opened()) as answer:
            assert answer.status == 201, await answer.text()
            kernel = (await answer.json())["id"]
        async with http.ws_connect(f"{front}/api/kernels/{kernel}/channels", headers=opened()) as channels:
            header = {
                "msg_id": "1",
                "msg_type": "kernel_info_request",
                "username": "",
                "session": "1",
                "version": "5.4",
            }
            asked = {"header": header, "parent_header": {}, "metadata": {}, "content": {}, "channel": "shell"}
            await channels.send_json(asked)
            while (await channels.receive_json(timeout=30))["msg_type"] != "kernel_info_reply":
                pass

        programs = listening(world)
        assert (address, PORT) in programs
        (connection,) = world.directory.rglob("runtime/kernel-*.json")
        of_kernel = {value for key, value in json.loads(connection.read_text()).items() if key.endswith("_port")}
        assert {("127.0.0.1", port) for port in of_kernel} <= programs.keys()
        for (host, port), program in programs.items():
            if "ipykernel" in program:  # its own ports, and one where it takes what its child processes print
                assert (port not in of_kernel) or await asyncio.to_thread(mechanism_of, (host, port)) == b"CURVE"
                continue
            async with http.get(f"http://{host}:{port}/api", headers={"Authorization": f"token {TOKEN}"}) as answer:
                response = answer.status, await answer.text()
            assert response == (403, "Open this from the dashboard."), (host, port, program)

    sockets = {
        str(connection.laddr)
        for process in processes(world)
        for connection in process.net_connections("unix")
        if str(connection.laddr).endswith("web.sock")
    }
    (path,) = sockets
    folder = Path(path).parent
    assert len(path) < 108
    assert folder.stat().st_mode & 0o777 == 0o700
    assert folder.stat().st_uid == os.getuid()
    if os.getuid() == 0:
        assert not connects_as_nobody(path)

    await world.delete("workspace-abc", grace=1)
    await world.gone("workspace-abc")
    await eventually(lambda: not folder.exists(), "the socket goes with the pod")


async def test_program_knowing_only_ports_is_reached_at_pod_address(world: World) -> None:
    """On this cluster, where all pods share 127.0.0.1."""
    command = ("python3", "-m", "http.server", "--bind={host}", "{port}")
    environment = EnvironmentSpec(id="web", name="Web", image="compute-grid/test:1", command=command)
    address = await start(world, replace(workspace(), environment=environment, front=FRONT))
    assert set(listening(world)) == {(address, PORT), (address, 8888)}
    async with aiohttp.ClientSession() as http:
        async with http.get(f"http://{address}:{PORT}/", headers=opened()) as answer:
            assert answer.status == 200
        async with http.get(f"http://{address}:{PORT}/") as answer:
            assert answer.status == 403
    keys = list(world.directory.rglob("key.conf"))
    assert len(keys) == 2, "of the Secret, and nginx's copy"
    for key in keys:
        assert KEY in key.read_text()
        assert key.parent.stat().st_mode & 0o777 == 0o700
        assert not key.stat().st_mode & 0o007
