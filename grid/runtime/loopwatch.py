"""Measures how long the event loop delays what is due; every page and socket waits as long."""

import asyncio
import time
from collections import deque
from collections.abc import Callable

LOOK_SECONDS = 0.02
REMEMBERED_SECONDS = 60


class LoopWatch:
    """Measures the delays of the running event loop; `clock` is in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._longest: deque[tuple[float, float]] = deque()  # (when, how long); each shorter than the one before

    def longest(self) -> float:
        """Return the longest delay within the last minute, in seconds."""
        self._forget(self._clock())
        return self._longest[0][1] if self._longest else 0.0

    async def run(self) -> None:
        """Measure until cancelled."""
        began = self._clock()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = self._clock()
            waited = now - began - LOOK_SECONDS
            while self._longest and self._longest[-1][1] <= waited:
                self._longest.pop()
            self._longest.append((now, waited))
            self._forget(now)
            began = now

    def _forget(self, now: float) -> None:
        while self._longest and now - self._longest[0][0] > REMEMBERED_SECONDS:
            self._longest.popleft()
