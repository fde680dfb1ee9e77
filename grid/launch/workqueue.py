"""Keys that need a look, for several workers. Fair, stingy, and never one key in two hands.

A key added many times before it is taken is worked on once; a key added while it is worked on comes again afterwards. So a
worker that reads the present state when it begins can miss nothing.
"""

import asyncio


class WorkQueue:
    """`get` gives a key to one worker, who says `done`; all on one event loop."""

    def __init__(self) -> None:
        self._order: asyncio.Queue[str] = asyncio.Queue()
        self._dirty: set[str] = set()  # needs a look; in `_order` unless somebody is at it
        self._processing: set[str] = set()
        self._delayed: dict[str, asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        """Keys that wait or are worked on; those that are delayed do not count."""
        return len(self._dirty | self._processing)

    def add(self, key: str) -> None:
        if key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._processing:
            self._order.put_nowait(key)

    def add_later(self, key: str, seconds: float) -> None:
        """Add after a delay; a key has one delay at a time, and the one that runs stays."""
        if key not in self._delayed:
            self._delayed[key] = asyncio.get_running_loop().call_later(seconds, self._add_delayed, key)

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
        """No delayed key comes any more."""
        for handle in self._delayed.values():
            handle.cancel()
        self._delayed.clear()

    def _add_delayed(self, key: str) -> None:
        self._delayed.pop(key, None)
        self.add(key)
