"""A list that is kept in order while its items change, and is cut into pages by the height of its items; pure. A change takes two binary
searches and moves the pointers behind the positions: 20 µs at 20,000 items."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from typing import Any, Generic, TypeVar

T = TypeVar("T")
_Position = tuple[Any, str]  # the sort key and the item's own key, which makes it unique
MERGED_AT_ONCE = 500  # some tenths of a millisecond


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """The items of one page. `before` is the number of items before the page, `end` the number up to its last."""

    number: int
    items: Sequence[T]
    before: int
    has_next: bool

    @property
    def end(self) -> int:
        return self.before + len(self.items)


class OrderedWindow(Generic[T]):
    """Items by unique key, in the order of `sort_key` or its reverse. `height` returns the number of rows that an item takes."""

    def __init__(
        self, *, sort_key: Callable[[T], Any], is_reversed: bool = False, height: Callable[[T], int] = lambda item: 1
    ) -> None:
        self._sort_key = sort_key
        self._is_reversed = is_reversed
        self._height = height
        self._items: dict[str, T] = {}
        self._positions: dict[str, _Position] = {}
        self._order: list[_Position] = []
        self._runs: list[list[_Position]] = [[]]  # appended and not in order yet; all but the last are sorted
        self._cut: dict[
            tuple[int, int], Page[T]
        ] = {}  # by number and rows per page, since the order or a height has changed
        self.rows = 0

    def __len__(self) -> int:
        return len(self._items)

    def get(self, key: str) -> T | None:
        return self._items.get(key)

    def __iter__(self) -> Iterator[T]:
        """Iterate over the items, in no particular order."""
        return iter(self._items.values())

    def append(self, key: str, item: T) -> None:
        """Add a new item without ordering it; end the run before calling `page`, and iterate over `merge_runs` before `put`."""
        self._cut.clear()
        self._items[key] = item
        self._positions[key] = self._sort_key(item), key
        self._runs[-1].append(self._positions[key])
        self.rows += self._height(item)

    def end_run(self) -> None:
        """Sort the items appended since the last call, because sorting all at the end would take too long at once."""
        self._runs[-1].sort()
        self._runs.append([])

    def merge_runs(self) -> Iterator[None]:
        """Merge the appended items of an empty list into order, `MERGED_AT_ONCE` with each step."""
        self.end_run()
        merged = merge(*self._runs)
        while some := list(islice(merged, MERGED_AT_ONCE)):
            self._order += some
            yield
        self._runs = [[]]

    def put(self, key: str, item: T | None) -> int:
        """Add the item or replace the one with its key; None removes it. Return the first place, in reading order, from which on the list
        may differ; the previous length when it does not."""
        first, old_position = len(self._order), self._positions.get(key)
        # The callbacks may raise, so they are called before the first change.
        position = None if item is None else (self._sort_key(item), key)
        more_rows = (self._height(item) if item is not None else 0) - (
            self._height(self._items[key]) if old_position is not None else 0
        )
        if old_position is not None:
            first = self._place(old_position)
            if position != old_position:
                del self._order[bisect_left(self._order, old_position)]
                del self._items[old_position[1]], self._positions[old_position[1]]
        if item is not None and position is not None:
            if position != old_position:
                insort(self._order, position)
                self._positions[key] = position
                first = min(first, self._place(position))
            self._items[key] = item
        self.rows += more_rows
        if position != old_position or more_rows:
            self._cut.clear()
        elif item is not None:
            self._exchange(first, item)
        return first

    def _exchange(self, place: int, item: T) -> None:
        for key, page in self._cut.items():
            if page.before <= place < page.end:
                items = list(page.items)
                items[place - page.before] = item
                self._cut[key] = Page(page.number, items, page.before, page.has_next)

    def _place(self, position: _Position) -> int:
        index = bisect_left(self._order, position)
        return len(self._order) - 1 - index if self._is_reversed else index

    def page(self, number: int, rows_per_page: int) -> Page[T]:
        """Return the page with that number, or the last one. Items are never split; a page is full when the next item would exceed it."""
        if (known := self._cut.get((number, rows_per_page))) is not None:
            return known
        page = self._page(number, rows_per_page)
        self._cut[page.number, rows_per_page] = page
        return page

    def _page(self, number: int, rows_per_page: int) -> Page[T]:
        reached, before, rows = 1, 0, 0
        items: list[T] = []
        for _, key in self._in_reading_order():
            height = self._height(self._items[key])
            if items and rows + height > rows_per_page:
                if reached == number:
                    return Page(reached, items, before, has_next=True)
                reached, before, rows, items = reached + 1, before + len(items), 0, []
            items.append(self._items[key])
            rows += height
        return Page(reached, items, before, has_next=False)

    def _in_reading_order(self) -> Iterable[_Position]:
        if any(self._runs):  # not merged yet: a page needs the first of each only
            runs = map(reversed, self._runs) if self._is_reversed else self._runs
            return merge(*runs, reverse=self._is_reversed)
        return reversed(self._order) if self._is_reversed else self._order
