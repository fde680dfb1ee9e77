"""What the fake cluster keeps and whom it tells: objects and their versions, owners and what they own, the history that watches replay.

`FakeCluster` is the API server, and this is the database beneath it: it checks nothing, and everything it is given is its own.
"""

import asyncio
import copy
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import msgspec

from grid.errors import GridError, NotFound
from grid.kube.objects import RawObject
from grid.kube.resources import PODS, Resource


@dataclass(frozen=True, slots=True)
class _Change:
    version: int
    resource: Resource
    old: RawObject | None
    new: RawObject | None


@dataclass(frozen=True, slots=True)
class Watch:
    """One that is open: lines to be read, or how it ends (None: the server closes it)."""

    resource: Resource
    fits: Callable[[RawObject], bool]
    queue: asyncio.Queue[bytes | GridError | None] = field(default_factory=asyncio.Queue)


def _key(obj: RawObject) -> str:
    meta = obj["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else str(meta["name"])


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_NUMBERS = itertools.count(1)  # of two clusters no two objects have one uid


class Storage:
    """Keep objects, their versions and the history of changes. `clock` gives creation and deletion timestamps."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self.version = 1000
        self.forgotten = 0  # no watch may begin before this version
        self.to_lose = 0  # so many changes are told to nobody
        self.made = 0
        self._number = next(_NUMBERS)
        self.watches: list[Watch] = []
        self._clock = clock
        self._objects: dict[Resource, dict[str, RawObject]] = {}
        self._history: list[_Change] = []

    # --- Objects ---

    def of(self, resource: Resource) -> list[RawObject]:
        """In the order of their keys; the stored ones themselves."""
        return [obj for _, obj in sorted(self._objects.get(resource, {}).items())]

    def same(self, resource: Resource, obj: RawObject) -> RawObject | None:
        """The stored object of that namespace and name."""
        return self._objects.get(resource, {}).get(_key(obj))

    def find(self, resource: Resource, name: str, namespace: str) -> RawObject:
        key = f"{namespace}/{name}" if resource.namespaced and namespace else name
        try:
            return self._objects[resource][key]
        except KeyError:
            raise NotFound(f'{resource.plural} "{name}" not found') from None

    def store(self, resource: Resource, obj: RawObject, old: RawObject | None) -> RawObject:
        """With what the server itself writes into the metadata; no new version where nothing changed."""
        meta = obj["metadata"]
        obj.setdefault("apiVersion", resource.api_version)
        obj.setdefault("kind", resource.kind)
        if old is None:
            self.made += 1
            meta.setdefault("uid", f"{self._number:08x}-0000-4000-8000-{self.made:012d}")
            meta.setdefault("creationTimestamp", _stamp(self._clock()))
            meta["generation"] = 1
        else:
            meta.update({key: old["metadata"][key] for key in ("uid", "creationTimestamp")})
            for key in {"deletionTimestamp", "deletionGracePeriodSeconds"} & old["metadata"].keys():
                meta.setdefault(key, old["metadata"][key])
            meta["generation"] = old["metadata"].get("generation", 1) + (obj.get("spec") != old.get("spec"))
            if obj | {"metadata": {**meta, "resourceVersion": old["metadata"]["resourceVersion"]}} == old:
                return old
        self.version += 1
        meta["resourceVersion"] = str(self.version)
        self._objects.setdefault(resource, {})[_key(obj)] = obj
        self._publish(_Change(self.version, resource, old, obj))
        return obj

    def delete(self, resource: Resource, obj: RawObject, grace_seconds: int | None) -> None:
        """At once, except a pod on a node: that one waits for the kubelet, and a shorter grace period shortens the first."""
        spec = obj.get("spec", {})
        grace = spec.get("terminationGracePeriodSeconds", 30) if grace_seconds is None else grace_seconds
        if resource != PODS or not spec.get("nodeName") or grace == 0:
            self.erase(resource, obj)
        elif grace < obj["metadata"].get("deletionGracePeriodSeconds", grace + 1):
            marked = copy.deepcopy(obj)
            marked["metadata"]["deletionTimestamp"] = _stamp(self._clock() + timedelta(seconds=grace))
            marked["metadata"]["deletionGracePeriodSeconds"] = grace
            self.store(resource, marked, obj)

    def erase(self, resource: Resource, obj: RawObject) -> None:
        del self._objects[resource][_key(obj)]
        self.version += 1
        last = copy.deepcopy(obj)
        last["metadata"]["resourceVersion"] = str(self.version)
        self._publish(_Change(self.version, resource, last, None))

    def cascade(self, owner: RawObject) -> None:
        """The garbage collector, which is slow in real life and never here."""
        uid = owner["metadata"]["uid"]
        for resource, obj in self._owned_by(uid):
            if obj["metadata"]["name"] and _key(obj) in self._objects[resource]:
                self.delete(resource, obj, None)
                self.cascade(obj)

    def _owned_by(self, uid: str) -> list[tuple[Resource, RawObject]]:
        return [
            (resource, obj)
            for resource, known in self._objects.items()
            for obj in known.values()
            if any(owner.get("uid") == uid for owner in obj["metadata"].get("ownerReferences", ()))
        ]

    # --- Watches and history ---

    def open_watch(self, resource: Resource, fits: Callable[[RawObject], bool], since: int) -> Watch:
        """What happened after that version comes first."""
        watch = Watch(resource, fits)
        for change in self._history:
            if change.version > since:
                _deliver(watch, change)
        self.watches.append(watch)
        return watch

    def compact(self) -> None:
        """Forget the history, up to a version that no watch has seen."""
        self.version += 1
        self.forgotten = self.version
        self._history.clear()

    def become(self, other: "Storage") -> None:
        self._objects, self.version, self.forgotten = other._objects, other.version, 0
        self._history.clear()

    def end_watches(self, how: GridError | None) -> None:
        for watch in self.watches:
            watch.queue.put_nowait(how)
        self.watches.clear()

    def _publish(self, change: _Change) -> None:
        if self.to_lose:
            self.to_lose -= 1
            return
        self._history.append(change)
        for watch in self.watches:
            _deliver(watch, change)


def _deliver(watch: Watch, change: _Change) -> None:
    """As the API server does: what leaves the selector is DELETED, what enters it is ADDED."""
    if watch.resource != change.resource:
        return
    before = change.old is not None and watch.fits(change.old)
    after = change.new is not None and watch.fits(change.new)
    if not before and not after:
        return
    kind = "DELETED" if not after else "MODIFIED" if before else "ADDED"
    obj = change.new if change.new is not None else change.old
    assert obj is not None
    shown = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(change.version)}}
    watch.queue.put_nowait(msgspec.json.encode({"type": kind, "object": shown}))
