"""Words of Kubernetes about volumes that the API server and the controllers of the embedded cluster share."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from grid.core.labels import MANAGER
from grid.core.quantity import parse_quantity

PROVISIONER = f"{MANAGER}/directory"
"""The provisioner of this cluster: a volume is a directory of this machine."""

CLASSES_RESOURCE = "storageclasses.storage.k8s.io"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
CLASS_BEFORE = "volume.beta.kubernetes.io/storage-class"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
PROVISIONER_WANTED = "volume.kubernetes.io/storage-provisioner"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
VOLUME_PROTECTION = "kubernetes.io/pv-protection"


def class_of(claim: Mapping[str, Any]) -> str:
    """Return the name of a claim's or a volume's storage class, or ""."""
    named = (claim["metadata"].get("annotations") or {}).get(CLASS_BEFORE)
    return str(named or claim["spec"].get("storageClassName") or "")


def default_class(classes: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the name of the class for claims that name none: of several the newest, as everywhere; "" when there is none."""
    marked = [
        (str(storage_class["metadata"].get("creationTimestamp", "")), name)
        for name, storage_class in sorted(classes.items(), reverse=True)
        if (storage_class["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) == "true"
    ]
    return max(marked, key=lambda item: item[0], default=("", ""))[1]


def requested_storage(spec: Mapping[str, Any]) -> Decimal:
    """Return the size that a claim asks for, in bytes."""
    return parse_quantity(((spec.get("resources") or {}).get("requests") or {}).get("storage", "0"))
