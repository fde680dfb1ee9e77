"""How long the event loop keeps what is due waiting: everybody's page and socket waits as long."""

import asyncio
import time
from collections import deque
from collections.abc import Callable

LOOK_SECONDS = 0.02
REMEMBERED_SECONDS = 60


class LoopWatch:
    """`clock` in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._each_second: deque[float] = deque([0.0], maxlen=REMEMBERED_SECONDS)

    def longest(self) -> float:
        """How many seconds something due has waited, at most, within the last minute."""
        return max(self._each_second)

    async def run(self) -> None:
        """Look until cancelled."""
        second_began = began = self._clock()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = self._clock()
            self._each_second[-1] = max(self._each_second[-1], now - began - LOOK_SECONDS)
            began = now
            if now - second_began >= 1.0:
                self._each_second.append(0.0)
                second_began = now
