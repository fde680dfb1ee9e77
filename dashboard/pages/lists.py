"""Lists that people look at, kept up to date by what changed and not by looking at everything again.

A change makes one source dirty: an execution, a node. Its items are made anew and put into the lists that may hold them, and only lists
whose shown page or numbers may differ wake their pages. A list is filled when it is first asked for, in slices between which others run,
and is forgotten when nobody has asked for a while.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from dashboard.viewmodels.window import OrderedWindow, Page
from grid.watch.hub import Hub, Topic, call_soon

logger = logging.getLogger(__name__)

T = TypeVar("T")

SLICE_SECONDS = 0.01  # of work on the loop before others have their turn
AFTER_FAILURE_SECONDS = 3.0
MOST_DIRTY = 1_000  # while nobody looks
KEPT_SECONDS = 30.0  # a list that nobody has asked for
RECHECK = timedelta(seconds=5)  # what time alone changes: ages, and how long something has been waited for


class Breath:
    """For work of unknown length: lets others run as soon as it has taken a slice of time."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()

    async def take(self) -> bool:
        """True when others have run."""
        if self._loop.time() - self._began <= SLICE_SECONDS:
            return False
        await asyncio.sleep(0)
        self._began = self._loop.time()
        return True


class LiveList(ABC, Generic[T]):
    """One view of one audience, in order."""

    def __init__(self, window: OrderedWindow[T], rows_per_page: int) -> None:
        self.window = window
        self.topic: Topic = ""
        self.asked_at = 0.0
        self.is_filled = False
        self.tried = asyncio.Event()  # to fill it
        self._rows_per_page = rows_per_page
        self._ends: dict[
            int, tuple[float, int]
        ] = {}  # of the pages asked for lately: when, and how many items until there
        self._missed: set[str] = set()  # what changed while it was being filled
        self._rechecked_at: datetime | None = None
        self._rechecked_for: Hashable = None

    @property
    @abstractmethod
    def bucket(self) -> Hashable:
        """Only items with this value can be in it."""

    @abstractmethod
    def narrowed(self, item: T, now: datetime) -> T | None:
        """What of the item is in this list; None when nothing is."""

    @property
    @abstractmethod
    def changes_with_time(self) -> bool:
        """Whether an item may come or go though nothing of it changed."""

    @property
    def basis(self) -> Hashable:
        """What decides, beside an item and the time, whether it is in this list."""
        return None

    def put(self, key: str, item: T | None, now: datetime) -> bool:
        """Take a changed item in; whether what is shown may differ."""
        if not self.is_filled:
            self._missed.add(key)
            return False
        before = len(self.window), self.window.rows
        first = self.window.put(key, None if item is None else self.narrowed(item, now))
        shown_end = max((end for _, end in self._ends.values()), default=0)
        return first < shown_end or before != (len(self.window), self.window.rows)

    def filled(self, now: datetime) -> set[str]:
        """All that was to be found is in the window, in order; the keys of what changed meanwhile and has to be put."""
        self.rechecked(now)
        self.is_filled = True
        missed, self._missed = self._missed, set()
        return missed

    def page(self, number: int) -> Page[T]:
        page, now = self.window.page(number, self._rows_per_page), asyncio.get_running_loop().time()
        self._ends = {one: (at, end) for one, (at, end) in self._ends.items() if now - at < KEPT_SECONDS}
        self._ends[number] = now, page.end + 1  # what comes to stand behind it makes a next page
        return page

    def is_due_for_recheck(self, now: datetime) -> bool:
        """Whether something else than its items may have changed what is in it since it was rechecked."""
        if not self.changes_with_time or self._rechecked_at is None:
            return False
        return self._rechecked_for != self.basis or not timedelta() <= now - self._rechecked_at < RECHECK

    def rechecked(self, now: datetime) -> None:
        self._rechecked_at, self._rechecked_for = now, self.basis


L = TypeVar("L", bound=LiveList)  # type: ignore[type-arg]


