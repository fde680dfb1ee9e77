"""A queue of keys to look at again, and the loop that works it off.

A key that is added while it is being worked on is worked on once more afterwards, never twice at the same time; ten changes
of one object cost one look. A key whose work failed comes back after a growing delay. Level-triggered: the worker reads the
current state, so an event that is lost or repeated changes nothing.
"""

import asyncio
import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable

from grid.sandbox.client import ApiError, Backoff, Clock

logger = logging.getLogger(__name__)

_FIRST_RETRY, _LONGEST_RETRY = 0.1, 60.0


class WorkQueue:
    """Keys waiting, in order of arrival; belongs to one event loop."""

    def __init__(self, clock: Clock, rng: random.Random | None = None) -> None:
        self._clock = clock
        self._rng = rng or random.Random()
        self._order: deque[str] = deque()
        self._dirty: set[str] = set()
        self._working: set[str] = set()
        self._backoffs: dict[str, Backoff] = {}
        self._timers: dict[str, tuple[float, asyncio.Task[None]]] = {}
        self._arrived = asyncio.Event()

    def add(self, key: str) -> None:
        if key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._working:
            self._order.append(key)
            self._arrived.set()

    def add_after(self, key: str, seconds: float) -> None:
        """Adds the key later; of several such wishes for one key the earliest counts."""
        due = self._clock.monotonic() + seconds
        waiting = self._timers.get(key)
        if waiting is not None:
            if waiting[0] <= due:
                return
            waiting[1].cancel()
        self._timers[key] = (due, asyncio.create_task(self._later(key, seconds)))

    async def _later(self, key: str, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self._timers.pop(key, None)
        self.add(key)

    def retry(self, key: str, *, at_least: float = 0.0) -> None:
        backoff = self._backoffs.setdefault(key, Backoff(first=_FIRST_RETRY, longest=_LONGEST_RETRY, rng=self._rng))
        self.add_after(key, max(backoff.delay(), at_least))

    def forget(self, key: str) -> None:
        """The work succeeded: the next failure starts with the shortest delay again."""
        self._backoffs.pop(key, None)

    async def take(self) -> str:
        while not self._order:
            self._arrived.clear()
            await self._arrived.wait()
        key = self._order.popleft()
        self._dirty.discard(key)
        self._working.add(key)
        return key

    def done(self, key: str) -> None:
        self._working.discard(key)
        if key in self._dirty:
            self._order.append(key)
            self._arrived.set()

    def stop(self) -> None:
        for _, timer in self._timers.values():
            timer.cancel()
        self._timers.clear()


class Refused(Exception):
    """The work failed and whoever it concerns has been told, by an event or a condition: it is only tried again later."""


Work = Callable[[str], Awaitable[float | None]]
"""Looks at one key; returns after how many seconds to look again, None for not before something changes."""


async def work_off(queue: WorkQueue, work: Work, *, name: str, workers: int = 4) -> None:
    """Runs until cancelled. One key's failure never stops the others."""
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(_worker(queue, work, name))
    finally:
        queue.stop()


async def _worker(queue: WorkQueue, work: Work, name: str) -> None:
    while True:
        key = await queue.take()
        try:
            again = await work(key)
        except Refused as refusal:
            logger.debug("%s key=%s tries again: %s", name, key, refusal)
            queue.retry(key)
        except ApiError as error:
            # A conflict means that our copy was old: the mirror is about to bring the newer one.
            logger.log(
                logging.DEBUG if error.conflict else logging.WARNING, "%s key=%s tries again: %s", name, key, error
            )
            queue.retry(key, at_least=error.retry_after)
        except Exception:
            logger.exception("%s key=%s failed and tries again", name, key)
            queue.retry(key)
        else:
            queue.forget(key)
            if again is not None:
                queue.add_after(key, again)
        finally:
            queue.done(key)
