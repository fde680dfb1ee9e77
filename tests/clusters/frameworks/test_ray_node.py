"""What runs around `ray` in a container, as its own process, with other programs in Ray's place."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from grid.clusters.frameworks import ray_node
from grid.clusters.frameworks.ray import Ray
from tests.clusters.cluster_specs import ray_spec
from tests.support.ports import free_ports

PROGRAM = Ray().head(ray_spec()).command[3]
NODE = "ab" * 28
Run = Callable[..., "subprocess.CompletedProcess[str]"]
_NETWORK = f"127.{os.getpid() // 250 % 250 + 2}.{os.getpid() % 250 + 2}"


@pytest.fixture
def address() -> Iterator[str]:
    yield f"{_NETWORK}.240"
    ray_node.temp_directory(f"{_NETWORK}.240").unlink(missing_ok=True)


@pytest.fixture
def run(address: str) -> Run:
    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-I", "-c", PROGRAM, *arguments],
            env={**os.environ, "POD_IP": address},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


@contextmanager
def raylet(address: str, place: Path, status: int = 200) -> Iterator[None]:
    """A started node: its agent answers, and its port is where Ray writes it."""

    class Agent(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/api/local_raylet_healthz" else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer((address, 0), Agent)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    started(address, place, server.server_port)
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def started(address: str, place: Path, port: int) -> None:
    session = place / "session_2026-11-21"
    session.mkdir()
    (session / f"{ray_node.AGENT_PORT_FILE}{NODE}").write_text(str(port))
    ray_node.temp_directory(address).symlink_to(place)


def test_start_becomes_program_in_a_short_empty_directory(run: Run, address: str, tmp_path: Path) -> None:
    left_behind = tmp_path / "ray" / "session_2025"
    left_behind.mkdir(parents=True)
    tell = "import os, sys; print(os.environ['TMPDIR'], *sys.argv[1:])"
    done = run("start", str(tmp_path), f":{ray_node.free_ports(1)[0]}", sys.executable, "-c", tell, "--head")
    assert done.returncode == 0, done.stderr
    directory, head, temp, *ports = done.stdout.split()
    assert (directory, head, temp) == (f"/tmp/ray-{address}", "--head", f"--temp-dir=/tmp/ray-{address}")
    assert ray_node.temp_directory(address).readlink() == tmp_path / "ray"
    assert not left_behind.exists()
    names, numbers = zip(*(port.split("=") for port in ports), strict=True)
    assert names == (
        "--dashboard-agent-listen-port",
        "--dashboard-agent-grpc-port",
        "--runtime-env-agent-port",
        "--metrics-export-port",
    )
    assert len({int(number) for number in numbers}) == 4


def test_worker_waits_for_head_and_ends_when_told(address: str, tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-c", PROGRAM, "start", str(tmp_path), f"{address}:9", "true"]
    with subprocess.Popen(command, env={**os.environ, "POD_IP": address}, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"Waiting for the cluster's head at {address}.\n"
        process.terminate()
        assert process.wait(30) == 143


def test_head_waits_until_its_predecessor_left_the_port(address: str, tmp_path: Path) -> None:
    with socket.create_server(("", free_ports()), reuse_port=True) as before:
        port = before.getsockname()[1]
        command = [sys.executable, "-I", "-c", PROGRAM, "start", str(tmp_path), f":{port}", "echo", "started"]
        process = subprocess.Popen(
            command, env={**os.environ, "POD_IP": address}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert process.stdout is not None
        done = process.stdout.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
    with process:
        assert process.stdout.readline().startswith("started ")
    assert (process.returncode, done) == (
        0,
        f"Waiting for port {port}, which the head before this one may still have.\n",
    )


def test_node_is_ready_when_raylet_and_asked_ports_listen(run: Run, address: str, tmp_path: Path) -> None:
    early = run("probe")
    assert (early.returncode, early.stderr) == (1, "Ray has not started yet.\n")
    with raylet(address, tmp_path):
        assert run("probe").returncode == 0
        assert run("probe", "port:9").returncode == 1


def test_a_node_whose_raylet_is_dead_is_not_ready(run: Run, address: str, tmp_path: Path) -> None:
    with raylet(address, tmp_path, status=503):
        done = run("probe")
    assert done.returncode == 1
    assert "/api/local_raylet_healthz does not say that all is well" in done.stderr


@pytest.mark.parametrize(
    ("program", "seconds", "code"),
    [("", "30", 0), ("raise SystemExit(7)", "30", 7), ("import time; time.sleep(60)", "0.5", 1)],
)
def test_unfinished_drain_fails(run: Run, address: str, tmp_path: Path, program: str, seconds: str, code: int) -> None:
    with raylet(address, tmp_path):
        assert run("drain", program, "10.0.0.7:6379", seconds).returncode == code


def test_a_node_that_has_ended_or_never_started_is_drained(run: Run, address: str, tmp_path: Path) -> None:
    drain = ("drain", "import sys; print(*sys.argv[1:]); raise SystemExit(7)", "10.0.0.7:6379", "5")
    assert run(*drain).returncode == 0
    started(address, tmp_path, port=9)
    ended = run(*drain)
    assert (ended.returncode, ended.stdout.split()) == (0, ["10.0.0.7:6379", "5", NODE]), "its head, time and node"
