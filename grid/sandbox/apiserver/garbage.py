"""Garbage collection: dependents are deleted with their owners, namespaces are emptied, old events are removed.

The janitor is level-triggered: changes only name objects to examine. It works a moment after the change, in one
task, through the same registry as clients; what could not be stored is retried until it can be.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from grid.sandbox.apiserver import quota
from grid.sandbox.apiserver.ages import parse_time
from grid.sandbox.apiserver.deletion import FOREGROUND, ORPHAN, DeleteOptions
from grid.sandbox.apiserver.kinds import Object, ServedKind, stored_kinds
from grid.sandbox.apiserver.registry import Registry
from grid.sandbox.apiserver.status import Failure
from grid.sandbox.apiserver.store import Listener, Record, StoreEvent

log = logging.getLogger(__name__)

T = TypeVar("T", str, tuple[str, str])
_RETRY_SECONDS = 2.0
_AT_ONCE = 200
_EVENT_LIFETIME = timedelta(hours=1)
_UNWATCHED = ("events", "leases.coordination.k8s.io")  # written all the time, never owning anything


class Janitor:
    def __init__(self, registry: Registry, *, delay: float = 0.1, sweep_seconds: float = 30.0) -> None:
        self._registry = registry
        self._store = registry.store
        self._delay = delay
        self._sweep_seconds = sweep_seconds
        self._wake = asyncio.Event()
        self._uids: dict[str, tuple[ServedKind, str]] = {}
        self._dependents: dict[str, set[tuple[str, str]]] = defaultdict(set)
        self._suspects: set[tuple[str, str]] = set()  # (resource, key) to examine
        self._uncounted: set[str] = set()  # namespaces whose quotas may be out of date
        for kind in stored_kinds().values():
            for record in self._store.records(kind.resource):
                self._know(kind, record)
                self._suspects.add((kind.resource, record.key))
            self._store.listen(kind.resource, self._listener(kind))

    def _listener(self, kind: ServedKind) -> Listener:
        def noticed(change: StoreEvent) -> None:
            if change.before is not None:
                self._forget(kind, change.before, gone=change.now is None)
            if change.now is not None:
                self._know(kind, change.now)
            self._look_again(kind, change)

        return noticed

    def _know(self, kind: ServedKind, record: Record) -> None:
        metadata = record.obj["metadata"]
        if kind.resource not in _UNWATCHED:
            self._uids[metadata["uid"]] = (kind, record.key)
        for owner in metadata.get("ownerReferences") or ():
            self._dependents[owner["uid"]].add((kind.resource, record.key))

    def _forget(self, kind: ServedKind, record: Record, *, gone: bool) -> None:
        metadata = record.obj["metadata"]
        if gone:
            self._uids.pop(metadata["uid"], None)
        for owner in metadata.get("ownerReferences") or ():
            self._dependents[owner["uid"]].discard((kind.resource, record.key))
            if not self._dependents[owner["uid"]]:
                del self._dependents[owner["uid"]]

    def _look_again(self, kind: ServedKind, change: StoreEvent) -> None:
        metadata = change.record.obj["metadata"]
        suspects = self._suspects
        before = len(suspects) + len(self._uncounted)
        if change.now is None:
            suspects.update(self._dependents.get(metadata["uid"], ()))
            for owner in metadata.get("ownerReferences") or ():
                if owner["uid"] in self._uids:
                    owner_kind, key = self._uids[owner["uid"]]
                    suspects.add((owner_kind.resource, key))
            namespace = metadata.get("namespace")
            if namespace:
                suspects.add(("namespaces", namespace))
                self._uncounted.add(namespace)
        elif metadata.get("deletionTimestamp") or metadata.get("ownerReferences"):
            suspects.add((kind.resource, change.key))
        if kind.resource == "pods" and change.now is not None and metadata.get("namespace"):
            self._uncounted.add(metadata["namespace"])
        if len(suspects) + len(self._uncounted) > before:
            self._wake.set()

    async def run(self) -> None:
        while True:
            sweep = False
            try:
                async with asyncio.timeout(self._sweep_seconds):
                    await self._wake.wait()
            except TimeoutError:
                sweep = True
            self._wake.clear()
            await asyncio.sleep(self._delay)
            try:
                if sweep:
                    self._store.compact()
                    self._expire_events()
                self.work()
            except Failure as failure:  # the disk is full, which the store itself reports
                log.debug("cleaning up waits: %s", failure)
                self._wake.set()
                await asyncio.sleep(_RETRY_SECONDS)

    @property
    def has_work(self) -> bool:
        return bool(self._suspects or self._uncounted)

    def work(self) -> None:
        """Examine every suspect once."""
        self._each(self._suspects, self._look_at)
        self._each(self._uncounted, self._recount)

    def _each(self, waiting: set[T], clean_up: Callable[[T], None]) -> None:
        """Call `clean_up` for each item; what could not be stored, and all items after it, stay in `waiting`."""
        for item in sorted(waiting):
            waiting.discard(item)  # before the call, because it may add the item again
            try:
                clean_up(item)
            except Failure as failure:
                if failure.code >= 500:
                    waiting.add(item)
                    raise
                log.exception("cleaning up failed: %s", item)
            except Exception:
                log.exception("cleaning up failed: %s", item)

    def _look_at(self, suspect: tuple[str, str]) -> None:
        resource, key = suspect
        record = self._store.get(resource, key)
        if record is not None:
            self._examine(stored_kinds()[resource], record)

    def _recount(self, namespace: str) -> None:
        for record in list(self._store.records("resourcequotas", prefix=f"{namespace}/")):
            quota.recount_stored(self._store, record.key)

    def _examine(self, kind: ServedKind, record: Record) -> None:
        metadata = record.obj["metadata"]
        if kind.resource == "namespaces" and metadata.get("deletionTimestamp"):
            self._empty_namespace(kind, record)
            return
        finalizers = metadata.get("finalizers") or ()
        if metadata.get("deletionTimestamp") and ORPHAN in finalizers:
            self._orphan(kind, record)
        elif metadata.get("deletionTimestamp") and FOREGROUND in finalizers:
            self._delete_dependents_first(kind, record)
        elif metadata.get("ownerReferences"):
            self._check_owners(kind, record)

    def _owner_lives(self, record: Record, owner: Object) -> bool:
        kind_and_key = self._uids.get(owner["uid"])
        if kind_and_key is None:
            return False
        namespace = record.obj["metadata"].get("namespace")
        return not kind_and_key[0].namespaced or kind_and_key[1].startswith(f"{namespace}/")

    def _check_owners(self, kind: ServedKind, record: Record) -> None:
        """Delete an object without a living owner; remove references to dead owners from an object that has one."""
        owners = record.obj["metadata"]["ownerReferences"]
        living = [owner for owner in owners if self._owner_lives(record, owner)]
        if not living:
            self._delete(kind, record, DeleteOptions(propagation="Background", uid=record.obj["metadata"]["uid"]))
        elif len(living) < len(owners):
            self._set_owners(kind, record, living)

    def _set_owners(self, kind: ServedKind, record: Record, owners: list[Object]) -> None:
        def change(obj: Object) -> Object:
            obj["metadata"]["ownerReferences"] = owners
            return obj

        self._registry.update(kind, record.key, change)

    def _orphan(self, kind: ServedKind, record: Record) -> None:
        uid = record.obj["metadata"]["uid"]
        for resource, key in sorted(self._dependents.get(uid, ())):
            dependent = self._store.get(resource, key)
            if dependent is not None:
                owners = [each for each in dependent.obj["metadata"]["ownerReferences"] if each["uid"] != uid]
                self._set_owners(stored_kinds()[resource], dependent, owners)
        self._drop_finalizer(kind, record, ORPHAN)

    def _delete_dependents_first(self, kind: ServedKind, record: Record) -> None:
        uid = record.obj["metadata"]["uid"]
        blocked = False
        for resource, key in sorted(self._dependents.get(uid, ())):
            dependent = self._store.get(resource, key)
            if dependent is None:
                continue
            owner = next(each for each in dependent.obj["metadata"]["ownerReferences"] if each["uid"] == uid)
            if not dependent.obj["metadata"].get("deletionTimestamp"):
                options = DeleteOptions(propagation="Foreground", uid=dependent.obj["metadata"]["uid"])
                self._delete(stored_kinds()[resource], dependent, options)
            if owner.get("blockOwnerDeletion") and self._store.get(resource, key) is not None:
                blocked = True
        if not blocked:
            self._drop_finalizer(kind, record, FOREGROUND)

    def _drop_finalizer(self, kind: ServedKind, record: Record, finalizer: str) -> None:
        def change(obj: Object) -> Object:
            obj["metadata"]["finalizers"] = [each for each in obj["metadata"]["finalizers"] if each != finalizer]
            return obj

        if self._store.get(kind.resource, record.key) is not None:
            self._registry.update(kind, record.key, change)

    def _empty_namespace(self, kind: ServedKind, namespace: Record) -> None:
        prefix = f"{namespace.key}/"
        left = deleted = 0
        for inner in stored_kinds().values():
            if not inner.namespaced:
                continue
            for record in list(self._store.records(inner.resource, prefix=prefix)):
                if not record.obj["metadata"].get("deletionTimestamp"):
                    self._delete(inner, record, DeleteOptions(propagation="Background"))
                    deleted += 1
                    if deleted == _AT_ONCE:  # the rest waits, so that the server can answer meanwhile
                        self._suspects.add((kind.resource, namespace.key))
                        self._wake.set()
                        return
            left += self._store.count(inner.resource, prefix=prefix)
        if left == 0:

            def emptied(obj: Object) -> Object:
                obj["spec"]["finalizers"] = []
                return obj

            self._registry.update(kind, namespace.key, emptied, subresource="finalize")

    def _delete(self, kind: ServedKind, record: Record, options: DeleteOptions) -> None:
        try:
            self._registry.delete(kind, record.key, options)
        except Failure as failure:
            if failure.code not in (404, 409):  # it was deleted meanwhile, or another object has its name
                raise

    def _expire_events(self) -> None:
        oldest = self._registry.clock() - _EVENT_LIFETIME
        for record in list(self._store.records("events")):
            event = record.obj
            last = event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"]
            if parse_time(last) < oldest:
                self._store.remove("events", record.key)
