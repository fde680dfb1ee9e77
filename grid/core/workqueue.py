"""A work queue of keys for several workers: fair, without duplicates, and never one key at two workers.

A key added many times before it is taken is worked on once; a key added while it is worked on comes again afterwards. So a worker that
reads the present state when it begins can miss nothing.
"""

import asyncio
import heapq
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Protocol, TypeVar

from grid.core.backoff import Backoff


class Timer(Protocol):
    """A clock in seconds, and a way to wait."""

    def monotonic(self) -> float: ...

    def sleep(self, seconds: float) -> Awaitable[None]: ...


class LoopTimer:
    """The clock of the running event loop."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def sleep(self, seconds: float) -> Awaitable[None]:
        return asyncio.sleep(seconds)


class WorkQueue:
    """The queue, on one event loop. `get` hands a key to one worker, which calls `done`; `backoff` makes the delays of a failing key."""

    def __init__(self, backoff: Callable[[], Backoff], timer: Timer | None = None) -> None:
        self._backoff = backoff
        self._timer = timer or LoopTimer()
        self._order: asyncio.Queue[str] = asyncio.Queue()
        self._dirty: set[str] = set()  # to be worked on; in `_order` unless being worked on
        self._processing: set[str] = set()
        self._backoffs: dict[str, Backoff] = {}
        self._due: dict[str, float] = {}
        self._delayed: list[tuple[float, str]] = []  # a heap; an entry that differs from `_due` is obsolete
        self._waiting: asyncio.Task[None] | None = None
        self._is_closed = False

    def __len__(self) -> int:
        """Return the number of keys that wait or are worked on; delayed keys do not count."""
        return len(self._dirty | self._processing)

    def add(self, key: str) -> None:
        if key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._processing:
            self._order.put_nowait(key)

    def add_later(self, key: str, seconds: float) -> None:
        """Add the key after a delay in seconds; of several delays of one key the earliest counts."""
        due = self._timer.monotonic() + seconds
        if self._is_closed or self._due.get(key, math.inf) <= due:
            return
        self._due[key] = due
        heapq.heappush(self._delayed, (due, key))
        if self._delayed[0] == (due, key):
            self._close_timer()
            self._waiting = asyncio.create_task(self._add_delayed(), name="delayed keys")

    def retry(self, key: str, *, at_least: float = 0.0) -> float:
        """Add the key after a delay that grows with each failure, and return the delay in seconds."""
        delay = max(at_least, self._backoffs.setdefault(key, self._backoff()).next())
        self.add_later(key, delay)
        return delay

    def succeeded(self, key: str) -> None:
        self._backoffs.pop(key, None)

    async def get(self) -> str:
        key = await self._order.get()
        self._dirty.discard(key)
        self._processing.add(key)
        return key

    def done(self, key: str) -> None:
        self._processing.discard(key)
        if key in self._dirty:
            self._order.put_nowait(key)

    def close(self) -> None:
        self._is_closed = True
        self._close_timer()
        self._due.clear()
        self._delayed.clear()

    def _close_timer(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    async def _add_delayed(self) -> None:
        while self._delayed:
            due, key = self._delayed[0]
            if (rest := due - self._timer.monotonic()) > 0:
                await self._timer.sleep(rest)
                continue
            heapq.heappop(self._delayed)
            if self._due.get(key) == due:
                del self._due[key]
                self.add(key)


T = TypeVar("T")


async def in_slices(items: Iterable[T], size: int) -> AsyncIterator[T]:
    """Yield the items, and let others run after each `size` of them; these must not change what is gone through."""
    for number, item in enumerate(items, 1):
        yield item
        if number % size == 0:
            await asyncio.sleep(0)
