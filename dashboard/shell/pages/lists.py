"""Lists on live pages, updated incrementally. A change marks one source (an execution, a node) as dirty. Its items are rebuilt and put into
the lists that may hold them, and only lists whose shown page or numbers may differ wake their pages. A list is filled when it is first
requested, in slices between which other tasks run, and is dropped when it has not been requested for a while. What it shows first is put
into it first, and items that nobody has requested yet are made then. A websocket waits until its list is whole; a first paint waits for
`FIRST_PAINT_SECONDS` at most, or a little longer for its first rows, and then says how far the list is (`progress_of`)."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import chain
from typing import Generic, TypeVar

from dashboard.shell.pages.slices import SLICE_SECONDS, Breath, SharedBreath
from dashboard.shell.viewmodels.listing import Progress
from dashboard.shell.viewmodels.window import OrderedWindow, Page
from grid.kube.hub import Hub, Topic, call_soon

logger = logging.getLogger(__name__)

T = TypeVar("T")

FIRST_PAINT_SECONDS = 0.08  # for which a first paint waits for its list
LONGER_SECONDS = 0.12  # and on a busy machine for what the list shows first
# Between two slices while nobody waits for a list, so that the page that gave up waiting is rendered and sent.
REST_SECONDS = 0.015
AFTER_FAILURE_SECONDS = 3.0
MOST_DIRTY = 1_000  # without lists, more dirty sources than this are processed at once
BEHIND_SECONDS = 1.0  # until a page is looked at again whose list is not whole
KEPT_SECONDS = 30.0  # how long a page is kept without a request, and each list
LONGEST_KEPT_SECONDS = 600.0  # how long a list is kept where there is room
# Of items in lists that nobody has requested for `KEPT_SECONDS`, 200 to 300 bytes each; a small list counts as so many, for its share of
# each change.
MOST_KEPT_ITEMS, LEAST_KEPT_ITEMS = 100_000, 1_000
FORGET_SECONDS = 1.0  # between two looks for such lists
RECHECK = timedelta(seconds=5)  # for items that change with time alone: by ages and waiting times


class LiveList(ABC, Generic[T]):
    """The items of one view for one audience, in order."""

    def __init__(self, window: OrderedWindow[T], rows_per_page: int) -> None:
        self.window = window
        self.topic: Topic = ""
        self.asked_at = 0.0
        self.is_filled = False
        self.progress = Progress()  # of the filling
        self.has_first = asyncio.Event()  # what it shows first is in it
        self.filling: asyncio.Task[None] | None = None
        self._rows_per_page = rows_per_page
        self._pages: dict[int, tuple[float, Page[T]]] = {}  # by number, as they were requested recently, with the time
        self._shown_end = 0  # up to where a change may be seen on one of these
        self._missed: set[str] = set()  # keys of items that changed during the filling
        self._rechecked_at: datetime | None = None
        self._rechecked_for: Hashable = None

    @property
    @abstractmethod
    def bucket(self) -> Hashable:
        """The value that an item must have in `_buckets_of` to be in this list."""

    @abstractmethod
    def narrowed(self, item: T, now: datetime) -> T | None:
        """Return the part of the item that is in this list; None when nothing is."""

    @property
    @abstractmethod
    def changes_with_time(self) -> bool:
        """True when an item may come or go without a change of its own."""

    @property
    def basis(self) -> Hashable:
        """The value that decides, apart from an item and the time, whether the item is in this list."""
        return None

    def put(self, key: str, item: T | None, now: datetime) -> bool:
        """Put a changed item into the list. Return whether a shown page may differ."""
        if not self.is_filled:
            self._missed.add(key)
            return False
        return self._put(key, item, now)

    def append(self, key: str, item: T, now: datetime) -> None:
        """Add an item during the filling, as it is now."""
        self._missed.discard(key)
        if (narrowed := self.narrowed(item, now)) is not None:
            self.window.append(key, narrowed)

    def _put(self, key: str, item: T | None, now: datetime) -> bool:
        before = len(self.window), self.window.rows
        first = self.window.put(key, None if item is None else self.narrowed(item, now))
        return first < self._shown_end or before != (len(self.window), self.window.rows)

    def filled(self, now: datetime) -> None:
        """Finish the filling of the window, which is in order and up to date."""
        self.rechecked(now)
        self.is_filled = True
        self.has_first.set()

    async def catch_up(self, items: Mapping[str, T], now: datetime, breath: Breath) -> None:
        """Put what changed during the filling, in slices, and also what changes meanwhile."""
        while self._missed:
            key = self._missed.pop()
            self._put(key, items.get(key), now)
            await breath.take()

    def page(self, number: int) -> Page[T]:
        page, now = self.window.page(number, self._rows_per_page), asyncio.get_running_loop().time()
        self._pages = {shown: (at, known) for shown, (at, known) in self._pages.items() if now - at < KEPT_SECONDS}
        self._pages[number] = now, page
        # One more, because an item right after the page makes a next page.
        self._shown_end = max(known.end + 1 for _, known in self._pages.values())
        return page

    def is_shown(self, number: int) -> bool:
        return number in self._pages

    def is_due_for_recheck(self, now: datetime) -> bool:
        """Return whether time or `basis` may have changed the list's items since the last recheck."""
        if not self.changes_with_time or self._rechecked_at is None:
            return False
        return self._rechecked_for != self.basis or not timedelta() <= now - self._rechecked_at < RECHECK

    def rechecked(self, now: datetime) -> None:
        self._rechecked_at, self._rechecked_for = now, self.basis


