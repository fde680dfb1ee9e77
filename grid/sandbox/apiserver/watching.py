"""Watches: the changes of a resource for one client, filtered, in order, as lines of JSON.

A `Watch` listens to the store and buffers; the server's task drains the buffer and writes it. Lines are encoded
once per change for all clients without a view of their own. A client that does not read is cut off when its buffer is
full: it will list again.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import msgspec

from grid.sandbox.apiserver.kinds import Object
from grid.sandbox.apiserver.listing import Selection
from grid.sandbox.apiserver.store import ObjectStore, Record, StoreEvent, event_line

EventType = Literal["ADDED", "MODIFIED", "DELETED"]
View = Callable[[Object], Object]
MOST_BUFFERED_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Interest:
    """The objects that a watcher wants (a resource, a namespace or one object, a selection), and their form."""

    resource: str
    prefix: str = ""  # "namespace/" or, with `name`, the whole key
    name: str = ""
    selection: Selection | None = None
    view: View | None = None

    def covers(self, key: str) -> bool:
        return key == self.prefix if self.name else key.startswith(self.prefix)

    def matches(self, record: Record) -> bool:
        return self.selection is None or self.selection.takes(record)


class Watch:
    """Buffered lines for one client, from `after` on. Call `close()` when the client is gone."""

    def __init__(self, store: ObjectStore, interest: Interest, *, after: int) -> None:
        self._interest = interest
        self._after = after
        self._lines: list[bytes] = []
        self._buffered = 0
        self._ready = asyncio.Event()
        self.overflowed = False
        for change in store.changes_since(interest.resource, after):
            self._take(change)
        self.close = store.listen(interest.resource, self._take)

    def add(self, line: bytes) -> None:
        self._lines.append(line)
        self._buffered += len(line)
        if self._buffered > MOST_BUFFERED_BYTES:
            self.overflowed = True
        self._ready.set()

    def take(self) -> list[bytes]:
        """Return the lines buffered since the last call."""
        lines, self._lines, self._buffered = self._lines, [], 0
        self._ready.clear()
        return lines

    def drain(self) -> bytes:
        return b"".join(self.take())

    async def wait(self, seconds: float) -> None:
        """Return when something is buffered or the time is over."""
        try:
            async with asyncio.timeout(seconds):
                await self._ready.wait()
        except TimeoutError:
            return

    def _take(self, change: StoreEvent) -> None:
        interest = self._interest
        if self.overflowed or change.version <= self._after or not interest.covers(change.key):
            return
        kind = _event_type(change, interest)
        if kind is None:
            return
        if interest.view is None:
            self.add(change.line(kind))
        else:
            obj = change.gone() if kind == "DELETED" else change.record.obj
            self.add(event_line(kind, msgspec.json.encode(interest.view(obj))))


def _event_type(change: StoreEvent, interest: Interest) -> EventType | None:
    """Return the watcher's event: leaving the selection is a deletion, entering it an addition; None outside of it."""
    before = change.before is not None and interest.matches(change.before)
    now = change.now is not None and interest.matches(change.now)
    if now:
        return "MODIFIED" if before else "ADDED"
    return "DELETED" if before else None
