"""What StorageClasses mean for claims: the class of one that names none, and whether it may grow."""

from grid.sandbox.apiserver.kinds import Object, ServedKind
from grid.sandbox.apiserver.status import forbidden
from grid.sandbox.apiserver.store import ObjectStore
from grid.sandbox.storage import CLASS_BEFORE, CLASSES_RESOURCE, class_of, default_class, requested_storage

_FIXED = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
)


def give_class(store: ObjectStore, claim: Object) -> None:
    """Give a new claim the default class, unless it names a class; "" names none on purpose."""
    if "storageClassName" in claim["spec"] or CLASS_BEFORE in (claim["metadata"].get("annotations") or {}):
        return
    class_name = default_class({record.key: record.obj for record in store.records(CLASSES_RESOURCE)})
    if class_name:
        claim["spec"]["storageClassName"] = class_name


def check_growth(store: ObjectStore, kind: ServedKind, new: Object, old: Object) -> None:
    """Raise `Failure` for a claim that is to grow although its class does not let volumes grow."""
    if requested_storage(new["spec"]) <= requested_storage(old["spec"]):
        return
    name = class_of(new)
    record = store.get(CLASSES_RESOURCE, name) if name and name == class_of(old) else None
    if record is None or not record.obj.get("allowVolumeExpansion"):
        raise forbidden(kind, new["metadata"]["name"], _FIXED)
