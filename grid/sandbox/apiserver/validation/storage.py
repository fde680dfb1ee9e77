"""Validation of PersistentVolumes and StorageClasses."""

from grid.core.quantity import parse_quantity
from grid.sandbox.apiserver.kinds import Object
from grid.sandbox.apiserver.schema import SCHEMA
from grid.sandbox.apiserver.status import StatusCause, prohibited, required, unsupported, wrong
from grid.sandbox.apiserver.validation.others import ACCESS_MODES

_POLICIES = ("Delete", "Recycle", "Retain")
_CLASS_POLICIES = ("Delete", "Retain")
_MODES = ("Block", "Filesystem")
_BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
# The sources are those fields of the spec that the binary encoding nests one level deeper.
_SOURCES = tuple(name for name, field in SCHEMA.types["PersistentVolumeSpec"].items() if len(field.numbers) == 2)


def check_volume(volume: Object) -> list[StatusCause]:
    spec = volume["spec"]
    causes: list[StatusCause] = []
    modes = spec.get("accessModes") or []
    if not modes:
        causes.append(required("spec.accessModes"))
    causes += [unsupported("spec.accessModes", mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    capacity = spec.get("capacity") or {}
    if not capacity:
        causes.append(required("spec.capacity"))
    elif [*capacity] != ["storage"]:
        causes.append(unsupported("spec.capacity", capacity, ("storage",)))
    causes += [
        wrong(f"spec.capacity[{name}]", amount, "must be greater than zero")
        for name, amount in capacity.items()
        if parse_quantity(amount) <= 0
    ]
    policy = spec.get("persistentVolumeReclaimPolicy")
    if policy not in _POLICIES:
        causes.append(unsupported("spec.persistentVolumeReclaimPolicy", policy, _POLICIES))
    if spec.get("volumeMode") not in _MODES:
        causes.append(unsupported("spec.volumeMode", spec.get("volumeMode"), _MODES))
    return causes + _check_source(spec)


def _check_source(spec: Object) -> list[StatusCause]:
    sources = [name for name in _SOURCES if name in spec]
    if not sources:
        return [required("spec", "must specify a volume type")]
    causes = [prohibited(f"spec.{name}", "may not specify more than 1 volume type") for name in sources[1:]]
    for name in ("hostPath", "local"):
        path = (spec.get(name) or {}).get("path", "")
        if name in spec and not path:
            causes.append(required(f"spec.{name}.path"))
        elif ".." in path.split("/"):
            causes.append(wrong(f"spec.{name}.path", path, "must not contain '..'"))
    if "local" in spec and not (spec.get("nodeAffinity") or {}).get("required"):
        causes.append(required("spec.nodeAffinity", "Local volume requires node affinity"))
    return causes


def check_volume_update(new: Object, old: Object) -> list[StatusCause]:
    """Check that where a volume is, and from where it can be reached, stay."""
    before, after = old["spec"], new["spec"]
    causes: list[StatusCause] = []
    if any(before.get(name) != after.get(name) for name in _SOURCES):
        rule = "spec.persistentvolumesource is immutable after creation"
        causes.append(prohibited("spec.persistentvolumesource", rule))
    if before.get("volumeMode") != after.get("volumeMode"):
        causes.append(wrong("spec.volumeMode", after.get("volumeMode"), "field is immutable"))
    if before.get("nodeAffinity") and before["nodeAffinity"] != after.get("nodeAffinity"):
        rule = "field is immutable, except for updating from beta label to GA"
        causes.append(wrong("spec.nodeAffinity", after.get("nodeAffinity"), rule))
    return causes


def check_storage_class(storage_class: Object) -> list[StatusCause]:
    causes: list[StatusCause] = []
    if not storage_class.get("provisioner"):
        causes.append(required("provisioner"))
    if storage_class.get("reclaimPolicy") not in _CLASS_POLICIES:
        causes.append(unsupported("reclaimPolicy", storage_class.get("reclaimPolicy"), _CLASS_POLICIES))
    if storage_class.get("volumeBindingMode") not in _BINDING_MODES:
        causes.append(unsupported("volumeBindingMode", storage_class.get("volumeBindingMode"), _BINDING_MODES))
    for number, term in enumerate(storage_class.get("allowedTopologies") or ()):
        for place, item in enumerate(term.get("matchLabelExpressions") or ()):
            path = f"allowedTopologies[{number}].matchLabelExpressions[{place}]"
            causes += [required(f"{path}.values")] if not item.get("values") else []
    return causes


def check_storage_class_update(new: Object, old: Object) -> list[StatusCause]:
    causes = [
        prohibited(field, f"updates to {field} are forbidden.")
        for field in ("parameters", "provisioner", "reclaimPolicy")
        if (new.get(field) or None) != (old.get(field) or None)
    ]
    if new.get("volumeBindingMode") != old.get("volumeBindingMode"):
        causes.append(wrong("volumeBindingMode", new.get("volumeBindingMode"), "field is immutable"))
    return causes
