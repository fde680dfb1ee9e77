"""Tells whoever waits that something changed; never what.

A topic is a kind of thing ("pods"), or those of the kind that have one value in an index: ("pods", "node", "n1"). Publishing marks a topic
dirty for its own subscribers only. A subscriber wakes at once, with the topics that became dirty since, and reads the stores itself.
Nothing can be lost and no queue can grow.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection
from functools import partial

Topic = str | tuple[str, str, str]
NAME = "name"  # the index of every store by its objects' keys


class Subscription:
    """One subscriber's dirty topics; a context manager, so that leaving it always unsubscribes."""

    def __init__(self, hub: "Hub", topics: Collection[Topic]) -> None:
        self._topics = frozenset(topics)
        self._hub = hub
        self._dirty: set[Topic] = set()
        self._since: float | None = None  # when the first of what was published since `published_since` was
        self._event = asyncio.Event()
        self._not_before = 0.0  # until which `changed` waits, on the loop's clock, whatever is dirty
        self._is_held = False  # until then, because something is
        self._loop: asyncio.AbstractEventLoop | None = None

    def __enter__(self) -> "Subscription":
        self._loop = asyncio.get_running_loop()
        self._hub.add(self, self._topics)
        return self

    def __exit__(self, *_: object) -> None:
        self._hub.discard(self, self._topics)
        self._topics = frozenset()

    def follow(self, topics: Collection[Topic]) -> frozenset[Topic]:
        """Follow these from now on, in place of the former ones, and return those that are new; what is dirty already stays so."""
        new = frozenset(topics)
        if new == self._topics:
            return frozenset()
        added, left = new - self._topics, self._topics - new
        self._hub.add(self, added)
        self._hub.discard(self, left)
        self._topics = new
        return added

    async def changed(self, not_before: float = 0.0) -> set[Topic]:
        """Wait until a topic is dirty, and until `not_before` on the loop's clock; the topics that became dirty since the last call."""
        self._not_before = not_before
        if self._dirty:
            self._event.clear()
            self._wake()
        await self._event.wait()
        return self.taken()

    def taken(self) -> set[Topic]:
        """Return the topics that became dirty since the last call, without waiting."""
        self._event.clear()
        dirty, self._dirty = self._dirty, set()
        return dirty

    def published_since(self) -> float | None:
        """Return when the first topic was published since the last call, by `time.monotonic`; None when none was."""
        since, self._since = self._since, None
        return since

    def mark(self, topic: Topic, published_at: float | None = None) -> None:
        """Note that the topic has changed; the hub calls this from any thread, with the time."""
        if topic in self._dirty and (published_at is None or self._since is not None):
            return
        assert self._loop is not None, "only an entered subscription is known to its hub"
        if _running_loop() is self._loop:
            self._mark_here(topic, published_at)
        else:
            call_soon(self._loop, partial(self._mark_here, topic, published_at))

    def _mark_here(self, topic: Topic, published_at: float | None) -> None:
        self._dirty.add(topic)
        self._since = published_at if self._since is None else self._since
        self._wake()

    def _wake(self) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() >= self._not_before:
            self._event.set()
        elif not self._is_held:
            self._is_held = True
            loop.call_at(self._not_before, self._let_go)

    def _let_go(self) -> None:
        self._is_held, self._not_before = False, 0.0
        self._event.set()


class Hub:
    def __init__(self) -> None:
        self._subscribers: dict[Topic, set[Subscription]] = {}
        self._watched: Counter[str] = Counter()

    def publish(self, topic: Topic) -> None:
        """Something about the topic changed; safe from any thread."""
        if subscribers := self._subscribers.get(topic):
            now = time.monotonic()
            for subscription in tuple(subscribers):
                subscription.mark(topic, now)

    def subscribe(self, topics: Collection[Topic]) -> Subscription:
        return Subscription(self, topics)

    def is_watched(self, kind: str) -> bool:
        """Return whether anybody follows any topic of the kind, so that work for nobody can be left undone."""
        return self._watched[kind] > 0

    def add(self, subscription: Subscription, topics: Collection[Topic]) -> None:
        for topic in topics:
            self._subscribers.setdefault(topic, set()).add(subscription)
        self._watched.update(map(_kind, topics))

    def discard(self, subscription: Subscription, topics: Collection[Topic]) -> None:
        for topic in topics:
            subscribers = self._subscribers[topic]
            subscribers.remove(subscription)
            if not subscribers:
                del self._subscribers[topic]
        self._watched.subtract(map(_kind, topics))


def _kind(topic: Topic) -> str:
    return topic if isinstance(topic, str) else topic[0]


def call_soon(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
    """Let the loop make the call, from whichever thread; a closed one makes none."""
    if _running_loop() is loop:
        loop.call_soon(call)
    elif not loop.is_closed():
        loop.call_soon_threadsafe(call)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
