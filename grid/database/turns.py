"""Serves due work in turn by person: whatever waits of one person, others wait for one item of it, not for all.

Whoever was served longest ago comes next, with the person's oldest item. So between two items of one person, everybody else who has
something due gets one. Who is served is remembered from look to look, in memory: another process begins with everybody equal.
"""

import asyncio
import itertools
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from django.db.models import F, QuerySet, Window
from django.db.models.expressions import OrderBy
from django.db.models.functions import RowNumber

P = TypeVar("P", bound=Hashable)
T = TypeVar("T")
Rows = TypeVar("Rows", bound=QuerySet[Any, Any])

# Rests after an item, in multiples of what it took: a flood by one person takes a twentieth of the time, what others do is done faster.
FIRST_REST, FURTHER_REST = 1.0, 19.0
LONGEST_REST_SECONDS = 2.0


class PersonTurns(Generic[P]):
    """Remembers who was served when; there are as many entries as people."""

    def __init__(self) -> None:
        self._last_served: dict[P, int] = {}
        self._served = itertools.count(1)

    def each(self, due: Iterable[tuple[P, T]]) -> Iterator[tuple[P, T]]:
        """Yield the due items, which come oldest first, with their people in the order in which they are served. Each that was yielded
        counts as served. Of people who are equal, the one whose oldest item is the oldest comes first."""
        waiting: dict[P, deque[T]] = {}
        for person, item in due:
            waiting.setdefault(person, deque()).append(item)
        people = deque(sorted(waiting, key=lambda person: self._last_served.get(person, 0)))
        while people:
            person = people.popleft()
            self._last_served[person] = next(self._served)
            yield person, waiting[person].popleft()
            if waiting[person]:
                people.append(person)

    async def serve(
        self, due: Iterable[tuple[P, T]], do: Callable[[T], Awaitable[object]], *, at_most: int
    ) -> list[tuple[P, T]]:
        """Do at most so many of the items in turn, and rest after each, so that others get the database; return what was done."""
        loop, times, done = asyncio.get_running_loop(), Counter[P](), list[tuple[P, T]]()
        for person, item in itertools.islice(self.each(due), at_most):
            began = loop.time()
            await do(item)
            done.append((person, item))
            times[person] += 1
            await asyncio.sleep(rest_after(loop.time() - began, times[person]))
        return done


def rest_after(seconds: float, times: int) -> float:
    """Return how long to rest after an item that took so many seconds and was the person's so many-th in a look."""
    return min(LONGEST_REST_SECONDS, seconds * (FIRST_REST if times == 1 else FURTHER_REST))


class RateLimit(Generic[P]):
    """Counts what was done for each person within the latest time of `window`; in memory, so another process counts anew."""

    def __init__(self, window: timedelta) -> None:
        self._window = window
        self._done: dict[P, deque[datetime]] = {}

    def count(self, person: P, now: datetime) -> int:
        """Return how often `add` was called within the window; a clock that was set back forgets what is in its future."""
        kept = deque(moment for moment in self._done.pop(person, ()) if now - self._window < moment <= now)
        if kept:
            self._done[person] = kept
        return len(kept)

    def add(self, person: P, now: datetime) -> None:
        self._done.setdefault(person, deque()).append(now)


def first_of_each(rows: Rows, person: str, *oldest_first: str | OrderBy, at_most: int) -> Rows:
    """Return at most so many of the rows of each person, the oldest of all people first; `person` and `oldest_first` name columns."""
    place = Window(RowNumber(), partition_by=[F(person)], order_by=list(oldest_first))
    return rows.annotate(place_of_person=place).filter(place_of_person__lte=at_most).order_by(*oldest_first)