L = TypeVar("L", bound=LiveList)  # type: ignore[type-arg]


class LiveLists(ABC, Generic[T, L]):
    """All lists of one kind of object, used on one event loop only. `kind` is the first part of their topics."""

    def __init__(self, hub: Hub, kind: str) -> None:
        self.items: dict[str, T] = {}
        self._hub = hub
        self._kind = kind
        self._keys_of: dict[str, tuple[str, ...]] = {}  # the keys of the items by source
        self._unmade = dict[str, None]()  # sources whose items no list has needed yet
        # Sources, in the order in which they changed. Taking the first of a plain dict again and again is quadratic.
        self._dirty = OrderedDict[str, None]()
        self._is_processing = False
        self._lists: dict[Hashable, L] = {}
        self._warm = set[Hashable]()  # keys of lists that are never forgotten
        self._buckets: defaultdict[Hashable, set[L]] = defaultdict(set)
        self._made = 0
        self._forget_at = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._filling = 0  # lists
        self._waiting = 0  # requests and websockets, until their list is whole
        self._slicing = asyncio.Lock()  # so that the slices of concurrent requests do not add up

    @abstractmethod
    def _items_of(self, source: str) -> Mapping[str, T]:
        """Return the items that are now made from the source, by key."""

    @abstractmethod
    def _now(self) -> datetime: ...

    def _measured_anew(self) -> Iterable[tuple[str, T]]:
        """Return the keys and items that have changed without a change of their source."""
        return ()

    def _to_recheck(self, asked: L) -> Iterable[str]:
        """Return the keys of the items that time alone may add to the list or remove; they are iterated while other items change."""
        return list(self.items)

    def _sources(self, asked: L) -> Sequence[str]:
        """Return the sources whose items may be in the list."""
        return [*self._unmade, *self._keys_of]

    def _shown_first(self, asked: L) -> Iterator[Collection[str]]:
        """Yield the sources that the list shows first, as far as is known without making them: nothing in each step but the last."""
        yield ()

    def _buckets_of(self, item: T) -> Iterable[Hashable]:
        """Return the `bucket` values of the lists that may hold the item."""
        return ("all",)

    def _replaced(self, key: str, old: T | None, new: T | None) -> None:
        """Do what else is due when an item has been added, changed or removed."""

    async def known_or(self, key: Hashable, new: Callable[[], L], *, within: float | None = None) -> L:
        """Return the list with that key, whole and up to date; `new` makes an empty one when there is none. With `within`, it is returned
        after so many seconds, `LONGER_SECONDS` later at most, and `progress_of` tells whether it is whole then."""
        known = self._known_or_begun(key, new)
        is_current = known.is_filled and not self._dirty and next(iter(self._measured_anew()), None) is None
        if not is_current or known.is_due_for_recheck(self._now()):
            with suppress(TimeoutError):
                async with asyncio.timeout(within):
                    await self._whole(known)
            if within is not None and not known.has_first.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(LONGER_SECONDS):
                        await self._first(known)
        return known

    def progress_of(self, asked: L) -> Progress | None:
        """Return how far the list is; None when it is whole, and then the latest changes are in it."""
        if not asked.is_filled:
            return asked.progress
        return None if self._took_in_a_slice() else Progress()

    def is_behind(self, asked: L) -> bool:
        """Return whether the list may hold items that are gone or have changed."""
        return not asked.is_filled or bool(self._dirty)

    def _known_or_begun(self, key: Hashable, new: Callable[[], L]) -> L:
        """Return the list with that key, or an empty one that a task begins to fill, whoever goes on waiting for it."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._enter(loop)
        self._forget_unused(loop.time())
        known = self._lists.get(key)
        if known is None:
            self._made += 1
            known = self._lists[key] = new()
            known.topic = (self._kind, "list", str(self._made))
            known.asked_at = float("inf")  # not dropped before it is filled
            self._buckets[known.bucket].add(known)
            known.filling = loop.create_task(self._fill_or_forget(key, known), name=f"fill {self._kind}")
        elif known.is_filled:
            known.asked_at = loop.time()
        return known

    def _enter(self, loop: asyncio.AbstractEventLoop) -> None:
        """Use the loop from now on. The former one has ended, and with it the tasks that filled lists."""
        self._loop, self._is_processing, self._slicing = loop, False, asyncio.Lock()
        for key in [key for key, known in self._lists.items() if not known.is_filled]:
            self._forget(key)

    async def _whole(self, asked: L) -> None:
        self._waiting += 1
        try:
            if not asked.is_filled and asked.filling is not None:
                await asyncio.shield(asked.filling)
            await self._bring_up_to_date(asked)
        finally:
            self._waiting -= 1

    async def _first(self, asked: L) -> None:
        self._waiting += 1
        try:
            await asked.has_first.wait()
        finally:
            self._waiting -= 1

    def _rest(self) -> float:
        return REST_SECONDS if self._filling and not self._waiting else 0.0

    async def _fill_or_forget(self, key: Hashable, new: L) -> None:
        self._filling += 1
        try:
            await self._fill(new)
        except BaseException as error:
            if self._lists.get(key) is new:  # else another loop has begun anew
                self._forget(key)
            if isinstance(error, Exception):
                logger.exception("list not filled kind=%s", self._kind)  # perhaps nobody waits for it any more
            raise
        finally:
            self._filling -= 1
        new.asked_at = asyncio.get_running_loop().time()

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
            await asyncio.sleep(self._rest())

    def mark(self, source: str) -> None:
        """Mark a changed source as dirty. It is processed soon if there are lists, else with many others or on the next request."""
        self._unmade.pop(source, None)
        self._dirty[source] = None
        if self._lists or len(self._dirty) > MOST_DIRTY:
            self._start_processing()

    def _start_processing(self) -> None:
        if self._loop is not None and not self._is_processing:
            self._is_processing = True
            call_soon(self._loop, self._process)

    async def _fill(self, new: L) -> None:
        await self._caught_up()
        async with SharedBreath(self._slicing, self._rest) as breath:
            first: Collection[str] = ()
            for first in self._shown_first(new):
                if not first:
                    await breath.take()
            now, sources = self._now(), self._sources(new)
            others = (source for source in sources if source not in first)
            for number, source in enumerate(chain(first, others), start=1):
                if source in self._unmade:
                    del self._unmade[source]
                    self._take_in(source)
                for key in self._keys_of.get(source, ()):
                    new.append(key, self.items[key], now)
                if number >= len(first):
                    new.has_first.set()
                if breath.is_due():
                    new.window.end_run()
                    new.progress = Progress(number, len(sources))
                    await breath.take()
            for _ in new.window.merge_runs():
                await breath.take()
            await new.catch_up(self.items, now, breath)
            new.filled(now)

    def _process(self) -> None:
        """Process one slice of the dirty sources, and the rest after other tasks have run."""
        loop = asyncio.get_running_loop()
        self._forget_unused(loop.time())
        self._is_processing = not self._took_in_a_slice()
        if self._is_processing:
            loop.call_later(self._rest(), self._process)

    def _took_in_a_slice(self) -> bool:
        """Take in what is dirty, for a slice of time at most. Return whether that was all."""
        loop = asyncio.get_running_loop()
        until = loop.time() + SLICE_SECONDS
        while self._dirty and loop.time() < until:
            self._take_in(self._dirty.popitem(last=False)[0])
        return not self._dirty

    def _take_in(self, source: str) -> None:
        """Rebuild one source's items. A failure is logged and tried again later, and delays no other source."""
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
        for concerned in self._lists_of(old, new):
            if concerned.put(key, new, now):
                self._hub.publish(concerned.topic)

    def _lists_of(self, *items: T | None) -> set[L]:
        if not self._buckets:
            return set()
        buckets = {bucket for item in items if item is not None for bucket in self._buckets_of(item)}
        return set().union(*[self._buckets[bucket] for bucket in buckets if bucket in self._buckets])

    def _forget_unused(self, now: float) -> None:
        if abs(now - self._forget_at) < FORGET_SECONDS:
            return
        self._forget_at = now
        room = MOST_KEPT_ITEMS
        for key, known in sorted(self._lists.items(), key=lambda each: each[1].asked_at, reverse=True):
            idle = now - known.asked_at
            if idle > KEPT_SECONDS and key not in self._warm:
                room -= max(LEAST_KEPT_ITEMS, len(known.window))
                if room < 0 or idle > LONGEST_KEPT_SECONDS:
                    self._forget(key)

    def _forget(self, key: Hashable) -> None:
        gone = self._lists.pop(key)
        self._buckets[gone.bucket].discard(gone)
        if not self._buckets[gone.bucket]:
            del self._buckets[gone.bucket]
