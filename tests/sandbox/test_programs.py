"""Running a program: what comes back, and that nothing of it stays behind, however the call ends."""

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest
import uvloop

from grid.sandbox import programs
from tests.sandbox.support import eventually

ENVIRONMENT = {"PATH": os.environ["PATH"]}


async def shell(script: str, *, longest: int = 100, timeout: float | None = None) -> programs.Finished:
    return await programs.run(("sh", "-c", script), env=ENVIRONMENT, longest=longest, timeout=timeout)


async def test_the_code_and_the_beginning_of_what_was_printed_come_back() -> None:
    assert await shell("echo out; echo err >&2; exit 3") == programs.Finished(3, b"out\nerr\n")
    assert await shell("kill -9 $$") == programs.Finished(-signal.SIGKILL, b"")
    assert await shell("head -c 1000000 /dev/zero", longest=5) == programs.Finished(0, bytes(5))


async def test_a_program_that_is_not_there_cannot_be_started() -> None:
    with pytest.raises(FileNotFoundError):
        await programs.run(("no-such-program",), env=ENVIRONMENT, longest=1)


async def test_what_takes_too_long_is_killed_with_its_children(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError):
        await shell(f"sleep 600 & echo $! > {tmp_path}/child; wait", timeout=0.5)
    child = int((tmp_path / "child").read_text())
    await eventually(lambda: not is_running(child), "the child has ended")


async def test_a_grandchild_that_keeps_the_pipe_open_does_not_keep_the_caller(tmp_path: Path) -> None:
    """It has left the group, so it is not killed; with asyncio's own Process the call never came back."""
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        await shell(f"setsid sh -c 'echo $$ > {tmp_path}/child; exec sleep 600' & sleep 600", timeout=1)
    child = int((tmp_path / "child").read_text())
    os.kill(child, signal.SIGKILL)
    assert time.monotonic() - started < 60


async def test_a_caller_that_is_cancelled_twice_leaves_nothing(tmp_path: Path) -> None:
    """As a loop does that closes while the first cancellation is being followed."""
    running = asyncio.create_task(
        shell(f"echo $$ > {tmp_path}/unfinished; mv {tmp_path}/unfinished {tmp_path}/number; sleep 600")
    )
    await eventually(lambda: (tmp_path / "number").exists(), "it runs")
    running.cancel()
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    number = int((tmp_path / "number").read_text())
    await eventually(lambda: not is_running(number), "it has ended and was waited for")


@pytest.fixture(scope="module")
def libuv() -> None:
    """Its first loop opens a pipe that the process then keeps."""
    uvloop.new_event_loop().close()


def test_the_loop_of_the_product_does_it_as_well(libuv: None) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(shell("echo out; exit 3")) == programs.Finished(3, b"out\n")
        with pytest.raises(TimeoutError):
            runner.run(shell("sleep 600", timeout=0.2))


def is_running(number: int) -> bool:
    """Also while it is dead and nobody has waited for it."""
    return Path(f"/proc/{number}").exists()
