"""Running a program: what comes back, and that nothing of it stays behind, however the call ends."""

import asyncio
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import uvloop

from grid.sandbox import programs
from tests.support.waiting import eventually

ENVIRONMENT = {"PATH": os.environ["PATH"]}


async def shell(script: str, *, longest: int = 100, timeout: float | None = None) -> programs.Finished:
    return await programs.run(("sh", "-c", script), env=ENVIRONMENT, longest=longest, timeout=timeout)


async def test_program_returns_its_code_and_beginning_of_output() -> None:
    assert await shell("echo out; echo err >&2; exit 3") == programs.Finished(3, b"out\nerr\n")
    assert await shell("kill -9 $$") == programs.Finished(-signal.SIGKILL, b"")
    assert await shell("head -c 1000000 /dev/zero", longest=5) == programs.Finished(0, bytes(5))


async def test_cancelled_program_is_killed_with_its_children(tmp_path: Path) -> None:
    running, child = await begun(tmp_path, "sleep 600 & say $!; wait")
    running.cancel()
    await asyncio.wait([running])
    await eventually(lambda: not is_running(child), "the child has ended")


async def test_program_cancelled_while_starting_is_killed_too(tmp_path: Path) -> None:
    place = tmp_path / "said"
    running = asyncio.create_task(shell(f"sleep 600 & echo $! > {place}; wait"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    while not (place.exists() and place.read_text().endswith("\n")):
        time.sleep(0.01)  # noqa: ASYNC251  the loop is busy and has not noticed yet that the program runs
    running.cancel()
    await asyncio.wait([running])
    await eventually(lambda: not is_running(int(place.read_text())), "the child has ended")


async def test_grandchild_holding_the_pipe_does_not_block_caller(tmp_path: Path) -> None:
    """It has left the group, so it is not killed; with asyncio's own Process the call never came back."""
    running, grandchild = await begun(tmp_path, f"setsid sh -c 'echo $$ > {tmp_path}/said; exec sleep 600' & wait")
    try:
        running.cancel()
        assert await asyncio.wait([running], timeout=30) == ({running}, set())
        assert is_running(grandchild)
    finally:
        os.kill(grandchild, signal.SIGKILL)


async def test_a_caller_that_is_cancelled_twice_leaves_nothing(tmp_path: Path) -> None:
    """As by a loop that closes while the first cancellation is being followed."""
    before = psutil.Process().num_fds()
    running, number = await begun(tmp_path, "say $$; sleep 600")
    running.cancel()
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.wait([running])
    await eventually(lambda: not psutil.pid_exists(number), "it has ended and was waited for")
    # The thread that waits for it tells the loop later, which then closes the pipe.
    await eventually(lambda: psutil.Process().num_fds() <= before, "its pipe is closed")


@pytest.fixture(scope="module")
def libuv() -> None:
    """Its first loop opens a pipe that the process then keeps."""
    uvloop.new_event_loop().close()


def test_the_loop_of_the_product_does_it_as_well(libuv: None) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(shell("echo out; exit 3")) == programs.Finished(3, b"out\n")
        with pytest.raises(TimeoutError):
            runner.run(shell("sleep 600", timeout=0.2))


async def begun(folder: Path, script: str) -> tuple[asyncio.Task[programs.Finished], int]:
    """The call, once the script has said a number."""
    place = folder / "said"
    running = asyncio.create_task(shell(f"say() {{ echo $1 > {place}; }}; {script}"))
    await eventually(lambda: place.exists() and place.read_text().endswith("\n"), "it runs")
    return running, int(place.read_text())


def is_running(number: int) -> bool:
    """Not so once it is dead, whoever has to wait for it."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(number).status() != psutil.STATUS_ZOMBIE
    return False