class LiveLists(ABC, Generic[T, L]):
    """All lists of one kind of thing; used on one event loop only. `kind` is the first part of their topics."""

    def __init__(self, hub: Hub, kind: str) -> None:
        self.items: dict[str, T] = {}
        self._hub = hub
        self._kind = kind
        self._keys_of: dict[str, tuple[str, ...]] = {}  # of the items, by their source
        self._dirty: dict[str, None] = {}  # sources, in the order in which they changed
        self._is_processing = False
        self._lists: dict[Hashable, L] = {}
        self._buckets: defaultdict[Hashable, set[L]] = defaultdict(set)
        self._made = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._slicing = asyncio.Lock()  # so that the slices of many who ask do not add up

    @abstractmethod
    def _items_of(self, source: str) -> Mapping[str, T]:
        """The items that are made from it now, by their keys."""

    @abstractmethod
    def _now(self) -> datetime: ...

    def _measured_anew(self) -> Iterable[tuple[str, T]]:
        """Items, by their keys, that have changed without a change of their source."""
        return ()

    def _to_recheck(self, asked: L) -> Iterable[str]:
        """The items that time alone may bring into a list or out of it; asked for one by one, while others change."""
        return list(self.items)

    def _candidates(self, asked: L) -> Collection[tuple[str, T]]:
        """All items that can be in a list."""
        return list(self.items.items())

    def _buckets_of(self, item: T) -> Iterable[Hashable]:
        """The values that lists that may hold it have."""
        return ("all",)

    def _replaced(self, key: str, old: T | None, new: T | None) -> None:
        """An item has come, changed or gone."""

    async def known_or(self, key: Hashable, new: L) -> L:
        """The list of that key, up to date; `new`, filled, if nobody has asked for it lately."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._is_processing = loop, False  # a loop that has ended runs nothing any more
        self._forget_unused(loop.time())
        while (known := self._lists.get(key)) is not None and not known.is_filled:
            await known.tried.wait()  # whoever fills it may be cancelled: then it is gone
        if known is None:
            known = new
            await self._make(key, new)
        known.asked_at = loop.time()
        await self._bring_up_to_date(known)
        return known

    def catch_up(self) -> None:
        """Take in all that has changed until now."""
        while self._dirty:
            self._take_in(next(iter(self._dirty)))

    async def _make(self, key: Hashable, new: L) -> None:
        self._made += 1
        new.topic = (self._kind, "list", str(self._made))
        new.asked_at = float("inf")  # not forgotten before it is filled
        self._lists[key] = new
        self._buckets[new.bucket].add(new)
        try:
            await self._fill(new)
        except BaseException:
            self._forget(key)
            raise
        finally:
            new.tried.set()

    async def _bring_up_to_date(self, asked: L) -> None:
        await self._caught_up()
        async with self._slicing:
            breath = Breath()
            for key, item in self._measured_anew():
                self._replace(key, item)
                await breath.take()
            now = self._now()
            if asked.is_due_for_recheck(now):
                for key in self._to_recheck(asked):
                    asked.put(key, self.items.get(key), now)
                    await breath.take()
                asked.rechecked(now)

    async def _caught_up(self) -> None:
        while self._dirty:
            self._start_processing()
            await asyncio.sleep(0)

    def mark_all(self, sources: Iterable[str]) -> None:
        """Everything there is, before anybody looks."""
        self._dirty.update(dict.fromkeys(sources))

    def mark(self, source: str) -> None:
        """It changed. It is taken in at once if somebody looks, else together with many others or when somebody asks."""
        self._dirty[source] = None
        if self._lists or len(self._dirty) > MOST_DIRTY:
            self._start_processing()

    def _start_processing(self) -> None:
        if self._loop is not None and not self._is_processing:
            self._is_processing = True
            call_soon(self._loop, self._process)

    async def _fill(self, new: L) -> None:
        await self._caught_up()
        async with self._slicing:
            await self._fill_in_slices(new)

    async def _fill_in_slices(self, new: L) -> None:
        now, breath = self._now(), Breath()
        for key, item in self._candidates(new):
            if (narrowed := new.narrowed(item, now)) is not None:
                new.window.append(key, narrowed)
            if await breath.take():
                new.window.end_run()
        for _ in new.window.merge_runs():
            await breath.take()
        for key in new.filled(now):
            new.put(key, self.items.get(key), now)

    def _process(self) -> None:
        """One slice of what is dirty; the rest after others had their turn."""
        loop = asyncio.get_running_loop()
        until = loop.time() + SLICE_SECONDS
        self._forget_unused(loop.time())
        while self._dirty and loop.time() < until:
            self._take_in(next(iter(self._dirty)))
        self._is_processing = bool(self._dirty)
        if self._is_processing:
            loop.call_soon(self._process)

    def _take_in(self, source: str) -> None:
        """One that fails is tried again, and delays no other."""
        del self._dirty[source]
        try:
            self._remake(source)
        except Exception:
            logger.exception("list not brought up to date, trying again kind=%s source=%s", self._kind, source)
            asyncio.get_running_loop().call_later(AFTER_FAILURE_SECONDS, self.mark, source)

    def _remake(self, source: str) -> None:
        items = self._items_of(source)
        for key in {**dict.fromkeys(self._keys_of.pop(source, ())), **items}:
            self._replace(key, items.get(key))
        if items:
            self._keys_of[source] = tuple(items)

    def _replace(self, key: str, new: T | None) -> None:
        old, now = self.items.pop(key, None), self._now()
        if new is not None:
            self.items[key] = new
        self._replaced(key, old, new)
        for one in self._lists_of(old) | self._lists_of(new):
            if one.put(key, new, now):
                self._hub.publish(one.topic)

    def _lists_of(self, item: T | None) -> set[L]:
        if item is None or not self._buckets:
            return set()
        return set().union(*(self._buckets[bucket] for bucket in self._buckets_of(item) if bucket in self._buckets))

    def _forget_unused(self, now: float) -> None:
        for key, known in list(self._lists.items()):
            if now - known.asked_at > KEPT_SECONDS:
                self._forget(key)

    def _forget(self, key: Hashable) -> None:
        gone = self._lists.pop(key)
        self._buckets[gone.bucket].discard(gone)
        if not self._buckets[gone.bucket]:
            del self._buckets[gone.bucket]
