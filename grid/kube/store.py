"""The present state of one kind of Kubernetes object, in memory.

Written by exactly one reflector and read by anybody, all on one event loop: a reader never sees half a change, as long as it does not
await between two reads. Every applied change makes `version` grow by one and is told to the listeners; one that changes nothing is none.
"""

import logging
from collections.abc import Callable, Collection, KeysView, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from grid.core.translation import gettext as _
from grid.kube.hub import NAME, Hub, Topic
from grid.kube.trouble import ClusterTrouble


@dataclass(frozen=True, slots=True)
class Freshness:
    """`synced`: the first list has come. `error`: why it is behind, as a sentence; "" when all is well. A sound watch with no news is not
    behind, so a failure counts from when it began. `trouble` is the kind of error, where it is the cluster's, and `trouble_seconds` for how
    long it has been of this kind: a cluster that has refused us for an hour may have been silent for a second."""

    synced: bool
    behind_seconds: float
    error: str
    trouble: ClusterTrouble | None = None
    trouble_seconds: float = 0.0

    @property
    def weight(self) -> tuple[bool, bool, bool, float, bool]:
        """What is larger the worse it is: silence counts more than what was refused before."""
        is_unread, is_silent = not self.synced, self.trouble is ClusterTrouble.SILENT
        return is_silent, is_unread, is_unread and self.trouble is not None, self.behind_seconds, bool(self.error)


class Identified(Protocol):
    @property
    def key(self) -> str: ...

    @property
    def resource_version(self) -> str: ...


class HasMetadata(Protocol):
    @property
    def metadata(self) -> Identified: ...


logger = logging.getLogger(__name__)

SILENCE_LIMIT = 180.0
T = TypeVar("T", bound=HasMetadata)
# Called with the object as it was and as it is: the first is None for one that came, the second for one that went.
Listener = Callable[[T | None, T | None], None]


