"""The tables of claims, volumes and storage classes."""

from datetime import datetime
from typing import Any

from grid.sandbox.apiserver.ages import age
from grid.sandbox.apiserver.kinds import Object
from grid.sandbox.storage import DEFAULT_CLASS, class_of

_SHORT = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}

CLAIM_COLUMNS = (
    *("Name", "Status", "Volume", "Capacity", "Access Modes", "StorageClass", "VolumeAttributesClass", "Age"),
    "+VolumeMode",
)
VOLUME_COLUMNS = (
    *("Name", "Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim", "StorageClass"),
    *("VolumeAttributesClass", "Reason", "Age", "+VolumeMode"),
)
CLASS_COLUMNS = ("Name", "Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", "Age")


def claim_cells(obj: Object, now: datetime) -> list[Any]:
    spec, status = obj["spec"], obj.get("status") or {}
    return [
        obj["metadata"]["name"],
        _phase(obj),
        spec.get("volumeName", ""),
        (status.get("capacity") or {}).get("storage", ""),
        _modes(status.get("accessModes") or ()),
        class_of(obj),
        spec.get("volumeAttributesClassName") or "<unset>",
        age(obj, now),
        spec.get("volumeMode", ""),
    ]


def volume_cells(obj: Object, now: datetime) -> list[Any]:
    spec, owner = obj["spec"], obj["spec"].get("claimRef") or {}
    return [
        obj["metadata"]["name"],
        (spec.get("capacity") or {}).get("storage", ""),
        _modes(spec.get("accessModes") or ()),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(obj),
        f"{owner.get('namespace', '')}/{owner['name']}" if owner.get("name") else "",
        class_of(obj),
        spec.get("volumeAttributesClassName") or "<unset>",
        (obj.get("status") or {}).get("reason", ""),
        age(obj, now),
        spec.get("volumeMode", ""),
    ]


def class_cells(obj: Object, now: datetime) -> list[Any]:
    is_default = (obj["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) == "true"
    return [
        obj["metadata"]["name"] + (" (default)" if is_default else ""),
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy", ""),
        obj.get("volumeBindingMode", ""),
        bool(obj.get("allowVolumeExpansion")),
        age(obj, now),
    ]


def _phase(obj: Object) -> str:
    return "Terminating" if "deletionTimestamp" in obj["metadata"] else str((obj.get("status") or {}).get("phase", ""))


def _modes(modes: Any) -> str:
    return ",".join(_SHORT.get(mode, mode) for mode in modes)
