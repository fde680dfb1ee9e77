"""Which volume a claim gets, and what becomes of a volume: the rules of Kubernetes' binder, as pure functions.

A claim and a volume are bound by naming each other: the volume's `claimRef` is written first and with the version that was read, so of two
claims only one can win it; the claim's `volumeName` is written once and never changes.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from grid.core.quantity import parse_quantity
from grid.sandbox.client import annotations_of, is_terminating, labels_of, name_of, namespace_of, uid_of
from grid.sandbox.controllers.selectors import matches_labels
from grid.sandbox.storage import PROVISIONED_BY, SELECTED_NODE, class_of, requested_storage

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
_NO_VOLUME = "no persistent volumes available for this claim and no storage class is set"
_MISBOUND = "Two claims are bound to the same volume, this one is bound incorrectly"

_Read = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ClaimStep:
    """The next step for a claim: the name of the volume to bind it to, or its phase and an event that says why it has none.

    `provisioner` is who shall make a volume for it. A step without any of these is none.
    """

    volume: str = ""
    phase: str = ""
    reason: str = ""
    message: str = ""
    type: Literal["Normal", "Warning"] = "Normal"
    provisioner: str = ""


@dataclass(frozen=True, slots=True)
class VolumeStep:
    """The next step for a volume: its phase, the reason and message of a failure, and what of its `claimRef` goes."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    gives_up: Literal["", "claim", "uid"] = ""


def step_of_claim(claim: _Read, volumes: Mapping[str, _Read], classes: Mapping[str, _Read]) -> ClaimStep:
    """Return the next step for a claim, given all volumes and storage classes by name."""
    named = claim["spec"].get("volumeName") or ""
    if BIND_COMPLETED in annotations_of(claim):
        return _step_of_bound(claim, named, volumes.get(named))
    if named:
        return _step_of_requesting(claim, named, volumes.get(named))
    waits = waits_for_pod(claim, classes) and SELECTED_NODE not in annotations_of(claim)
    volume = smallest_fit(
        claim, (candidate for candidate in volumes.values() if not waits or is_reserved(candidate, claim))
    )
    if volume is not None:
        return ClaimStep(volume=name_of(volume))
    if waits:
        message = "waiting for first consumer to be created before binding"
        return ClaimStep(phase="Pending", reason="WaitForFirstConsumer", message=message)
    return _step_of_needing(class_of(claim), classes)


def _step_of_bound(claim: _Read, named: str, volume: _Read | None) -> ClaimStep:
    if volume is None:
        lost = "PersistentVolume" if named else "reference to PersistentVolume"
        verb = f"lost {'its ' if named else ''}{lost}"
        return ClaimStep("", "Lost", "ClaimLost", f"Bound claim has {verb}. Data on the volume is lost!", "Warning")
    if volume["spec"].get("claimRef") and not is_reserved(volume, claim):
        return ClaimStep("", "Lost", "ClaimMisbound", _MISBOUND, "Warning")
    return ClaimStep(volume=named)


def _step_of_requesting(claim: _Read, named: str, volume: _Read | None) -> ClaimStep:
    if volume is None:
        return ClaimStep() if is_from_before(claim) else ClaimStep(phase="Pending")
    if is_reserved(volume, claim):
        return ClaimStep(volume=named)
    if volume["spec"].get("claimRef"):
        message = f'volume "{named}" already bound to a different claim.'
        return ClaimStep("", "Pending", "FailedBinding", message, "Warning")
    problem = _mismatch(claim, volume)
    if problem:
        message = f'Cannot bind to requested volume "{named}": {problem}'
        return ClaimStep("", "Pending", "VolumeMismatch", message, "Warning")
    return ClaimStep(volume=named)


def _step_of_needing(name: str, classes: Mapping[str, _Read]) -> ClaimStep:
    """Return the step for a claim of a class that no volume fits."""
    if not name:
        return ClaimStep("", "Pending", "FailedBinding", _NO_VOLUME)
    storage_class = classes.get(name)
    if storage_class is None:
        problem = f'storageclass.storage.k8s.io "{name}" not found'
        return ClaimStep("", "Pending", "ProvisioningFailed", problem, "Warning")
    provisioner = str(storage_class["provisioner"])
    if provisioner.startswith("kubernetes.io/"):
        problem = f"no volume plugin matched name: {provisioner}"
        return ClaimStep("", "Pending", "ProvisioningFailed", problem, "Warning")
    message = (
        f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the system "
        "administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered."
    )
    return ClaimStep("", "Pending", "ExternalProvisioning", message, provisioner=provisioner)


