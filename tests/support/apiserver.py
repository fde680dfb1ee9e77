"""The embedded API server without HTTP: its own store, registry and garbage collector, called in the process.

Everything happens at once: a deletion has had all its effects when the call returns. `LossyStore` and `OpenWatch` are what faults need.
"""

import functools
import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import msgspec

from grid.core.errors import GridError
from grid.kube.errors import Status, error_of
from grid.kube.objects import RawObject
from grid.kube.resources import NAMESPACES, PODS, Resource
from grid.sandbox.apiserver.bodies import JSON
from grid.sandbox.apiserver.changing import MERGE, FieldValidation, decode_new, patching, replacement, validated
from grid.sandbox.apiserver.defaults import apply_defaults
from grid.sandbox.apiserver.deletion import DeleteOptions
from grid.sandbox.apiserver.eviction import evict
from grid.sandbox.apiserver.garbage import Janitor
from grid.sandbox.apiserver.kinds import ServedKind, find_kind
from grid.sandbox.apiserver.listing import encoded, encoded_metadata, list_page, selection_of
from grid.sandbox.apiserver.paths import ResourcePath
from grid.sandbox.apiserver.registry import Mutation, Registry, key_of, timestamp
from grid.sandbox.apiserver.status import Failure
from grid.sandbox.apiserver.store import ObjectStore, Record, StoreEvent
from grid.sandbox.apiserver.watching import Interest, Watch
from tests.support.builders import NAMESPACE

_NUMBERS = itertools.count(1)  # of two clusters no two objects have one uid
_FURNISHED = ("default", NAMESPACE)


@functools.cache
def kind_of(resource: Resource) -> ServedKind:
    """The embedded server's kind; what it does not store is kept as it is given."""
    known = find_kind(resource.group, resource.version, resource.plural)
    if known is not None and "create" in known.verbs:
        return known
    return ServedKind(resource.kind, resource.plural, resource.group, resource.version, namespaced=resource.namespaced)


