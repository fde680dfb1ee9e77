"""Virtual time: an event loop whose clock jumps to the next timer as soon as nothing else can run.

An hour of back-off takes milliseconds and is exact. Only for tests that touch neither sockets nor threads, since those
do not know of the clock; everything that reads `loop.time()` or uses asyncio's own timers does.
"""

import asyncio
import functools
import random
import selectors
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, ParamSpec

from grid.database.periodic import PeriodicRunner, PeriodicTask
from grid.database.trouble import TroubleLog

P = ParamSpec("P")


class _Selector(selectors.DefaultSelector):
    """Never waits: the time that the loop would sleep passes at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("Deadlock: nothing is ready, no timer is set, and virtual time has no outside.")
        if not ready:
            self.now += max(0.0, timeout or 0.0)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now


def virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run an async test (or hypothesis property) on a virtual loop of its own; apply it closest to the function."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(test(*args, **kwargs))

    return run


def loop_time() -> float:
    return asyncio.get_running_loop().time()


def works(seconds: float) -> None:
    """Let virtual time go by in which nothing else runs, as while something is computed."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop._virtual.now += seconds


async def passes(seconds: float) -> None:
    """Let virtual time go by."""
    await asyncio.sleep(seconds)


async def until(condition: Callable[[], bool], *, within: float = 600.0) -> None:
    """Wait, in steps, for the condition; fails when it does not come true within that much virtual time."""
    deadline = loop_time() + within
    while not condition():
        assert loop_time() < deadline, f"not so within {within} s"
        await asyncio.sleep(0.05)


async def cancelled(task: "asyncio.Task[Any]") -> None:
    """End a task and take its end in."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _runner() -> PeriodicRunner:
    return PeriodicRunner(TroubleLog(loop_time), clock=lambda: datetime.now(UTC), rng=random.Random(1))


async def repeat(task: PeriodicTask) -> None:
    """Run the task until cancelled."""
    await _runner().run([task])
