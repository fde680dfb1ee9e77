"""A time limit that is nearly always put off before it comes, and then costs no timer."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Self

NEVER = float("inf")


class Alarm:
    """Calls `ring` when the time has come that was set last, on the clock of the loop; a context manager, at whose end it is off. Putting
    it off leaves the timer as it is, which looks when it comes whether it is time. A timer for each change of a page, that is cancelled a
    moment later, would also stay in the loop's queue for as long as it was set."""

    def __init__(self, ring: Callable[[], object]) -> None:
        self._ring = ring
        self._loop = asyncio.get_running_loop()
        self._at = NEVER
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()

    def set(self, at: float) -> None:
        """Ring at that time and not at the one that was set before; `NEVER` for not at all."""
        self._at = at
        if self._timer is not None and at < self._timer.when():
            self._stop()
        if self._timer is None and at < NEVER:
            self._timer = self._loop.call_at(at, self._come, at)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _come(self, when: float) -> None:
        self._timer = None
        if self._at > when:
            self.set(self._at)
        else:
            self._at = NEVER
            self._ring()


@asynccontextmanager
async def time_limit() -> AsyncIterator[Alarm]:
    """Raise TimeoutError in the block when the alarm rings that it yields."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as limit:
        with Alarm(lambda: limit.reschedule(loop.time())) as alarm:
            yield alarm