class LossyStore(ObjectStore):
    """A store in memory that keeps from the watches as many changes as it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.version = 1000
        self.to_lose = 0
        self.lost: set[int] = set()

    def _happened(self, observed: Any, change: StoreEvent) -> None:
        if self.to_lose:
            self.to_lose -= 1
            self.lost.add(change.version)
        super()._happened(observed, change)


class OpenWatch(Watch):
    """A watch that can be ended: `how` is the error, or None when the server closes it."""

    def __init__(self, store: LossyStore, resource: Resource, interest: Interest, after: int) -> None:
        self.resource = resource
        self.interest = interest
        self.ended = False
        self.how: GridError | None = None
        self._lost = store.lost
        super().__init__(store, interest, after=after)

    def end(self, how: GridError | None) -> None:
        self.close()
        self.ended, self.how = True, how
        self._ready.set()

    def _take(self, change: StoreEvent) -> None:
        if change.version not in self._lost:
            super()._take(change)


@contextmanager
def answers() -> Iterator[None]:
    """A failure is raised as the error that a client over HTTP makes of it."""
    try:
        yield
        return
    except Failure as failure:
        error = error_of(failure.code, msgspec.convert(failure.body(), Status))
    raise error


class BareServer:
    """The verbs, and `put`, which checks nothing. The namespaces of `_FURNISHED` are there from the start."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self.store = LossyStore()
        self.registry = Registry(self.store, clock=clock, rng=random.Random(next(_NUMBERS)))
        self._janitor = Janitor(self.registry)
        for name in _FURNISHED:
            namespace = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}}
            self.registry.create(kind_of(NAMESPACES), "", namespace)
            self.store.remove("configmaps", f"{name}/kube-root-ca.crt")  # tests count what the product makes

    # --- Reading ---

    def find(self, resource: Resource, name: str, namespace: str) -> Record:
        kind = kind_of(resource)
        with answers():
            return self.registry.read(kind, key_of(kind, namespace, name))

    def objects(self, resource: Resource) -> list[RawObject]:
        return [record.fresh() for record in self.store.records(kind_of(resource).resource)]

    def page(self, resource: Resource, namespace: str, query: dict[str, str], *, metadata_only: bool) -> bytes:
        kind = kind_of(resource)
        with answers():
            page = list_page(self.store, ResourcePath(kind, namespace), query)
        return encoded_metadata(page) if metadata_only else encoded(kind, page)

    def watch(self, resource: Resource, namespace: str, query: dict[str, str], after: int) -> OpenWatch:
        kind = kind_of(resource)
        with answers():
            selection = selection_of(kind, query)
        interest = Interest(kind.resource, ResourcePath(kind, namespace).prefix, selection=selection)
        return OpenWatch(self.store, resource, interest, after)

    # --- Changing ---

    def put(self, resource: Resource, obj: RawObject) -> RawObject:
        """Create or replace without any check, with defaults and with what the server itself writes into the metadata."""
        kind = kind_of(resource)
        given = {"kind": kind.kind, "apiVersion": kind.api_version, **msgspec.json.decode(msgspec.json.encode(obj))}
        apply_defaults(kind, given)
        meta = given["metadata"]
        key = key_of(kind, meta.get("namespace", ""), meta["name"])
        old = self.store.get(kind.resource, key)
        if old is None:
            meta.setdefault("uid", self.registry.new_uid())
            meta.setdefault("creationTimestamp", timestamp(self.registry.clock()))
            meta["generation"] = 1
        else:
            before = old.obj["metadata"]
            meta |= {name: before[name] for name in ("uid", "creationTimestamp")}
            for name in {"deletionTimestamp", "deletionGracePeriodSeconds"} & before.keys():
                meta.setdefault(name, before[name])
            meta["generation"] = before.get("generation", 1) + (given.get("spec") != old.obj.get("spec"))
            if given | {"metadata": {**meta, "resourceVersion": before["resourceVersion"]}} == old.obj:
                return old.fresh()
        return self.store.put(kind.resource, key, given).fresh()

    def create(self, resource: Resource, body: RawObject, namespace: str, *, dry_run: bool = False) -> RawObject:
        kind = kind_of(resource)
        with answers():
            obj = decode_new(msgspec.json.encode(body), JSON, FieldValidation(kind))
            record = self.registry.create(kind, namespace, obj, dry_run=dry_run)
        return record.fresh()

    def replace(self, resource: Resource, name: str, body: RawObject, namespace: str) -> RawObject:
        with answers():
            mutation = replacement(msgspec.json.encode(body), JSON, FieldValidation(kind_of(resource)))
        return self._update(resource, name, namespace, mutation)

    def patch(
        self, resource: Resource, name: str, body: RawObject, namespace: str, *, subresource: str = ""
    ) -> RawObject:
        kind = kind_of(resource)
        with answers():
            mutation = validated(patching(msgspec.json.encode(body), MERGE, kind.kind), FieldValidation(kind))
        return self._update(resource, name, namespace, mutation, subresource)

    def delete(self, resource: Resource, name: str, namespace: str, options: DeleteOptions | None = None) -> None:
        kind = kind_of(resource)
        with answers():
            self.registry.delete(kind, key_of(kind, namespace, name), options or DeleteOptions())
            self._collect()

    def evict(self, pod: str, namespace: str, uid: str) -> None:
        body = {"deleteOptions": {"preconditions": {"uid": uid}}} if uid else {}
        with answers():
            evict(self.registry, key_of(kind_of(PODS), namespace, pod), body, {})
            self._collect()

    def remove(self, resource: Resource, name: str, namespace: str) -> None:
        """Gone at once, with everything that it owns."""
        self.store.remove(kind_of(resource).resource, self.find(resource, name, namespace).key)
        self._collect()

    def _update(
        self, resource: Resource, name: str, namespace: str, mutation: Mutation, subresource: str = ""
    ) -> RawObject:
        kind = kind_of(resource)
        with answers():
            record = self.registry.update(kind, key_of(kind, namespace, name), mutation, subresource=subresource)
        if self.store.get(kind.resource, record.key) is None:  # its last finalizer went
            self._collect()
        return record.fresh()

    def _collect(self) -> None:
        while self._janitor.has_work:
            self._janitor.work()