def is_from_before(claim: _Read) -> bool:
    """Return True for a claim that was bound when this cluster had no PersistentVolumes."""
    is_bound = (claim.get("status") or {}).get("phase") == "Bound" and bool(claim["spec"].get("volumeName"))
    return is_bound and BIND_COMPLETED not in annotations_of(claim)


def step_of_volume(volume: _Read, claim: _Read | None) -> VolumeStep:
    """Return the next step for a volume, given the claim of the name in its `claimRef`."""
    owner = volume["spec"].get("claimRef") or {}
    if not owner.get("uid"):
        return VolumeStep("Available")
    if claim is None or uid_of(claim) != owner["uid"]:
        return _step_of_released(volume)
    bound_to = claim["spec"].get("volumeName") or ""
    if bound_to == name_of(volume):
        return VolumeStep("Bound")
    if not bound_to:
        return VolumeStep()
    if PROVISIONED_BY in annotations_of(volume) and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
        return VolumeStep("Released")
    return VolumeStep(gives_up="claim" if BOUND_BY_CONTROLLER in annotations_of(volume) else "uid")


def _step_of_released(volume: _Read) -> VolumeStep:
    """Return the step for a volume whose claim is gone. Its provisioner deletes it; nobody deletes what an admin made."""
    policy = volume["spec"].get("persistentVolumeReclaimPolicy")
    phase = (volume.get("status") or {}).get("phase")
    if phase not in ("Released", "Failed"):
        return VolumeStep("Released")
    if policy == "Recycle":
        return VolumeStep("Failed", "VolumeFailedRecycle", "No recycler plugin found for the volume!")
    if policy == "Delete" and PROVISIONED_BY not in annotations_of(volume):
        message = (
            f'error getting deleter volume plugin for volume "{name_of(volume)}": no deletable volume plugin matched'
        )
        return VolumeStep("Failed", "VolumeFailedDelete", message)
    return VolumeStep("Released")


def smallest_fit(
    claim: _Read,
    volumes: Iterable[_Read],
    *,
    taken: Collection[str] = (),
    reaches: Callable[[_Read], bool] = lambda volume: True,
) -> _Read | None:
    """Return the volume that a claim may take: the one that is reserved for it, or else the smallest."""
    fitting = [
        volume
        for volume in volumes
        if name_of(volume) not in taken
        and not is_terminating(volume)
        and _is_free(volume, claim)
        and not _mismatch(claim, volume)
        and (claim["spec"].get("selector") is None or matches_labels(claim["spec"]["selector"], labels_of(volume)))
        and reaches(volume)
    ]
    return min(
        fitting, key=lambda volume: (not is_reserved(volume, claim), size_of(volume), name_of(volume)), default=None
    )


def waits_for_pod(claim: _Read, classes: Mapping[str, _Read]) -> bool:
    """Return True for a claim whose class has its volume chosen or made only once a pod has been given a node."""
    return classes.get(class_of(claim), {}).get("volumeBindingMode") == "WaitForFirstConsumer"


def is_reserved(volume: _Read, claim: _Read) -> bool:
    """Return True for a volume that names the claim; one without a uid was reserved before the claim was made."""
    owner = volume["spec"].get("claimRef") or {}
    same = (owner.get("namespace"), owner.get("name")) == (namespace_of(claim), name_of(claim))
    return same and owner.get("uid") in (None, "", uid_of(claim))


def size_of(volume: _Read) -> Decimal:
    return parse_quantity((volume["spec"].get("capacity") or {}).get("storage", "0"))


def _is_free(volume: _Read, claim: _Read) -> bool:
    if volume["spec"].get("claimRef"):
        return is_reserved(volume, claim)
    return (volume.get("status") or {}).get("phase", "Available") in ("Available", "Pending")


def _mismatch(claim: _Read, volume: _Read) -> str:
    """Return why a volume is not what the claim asks for, or ""."""
    wanted, offered = claim["spec"], volume["spec"]
    if size_of(volume) < requested_storage(wanted):
        return "requested PV is too small"
    if class_of(volume) != class_of(claim):
        return "storageClassName does not match"
    if offered.get("volumeMode", "Filesystem") != wanted.get("volumeMode", "Filesystem"):
        return "incompatible volumeMode"
    if not set(wanted.get("accessModes") or ()) <= set(offered.get("accessModes") or ()):
        return "incompatible accessMode"
    return ""
