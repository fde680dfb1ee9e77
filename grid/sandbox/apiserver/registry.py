"""The verbs that change objects: create, update, delete; below HTTP, above the store.

Each verb runs without waiting, so reading, checking and storing are one step. Order of creation: names and
metadata, defaults, admission (what depends on other objects), validation, limits, quota, storing. A refusal is a `Failure`;
nothing has changed then.
"""

import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import msgspec

from grid.sandbox.apiserver import admission
from grid.sandbox.apiserver.defaults import apply_defaults
from grid.sandbox.apiserver.deletion import DeleteOptions, Marked, decide_deletion, may_go
from grid.sandbox.apiserver.kinds import NAMESPACES, Object, ServedKind, stored_kinds
from grid.sandbox.apiserver.status import (
    MODIFIED,
    already_exists,
    bad_request,
    conflict,
    invalid,
    not_found,
    server_error,
    wrong,
)
from grid.sandbox.apiserver.store import ObjectStore, Record, with_version
from grid.sandbox.apiserver.validation import check_new, check_update

Clock = Callable[[], datetime]
Mutation = Callable[[Object], Object]
# Kubernetes' alphabet for generated names: no vowels, no characters that are easily confused.
_NAME_CHARACTERS = "bcdfghjklmnpqrstvwxz2456789"
# Kinds whose updates must name a resourceVersion.
_NEEDS_VERSION = ("leases.coordination.k8s.io", "poddisruptionbudgets.policy")
_SERVER_OWNED = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
)


def timestamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def key_of(kind: ServedKind, namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if kind.namespaced else name


@dataclass(frozen=True, slots=True)
class Deletion:
    """The result of DELETE: the object as it was or is now, and whether it is gone."""

    record: Record
    gone: bool


class Registry:
    """The registry creates, updates and deletes objects.

    `authority` is the certificate by which programs in pods verify the API server. Without `native_sidecars` it drops what makes an init
    container one, without a word, as servers before 1.29 do.
    """

    def __init__(self, store: ObjectStore, *, clock: Clock, rng: random.Random, authority: str = "") -> None:
        self.store = store
        self._authority = authority
        self.clock = clock
        self._rng = rng
        self.native_sidecars = True

    def read(self, kind: ServedKind, key: str) -> Record:
        record = self.store.get(kind.resource, key)
        if record is None:
            raise not_found(kind, key.rpartition("/")[2])
        return record

    def create(self, kind: ServedKind, namespace: str, obj: Object, *, dry_run: bool = False) -> Record:
        metadata = obj["metadata"]
        if kind.namespaced:
            if metadata.get("namespace") not in (None, "", namespace):
                raise bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request"
                )
            admission.check_namespace(self.store, kind, namespace, metadata.get("name") or "")
        if metadata.get("resourceVersion"):
            raise server_error("resourceVersion should not be set on objects to be created")
        self._name(metadata)
        key = key_of(kind, namespace, metadata.get("name") or "")
        if self.store.get(kind.resource, key) is not None:
            raise already_exists(kind, metadata["name"])
        obj["metadata"] = self._new_metadata(kind, namespace, metadata)
        if kind.has_status and kind.resource != "nodes":  # a node comes with its status
            obj.pop("status", None)
        if kind.kind == "Pod" and not self.native_sidecars:
            for step in obj["spec"].get("initContainers") or ():
                step.pop("restartPolicy", None)
        apply_defaults(kind, obj)
        admission.admit(self.store, kind, namespace, obj)
        check_new(kind, obj)
        admission.check_limits(self.store, kind, namespace, obj)
        admission.check_quota(self.store, kind, namespace, obj)
        if dry_run:
            del obj["metadata"]["resourceVersion"]  # nothing is stored that could have one
            return Record(key, obj, msgspec.json.encode(obj), 0)
        record = self.store.put(kind.resource, key, obj)
        admission.charge_quota(self.store, kind, namespace, obj)
        if kind is NAMESPACES:
            self._furnish(record.key)
        return record

    def _name(self, metadata: Object) -> None:
        prefix = metadata.get("generateName") or ""
        if not metadata.get("name") and prefix:
            metadata["name"] = prefix[:58] + "".join(self._rng.choices(_NAME_CHARACTERS, k=5))

    def _new_metadata(self, kind: ServedKind, namespace: str, given: Object) -> Object:
        metadata: Object = {"name": given.get("name", "")}
        if given.get("generateName"):
            metadata["generateName"] = given["generateName"]
        if kind.namespaced:
            metadata["namespace"] = namespace
        metadata["uid"] = self.new_uid()
        metadata["resourceVersion"] = ""
        if kind.counts_generations:
            metadata["generation"] = 1
        metadata["creationTimestamp"] = timestamp(self.clock())
        for name in ("labels", "annotations", "ownerReferences", "finalizers", "managedFields"):
            if given.get(name):
                metadata[name] = given[name]
        return metadata

    def new_uid(self) -> str:
        return str(uuid.UUID(int=self._rng.getrandbits(128), version=4))

    def _furnish(self, namespace: str) -> None:
        """Create the objects that Kubernetes' controllers put into each new namespace."""
        kinds = stored_kinds()
        self.create(
            kinds["configmaps"],
            namespace,
            {
                "kind": "ConfigMap",
                "apiVersion": "v1",
                "metadata": {"name": "kube-root-ca.crt"},
                "data": {"ca.crt": self._authority},
            },
        )
        account = {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "default"}}
        self.create(kinds["serviceaccounts"], namespace, account)

    def update(
        self, kind: ServedKind, key: str, mutate: Mutation, *, subresource: str = "", dry_run: bool = False
    ) -> Record:
        """Store what `mutate` makes of a copy of the object. Without a change the version stays."""
        old = self.read(kind, key)
        new = mutate(old.fresh())
        self._check_identity(kind, old, new)
        new = _allowed_part(kind, old, new, subresource)
        apply_defaults(kind, new)
        if not subresource:
            admission.carry_over(kind, new, old.obj)
        if kind.counts_generations and not subresource and new.get("spec") != old.obj.get("spec"):
            new["metadata"]["generation"] = old.obj["metadata"].get("generation", 0) + 1
        if new == old.obj:
            return old
        check_update(kind, new, old.obj, subresource)
        admission.admit_update(self.store, kind, new, old.obj, subresource)
        if dry_run:
            return Record(key, new, msgspec.json.encode(new), old.version)
        if may_go(kind, new):
            with_version(new, old.version)
            self.store.remove(kind.resource, key)
            return Record(key, new, msgspec.json.encode(new), old.version)
        return self.store.put(kind.resource, key, new)

    def _check_identity(self, kind: ServedKind, old: Record, new: Object) -> None:
        metadata, name = new["metadata"], old.obj["metadata"]["name"]
        if metadata.get("name") not in (None, "", name):
            raise bad_request(
                f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})"
            )
        namespace = old.obj["metadata"].get("namespace")
        if namespace and metadata.get("namespace") not in (None, "", namespace):
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        if metadata.get("resourceVersion") not in (None, "", str(old.version)):
            raise conflict(kind, name, MODIFIED)
        if not metadata.get("resourceVersion") and kind.resource in _NEEDS_VERSION:
            problem = wrong("metadata.resourceVersion", 0, "must be specified for an update")
            raise invalid(kind.kind, kind.group, name, [problem])
        uid = old.obj["metadata"]["uid"]
        if metadata.get("uid") not in (None, "", uid):
            raise conflict(
                kind,
                name,
                f"StorageError: invalid object, Code: 4, Key: /registry/{kind.plural}/{old.key}, ResourceVersion: 0, "
                f"AdditionalErrorMsg: Precondition failed: UID in precondition: {metadata['uid']}, UID in object meta: {uid}",
            )

    def delete(self, kind: ServedKind, key: str, options: DeleteOptions) -> Deletion:
        old = self.read(kind, key)
        admission.check_deletable(kind, old.obj)
        outcome = decide_deletion(kind, old, options, self.clock())
        if outcome is None:
            return Deletion(old, gone=False)
        with_version(outcome.obj, old.version)
        if isinstance(outcome, Marked):
            if options.dry_run:
                return Deletion(Record(key, outcome.obj, msgspec.json.encode(outcome.obj), old.version), gone=False)
            return Deletion(self.store.put(kind.resource, key, outcome.obj), gone=False)
        if not options.dry_run:
            change = self.store.remove(kind.resource, key)
            with_version(outcome.obj, change.version)
        return Deletion(Record(key, outcome.obj, msgspec.json.encode(outcome.obj), old.version), gone=True)


def _allowed_part(kind: ServedKind, old: Record, new: Object, subresource: str) -> Object:
    """Return the new object with only the changes that the client may make.

    The status changes only through `status`, all else only outside of it, and server-owned metadata never.
    """
    metadata = {key: value for key, value in new["metadata"].items() if value not in (None, [], {})}
    before = old.obj["metadata"]
    for name in _SERVER_OWNED:
        metadata.pop(name, None)
        if name in before:
            metadata[name] = before[name]
    metadata = {
        "name": before["name"],
        **({"namespace": before["namespace"]} if "namespace" in before else {}),
        **metadata,
    }
    metadata["resourceVersion"] = str(old.version)
    if "generateName" in before:
        metadata["generateName"] = before["generateName"]
    if subresource == "status":
        result = old.fresh()
        result["status"] = new.get("status") or {}
    elif subresource:  # binding and eviction decide what they change
        result = {**new}
    else:
        result = {**new}
        if kind.has_status and "status" in old.obj:
            result["status"] = old.obj["status"]
    result["metadata"] = metadata
    return result
