"""Slices of work on the event loop, between which other tasks run."""

import asyncio
from collections.abc import Callable
from typing import Self

# Of work on the event loop before other tasks run; up to five kinds of such work may meet in one of its rounds.
SLICE_SECONDS = 0.005


class Breath:
    """Yields to other tasks, in work of unknown length, whenever it has taken a slice of time, and for as long as `rest` says."""

    def __init__(self, rest: Callable[[], float] = lambda: 0.0) -> None:
        self._rest = rest
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()

    def is_due(self) -> bool:
        return self._loop.time() - self._began > SLICE_SECONDS

    async def take(self) -> None:
        if self.is_due():
            await self._pause()
            self._began = self._loop.time()

    async def _pause(self) -> None:
        await asyncio.sleep(self._rest())


class SharedBreath(Breath):
    """Holds the lock during a slice only, so that those of concurrent work take turns and do not add up."""

    def __init__(self, lock: asyncio.Lock, rest: Callable[[], float] = lambda: 0.0) -> None:
        super().__init__(rest)
        self._lock = lock
        self._is_held = False

    async def __aenter__(self) -> Self:
        await self._lock.acquire()
        self._is_held, self._began = True, self._loop.time()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._is_held:
            self._lock.release()
            self._is_held = False

    async def _pause(self) -> None:
        # Held until other tasks have run: were it free before, all that are ready would take it one after the other in one round.
        await asyncio.sleep(0)
        await self.__aexit__()
        if rest := self._rest():
            await asyncio.sleep(rest)
        await self.__aenter__()
