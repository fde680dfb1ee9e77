"""Tells whoever waits that something changed; never what.

Publishing marks a topic dirty for its subscribers and costs next to nothing, so a store may publish each of two thousand
changes in a second. A subscriber wakes at once for the first, then at most once per `interval` with the set of topics that
became dirty meanwhile, and reads the stores itself. Nothing can be lost and no queue can grow.
"""

import asyncio
from collections import Counter
from collections.abc import Collection
from types import TracebackType


class Subscription:
    """One subscriber's dirty topics; a context manager, so that leaving it always unsubscribes."""

    def __init__(self, hub: "Hub", topics: Collection[str], interval: float) -> None:
        self.topics = frozenset(topics)
        self._hub = hub
        self._interval = interval
        self._dirty: set[str] = set()
        self._event = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken_at = float("-inf")

    def __enter__(self) -> "Subscription":
        self._loop = asyncio.get_running_loop()
        self._hub.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._hub.discard(self)

    async def changed(self) -> set[str]:
        """Wait until a topic is dirty; the topics that became dirty since the last call."""
        await self._event.wait()
        loop = asyncio.get_running_loop()
        early = self._woken_at + self._interval - loop.time()
        if early > 0:
            await asyncio.sleep(early)
        self._woken_at = loop.time()
        self._event.clear()
        dirty, self._dirty = self._dirty, set()
        return dirty

    def mark(self, topic: str) -> None:
        """Called by the hub, from any thread."""
        if topic in self._dirty:
            return
        assert self._loop is not None, "only an entered subscription is known to its hub"
        if _running_loop() is self._loop:
            self._mark_here(topic)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._mark_here, topic)

    def _mark_here(self, topic: str) -> None:
        self._dirty.add(topic)
        self._event.set()


class Hub:
    """Topics and their subscribers. `interval` is the least time between two wake-ups of one subscriber, in seconds."""

    def __init__(self, *, interval: float = 0.05) -> None:
        self._interval = interval
        self._subscriptions: set[Subscription] = set()
        self._watched: Counter[str] = Counter()

    def publish(self, topic: str) -> None:
        """Something about the topic changed; safe from any thread."""
        if self._watched[topic]:
            for subscription in tuple(self._subscriptions):
                if topic in subscription.topics:
                    subscription.mark(topic)

    def subscribe(self, topics: Collection[str]) -> Subscription:
        return Subscription(self, topics, self._interval)

    def is_watched(self, topic: str) -> bool:
        """Whether anybody looks at all, so that work for nobody can be left undone."""
        return self._watched[topic] > 0

    def add(self, subscription: Subscription) -> None:
        self._subscriptions.add(subscription)
        self._watched.update(subscription.topics)

    def discard(self, subscription: Subscription) -> None:
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)
            self._watched.subtract(subscription.topics)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
