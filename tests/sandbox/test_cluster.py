"""One data directory, one sandbox; and what stands in its way is said in a sentence."""

import asyncio
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from grid.sandbox.client import Client
from grid.sandbox.cluster import CannotStart, Component, DataLock, EmbeddedClusterSettings, run_cluster, run_parts

ROOT = Path(__file__).parents[2]
_HOLDER = """
import sys, time
from pathlib import Path
from grid.sandbox.cluster import DataLock
lock = DataLock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


def settings(directory: Path, **changes: object) -> EmbeddedClusterSettings:
    values = {
        "data": directory / "data",
        "port": 0,
        "kubeconfig": directory / "kubeconfig",
        "images": directory / "images",
    }
    return EmbeddedClusterSettings(**{**values, **changes})  # type: ignore[arg-type]


def test_data_directory_is_locked_until_its_process_ends(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", _HOLDER, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(CannotStart, match=f"Another sandbox is already running on {tmp_path}; stop it"):
        DataLock(tmp_path)
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    DataLock(tmp_path).release()


async def test_a_taken_port_is_told_in_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(
            CannotStart, match=rf"cannot listen on port {port} \(Address already in use\); choose another"
        ):
            await run_cluster(settings(tmp_path, port=port), asyncio.Event(), lambda url: None)
    DataLock(tmp_path / "data").release()


@pytest.mark.parametrize("field", ["data", "kubeconfig"])
async def test_unwritable_path_is_reported_in_a_sentence(tmp_path: Path, field: str) -> None:
    (tmp_path / "file").write_text("")
    blocked = settings(tmp_path, **{field: tmp_path / "file" / "inside"})
    with pytest.raises(CannotStart, match=f"cannot write .*choose another .* with --{field}"):
        await run_cluster(blocked, asyncio.Event(), lambda url: None)


async def test_failed_part_is_restarted_and_others_continue(caplog: pytest.LogCaptureFixture) -> None:
    starts, steady_starts = 0, 0
    again, stop = asyncio.Event(), asyncio.Event()

    async def fragile(client: object) -> None:
        nonlocal starts
        starts += 1
        if starts == 3:
            again.set()
            await asyncio.sleep(60)
        raise RuntimeError("boom")

    async def steady(client: object) -> None:
        nonlocal steady_starts
        steady_starts += 1
        await asyncio.sleep(60)

    parts = (Component("fragile part", "admin", fragile), Component("steady part", "admin", steady))
    client_of = partial(Client.with_token, "http://127.0.0.1:1")
    running = asyncio.create_task(run_parts(parts, client_of, stop, restart_seconds=0.01))
    async with asyncio.timeout(10):
        await again.wait()
        stop.set()
        await running
    assert (starts, steady_starts) == (3, 1)
    assert "the fragile part failed" in caplog.text