class Store(Generic[T]):
    """Objects keyed `namespace/name` (or `name`), with named indexes.

    An index is a function from an object to one text; objects for which it says "" are not in that index.
    With `has_heartbeats`, an object of which nothing but its version has changed is the one that we had, and takes the version over.
    `share` is called with a changed object, which nobody knows yet, and what it was, and may let the first have parts of the second.
    A store that has heard nothing for SILENCE_LIMIT seconds calls itself stale even when nothing seems broken.
    """

    def __init__(
        self,
        name: str,
        *,
        indexes: Mapping[str, Callable[[T], str]] | None = None,
        share: Callable[[T, T], None] = lambda changed, known: None,
        has_heartbeats: bool = False,
    ) -> None:
        self.name = name
        self.version = 0
        self._objects: dict[str, T] = {}
        self._index_of = dict(indexes or {})
        self._indexes: dict[str, dict[str, dict[str, T]]] = {index: {} for index in self._index_of}
        self._share, self._has_heartbeats = share, has_heartbeats
        self._listeners: list[Listener[T]] = []
        self._synced = False
        self.heard_at: float | None = None  # when the cluster was last heard, on the reflector's clock; None for never
        self._failed_at: float | None = None
        self._error = ""
        self._trouble: ClusterTrouble | None = None
        self._trouble_at = 0.0

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: str) -> T | None:
        return self._objects.get(key)

    def values(self) -> Collection[T]:
        """Return all objects, in no order; it is a live view, so do not await while going through it."""
        return self._objects.values()

    def keys(self) -> KeysView[str]:
        return self._objects.keys()

    def by(self, index: str, value: str) -> Sequence[T]:
        """Return the objects with that value in the named index. Raise KeyError for an index that was not declared."""
        return tuple(self._indexes[index].get(value, {}).values())

    def items_by(self, index: str, value: str) -> Sequence[tuple[str, T]]:
        """Return what `by` does, with the keys, which take longer to make than to read."""
        return tuple(self._indexes[index].get(value, {}).items())

    def counts(self, index: str) -> dict[str, int]:
        return {value: len(group) for value, group in self._indexes[index].items()}

    def values_of(self, index: str) -> Collection[str]:
        return self._indexes[index].keys()

    def subscribe(self, listener: Listener[T]) -> None:
        """Call `listener` after each change, at once; it must be quick, and may read this store."""
        self._listeners.append(listener)

    def freshness(self, now: float) -> Freshness:
        """Return how far behind the store may be; `now` is the reflector's monotonic clock."""
        troubled = max(0.0, now - self._trouble_at) if self._trouble is not None else 0.0
        if self.heard_at is None:
            error = self._error or _("Not yet read from the cluster.")
            return Freshness(False, 0.0, error, self._trouble, troubled)
        silent = max(0.0, now - self.heard_at)
        if self._error:
            cut_off = silent if self._failed_at is None else max(0.0, now - self._failed_at)
            return Freshness(self._synced, cut_off, self._error, self._trouble, troubled)
        if silent > SILENCE_LIMIT:
            return Freshness(self._synced, silent, _("The cluster has sent nothing for longer than it should."))
        return Freshness(self._synced, 0.0, "" if self._synced else _("The first list is being read from the cluster."))

    def apply(self, changed: T) -> bool:
        """Add or replace one object; return False when it is what we had."""
        key = changed.metadata.key
        old = self._objects.get(key)
        if old is not None and (old == changed or (self._has_heartbeats and _is_heartbeat(old, changed))):
            return False
        if old is not None:
            self._share(changed, old)
        self._objects[key] = changed
        for index, value_of in self._index_of.items():
            before, value = "" if old is None else value_of(old), value_of(changed)
            if before and before != value:
                self._unindex(key, index, before)
            if value:
                self._indexes[index].setdefault(value, {})[key] = changed
        self._tell(old, changed)
        return True

    def discard(self, key: str) -> bool:
        """Forget one object; return False when it was not there."""
        old = self._objects.pop(key, None)
        if old is None:
            return False
        for index, value_of in self._index_of.items():
            if value := value_of(old):
                self._unindex(key, index, value)
        self._tell(old, None)
        return True

    def mark_synced(self, now: float) -> None:
        """Note that a whole list has been taken in, or that the watch has proved to be alive after one."""
        self._synced = True
        self.mark_heard(now)

    def mark_heard(self, now: float) -> None:
        """Note that the cluster spoke: whatever was wrong is over."""
        self.heard_at = now
        self._failed_at = None
        self._error, self._trouble = "", None

    def mark_failed(
        self, sentence: str, since: float | None = None, *, trouble: ClusterTrouble | None = None, at: float = 0.0
    ) -> None:
        """Note that we are cut off, for the reason given. What we hold grows old from the first failure, `since` on the reflector's clock;
        without it from the last word heard, as when a watch was silent. `at` is when the request was sent that failed with `trouble`."""
        if not self._error and since is not None:
            self._failed_at = max(since, self.heard_at or since)
        if trouble is not self._trouble:
            self._trouble, self._trouble_at = trouble, at
        self._error = sentence

    def topics(self, old: T | None, new: T | None) -> set[Topic]:
        """Return the topics that a change is about: of all objects, of this one, and of the index values that it had and has."""
        topics: set[Topic] = {self.name}
        for changed in (old, new):
            if changed is not None:
                topics.add((self.name, NAME, changed.metadata.key))
                topics.update((self.name, index, value_of(changed)) for index, value_of in self._index_of.items())
        return topics

    def _tell(self, old: T | None, new: T | None) -> None:
        self.version += 1
        for listener in self._listeners:
            try:
                listener(old, new)
            except Exception:  # which must not keep the change from the others
                logger.exception("a change was not taken in store=%s", self.name)

    def _unindex(self, key: str, index: str, value: str) -> None:
        group = self._indexes[index][value]
        del group[key]
        if not group:
            del self._indexes[index][value]


def _is_heartbeat(known: HasMetadata, changed: HasMetadata) -> bool:
    """Return whether they differ in the version alone, which `known` then takes over: of a heartbeat nothing else is kept here."""
    was: Any = known.metadata
    new: Any = changed.metadata
    version = new.resource_version
    msgspec.structs.force_setattr(new, "resource_version", was.resource_version)
    is_heartbeat = bool(known == changed)
    msgspec.structs.force_setattr(was if is_heartbeat else new, "resource_version", version)
    return is_heartbeat


def announce(store: Store[T], hub: Hub) -> None:
    def publish(old: T | None, new: T | None) -> None:
        if hub.is_watched(store.name):  # else the indexes would be asked for nobody
            for topic in store.topics(old, new):
                hub.publish(topic)

    store.subscribe(publish)
