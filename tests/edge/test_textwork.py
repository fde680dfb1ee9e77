"""Long texts in worker processes: bounds of time and memory, turns, and what is left behind."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import psutil
import pytest

from grid.edge import textwork
from grid.edge.textwork import INLINE_BYTES, TextTooLong, TextWorkBusy, TextWorkers
from grid.observability import logcontext
from tests.support.waiting import wait_until

LONG = INLINE_BYTES + 1
SECONDS = 60.0  # far more than a worker needs to start beside other tests


def length(text: str) -> tuple[int, int]:
    return len(text), os.getpid()


def hang(began: str) -> None:
    """Wait for ever, deaf to everything that can be ignored."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    Path(began).write_text(str(os.getpid()))
    while True:
        time.sleep(60)


def compute(began: str) -> None:
    Path(began).write_text(str(os.getpid()))
    while True:
        pass


def is_still_there(began: str) -> bool:
    """Return whether the work that hangs goes on, or has not even begun."""
    path = Path(began)
    return not path.exists() or psutil.pid_exists(int(path.read_text() or os.getpid()))


def fill_memory(_text: str) -> int:
    return len(bytearray(2 * textwork.MEMORY_BYTES))


def read_with(act: Callable[[TextWorkers], Coroutine[Any, Any, None]], **bounds: Any) -> None:
    """Run the coroutine in a loop of its own, with whose end the workers end."""

    async def opened() -> None:
        workers = TextWorkers(**({"seconds": SECONDS, "slow_seconds": SECONDS, "wait_seconds": SECONDS} | bounds))
        workers.open()
        await act(workers)

    asyncio.run(opened())


_OTHERS: set[int] = set()


@pytest.fixture(autouse=True)
def others() -> None:
    """Tell workers from what other tests of this process share and have started, such as an embedded cluster."""
    _OTHERS.clear()
    _OTHERS.update(process.pid for process in psutil.Process().children())


def children() -> list[psutil.Process]:
    """Return the workers that are there now."""
    return [process for process in psutil.Process().children() if process.pid not in _OTHERS]


def test_long_texts_are_read_by_one_warm_process() -> None:
    async def act(workers: TextWorkers) -> None:
        first, second = [await workers.run(length, "a" * LONG, size=LONG) for _ in range(2)]
        assert first == second and first[0] == LONG
        assert first[1] in [child.pid for child in children()]

    read_with(act)
    assert not children()


@pytest.mark.parametrize(("work", "bounds"), [(hang, {"slow_seconds": 1.0}), (compute, {"seconds": 0.5})])
def test_hanging_worker_is_killed_and_replaced(
    tmp_path: Path, work: Callable[[str], None], bounds: dict[str, float]
) -> None:
    async def act(workers: TextWorkers) -> None:
        with pytest.raises(TextTooLong, match="takes too long"):
            await workers.run(work, str(tmp_path / "pid"), size=LONG)
        assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))
        assert (await workers.run(length, "abc", size=LONG))[0] == 3

    read_with(act, **bounds)


def test_worker_without_memory_is_ended_and_replaced() -> None:
    async def act(workers: TextWorkers) -> None:
        with pytest.raises(TextTooLong):
            await workers.run(fill_memory, "", size=LONG)
        assert not children()
        assert (await workers.run(length, "abc", size=LONG))[0] == 3

    read_with(act)


def test_worker_ends_itself_when_its_parent_is_gone(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    parent = subprocess.Popen([sys.executable, "-c", _PARENT, str(pid_file)], cwd=Path(__file__).parents[2])
    try:
        wait_until(lambda: pid_file.exists() and pid_file.read_text(), SECONDS, "the worker to begin")
    finally:
        parent.kill()
        parent.wait()
    worker = int(pid_file.read_text())
    wait_until(lambda: not psutil.pid_exists(worker), SECONDS, "the worker to end")


_PARENT = """
import asyncio, sys
from grid.edge.textwork import TextWorkers
from tests.edge.test_textwork import hang

async def main():
    workers = TextWorkers(slow_seconds=2.0)
    workers.open()
    await workers.run(hang, sys.argv[1], size=10**6)

asyncio.run(main())
"""


async def of_person(name: str, workers: TextWorkers, work: Callable[[str], Any], text: str) -> Any:
    with logcontext.of_request():
        logcontext.say_user(name)
        return await workers.run(work, text, size=LONG)


def test_person_holds_one_worker_at_most(tmp_path: Path) -> None:
    async def act(workers: TextWorkers) -> None:
        first = asyncio.create_task(of_person("ada", workers, hang, str(tmp_path / "pid")))
        second = asyncio.create_task(of_person("ada", workers, is_still_there, str(tmp_path / "pid")))
        assert (await of_person("grace", workers, length, "abc"))[0] == 3
        assert not await second
        with pytest.raises(TextTooLong):
            await first

    read_with(act, slow_seconds=1.0)


@pytest.mark.parametrize("bounds", [{"most_texts": 1}, {"most_of_a_person": 1}, {"wait_seconds": 0.01}])
def test_texts_that_cannot_be_read_soon_are_refused(tmp_path: Path, bounds: dict[str, Any]) -> None:
    async def act(workers: TextWorkers) -> None:
        held = asyncio.create_task(of_person("ada", workers, hang, str(tmp_path / "pid")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        with pytest.raises(TextWorkBusy, match="Try again"):
            await of_person("ada", workers, length, "abc")
        with pytest.raises(TextTooLong):
            await held
        assert (await of_person("ada", workers, length, "abc"))[0] == 3

    read_with(act, slow_seconds=1.0, **bounds)
