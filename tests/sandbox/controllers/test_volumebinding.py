"""The rules of binding: which volume a claim takes and what becomes of a volume; and that no order of events binds anything twice."""

import random
from typing import Any

import pytest

from grid.sandbox.client import Object, annotations_of, name_of, uid_of
from grid.sandbox.controllers.volumebinding import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    smallest_fit,
    step_of_claim,
    step_of_volume,
)
from grid.sandbox.storage import PROVISIONED_BY, SELECTED_NODE

LATE = {"late": {"provisioner": "example.com/disk", "volumeBindingMode": "WaitForFirstConsumer"}}


def claim(
    name: str = "files", size: str = "2Gi", uid: str = "1", notes: dict[str, str] | None = None, **spec: Any
) -> Object:
    meta = {"name": name, "namespace": "default", "uid": uid, "annotations": notes or {}}
    wanted = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": size}},
        "volumeMode": "Filesystem",
    }
    return {"metadata": meta, "spec": {**wanted, **spec}, "status": {"phase": "Pending"}}


def volume(name: str = "disk", size: str = "2Gi", phase: str = "Available", **spec: Any) -> Object:
    offered = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem", **spec}
    return {"metadata": {"name": name, "annotations": {}}, "spec": offered, "status": {"phase": phase}}


def owner(name: str = "files", uid: str = "1") -> Object:
    return {"namespace": "default", "name": name, "uid": uid}


@pytest.mark.parametrize(
    ("other", "fits"),
    [
        ({}, True),
        ({"size": "3Gi"}, True),
        ({"size": "1Gi"}, False),
        ({"phase": "Released"}, False),
        ({"phase": "Pending"}, True),
        ({"claimRef": owner()}, True),
        ({"claimRef": owner(uid="")}, True),
        ({"claimRef": owner(uid="2")}, False),
        ({"claimRef": owner(name="other")}, False),
        ({"storageClassName": "fast"}, False),
        ({"volumeMode": "Block"}, False),
        ({"accessModes": ["ReadOnlyMany"]}, False),
        ({"accessModes": ["ReadOnlyMany", "ReadWriteOnce"]}, True),
    ],
)
def test_a_volume_fits_by_size_class_mode_and_owner(other: dict[str, Any], fits: bool) -> None:
    assert (smallest_fit(claim(), [volume(**other)]) is not None) is fits


def test_selected_reserved_and_smallest_volumes_are_preferred() -> None:
    mine = volume("mine", "9Gi", claimRef=owner(uid=""))
    assert smallest_fit(claim(), [volume(), mine]) == mine
    assert smallest_fit(claim(), [volume("b", "3Gi"), volume("a", "2Gi")]) == volume("a", "2Gi")
    marked = volume("marked", "9Gi")
    marked["metadata"]["labels"] = {"tier": "gold"}
    selecting = claim(selector={"matchLabels": {"tier": "gold"}})
    assert smallest_fit(selecting, [volume(), marked]) == marked
    marked["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert smallest_fit(selecting, [volume(), marked]) is None


def test_claim_waiting_for_pod_takes_only_its_reserved_volume() -> None:
    waiting = claim(storageClassName="late")
    free = volume(storageClassName="late")
    assert step_of_claim(waiting, {"disk": free}, LATE).reason == "WaitForFirstConsumer"
    reserved = volume(storageClassName="late", claimRef=owner())
    assert step_of_claim(waiting, {"disk": reserved}, LATE).volume == "disk"
    step = step_of_claim(claim(storageClassName="late", notes={SELECTED_NODE: "a"}), {}, LATE)
    assert (step.reason, step.provisioner) == ("ExternalProvisioning", "example.com/disk")


BOUND = {BIND_COMPLETED: "yes"}


@pytest.mark.parametrize(
    ("waiting", "disk", "reason", "message"),
    [
        (claim(notes=BOUND, volumeName="gone"), {}, "ClaimLost", "Bound claim has lost its PersistentVolume."),
        (claim(notes=BOUND), {}, "ClaimLost", "Bound claim has lost reference to PersistentVolume."),
        (claim(notes=BOUND, volumeName="disk"), {"claimRef": owner(uid="2")}, "ClaimMisbound", "Two claims are bound"),
        (claim(volumeName="disk"), {"size": "1Gi"}, "VolumeMismatch", 'Cannot bind to requested volume "disk": '),
        (claim(volumeName="disk"), {"claimRef": owner("other")}, "FailedBinding", 'volume "disk" already bound to a'),
        (claim(storageClassName="fast"), {}, "ProvisioningFailed", 'storageclass.storage.k8s.io "fast" not found'),
        (claim(storageClassName="local"), {}, "ProvisioningFailed", "no volume plugin matched name: kubernetes.io/no"),
        (claim(), {"size": "1Gi"}, "FailedBinding", "no persistent volumes available for this claim and no storage"),
    ],
)
def test_claim_without_volume_says_why(waiting: Object, disk: dict[str, Any], reason: str, message: str) -> None:
    local = {"local": {"provisioner": "kubernetes.io/no-provisioner"}}
    step = step_of_claim(waiting, {"disk": volume(**disk)}, local)
    assert (step.volume, step.reason) == ("", reason)
    assert step.message.startswith(message)


def test_bound_claim_keeps_its_volume() -> None:
    bound = claim(notes=BOUND, volumeName="disk")
    assert step_of_claim(bound, {"disk": volume(claimRef=owner())}, {}).volume == "disk"


def test_a_volume_follows_its_claim() -> None:
    taken = volume(phase="Bound", claimRef=owner())
    assert step_of_volume(volume(), None).phase == "Available"
    assert step_of_volume(volume(claimRef=owner(uid="")), claim()).phase == "Available"
    assert step_of_volume(taken, claim(volumeName="disk")).phase == "Bound"
    assert step_of_volume(taken, None).phase == "Released"
    assert step_of_volume(taken, claim(uid="2", volumeName="disk")).phase == "Released"
    assert step_of_volume(taken, claim()).phase == "", "the claim is about to be bound to it"
    assert step_of_volume(taken, claim(volumeName="another")).gives_up == "uid"
    taken["metadata"]["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
    assert step_of_volume(taken, claim(volumeName="another")).gives_up == "claim"


def test_a_released_volume_is_deleted_by_its_provisioner_alone() -> None:
    released = volume(phase="Released", claimRef=owner(), persistentVolumeReclaimPolicy="Delete")
    assert step_of_volume(released, None).reason == "VolumeFailedDelete"
    released["metadata"]["annotations"] = {PROVISIONED_BY: "example.com/disk"}
    assert step_of_volume(released, None).phase == "Released"
    recycled = volume(phase="Released", claimRef=owner(), persistentVolumeReclaimPolicy="Recycle")
    assert step_of_volume(recycled, None).reason == "VolumeFailedRecycle"


class _Cluster:
    """Claims and volumes on a server that refuses writes on old copies, and a binder whose view of them is behind."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.claims: dict[str, Object] = {}
        self.volumes: dict[str, Object] = {}
        self.seen: tuple[dict[str, Object], dict[str, Object]] = ({}, {})
        self.count = 0

    def run(self, steps: int) -> None:
        for _ in range(steps):
            act = self.rng.choice(
                (self._add_claim, self._add_volume, self._remove, self._look, self._bind, self._bind, self._sync)
            )
            act()
            self._check()

    def settle(self) -> None:
        for _ in range(60):
            self._look()
            self._bind()
            self._sync()
            self._check()

    def _number(self) -> int:
        self.count += 1
        return self.count

    def _add_claim(self) -> None:
        name = self.rng.choice("abcd")
        if name not in self.claims:
            named: dict[str, Any] = {"volumeName": self.rng.choice("vwxyz")} if self.rng.random() < 0.2 else {}
            self.claims[name] = claim(name, f"{self.rng.randint(1, 3)}Gi", str(self._number()), **named)

    def _add_volume(self) -> None:
        name = self.rng.choice("vwxyz")
        if name not in self.volumes:
            reserved: dict[str, Any] = (
                {"claimRef": owner(self.rng.choice("abcd"), "")} if self.rng.random() < 0.3 else {}
            )
            self.volumes[name] = volume(name, f"{self.rng.randint(1, 3)}Gi", **reserved)

    def _remove(self) -> None:
        kind = self.rng.choice((self.claims, self.volumes))
        if kind and self.rng.random() < 0.4:
            del kind[self.rng.choice(sorted(kind))]

    def _look(self) -> None:
        self.seen = ({**self.claims}, {**self.volumes})

    def _write(self, kind: dict[str, Object], old: Object, new: Object) -> bool:
        """False for a write on a copy that is not the server's any more: here every change is a new object."""
        if kind.get(name_of(old)) is not old:
            return False
        kind[name_of(old)] = new
        return True

    def _bind(self) -> None:
        claims, volumes = self.seen
        if not claims:
            return
        claim = claims[self.rng.choice(sorted(claims))]
        step = step_of_claim(claim, volumes, {})
        if not step.volume:
            return
        chosen = volumes[step.volume]
        if not (chosen["spec"].get("claimRef") or {}).get("uid"):
            notes = {} if chosen["spec"].get("claimRef") else {BOUND_BY_CONTROLLER: "yes"}
            ours = {"claimRef": owner(name_of(claim), uid_of(claim))}
            new = {**chosen, "metadata": {**chosen["metadata"], "annotations": notes}, "spec": chosen["spec"] | ours}
            if not self._write(self.volumes, chosen, new):
                return
        if self.rng.random() < 0.8 and BIND_COMPLETED not in annotations_of(claim):  # or it is killed here
            meta = {**claim["metadata"], "annotations": {BIND_COMPLETED: "yes"}}
            self._write(
                self.claims, claim, {**claim, "metadata": meta, "spec": claim["spec"] | {"volumeName": step.volume}}
            )

    def _sync(self) -> None:
        for name, volume in self.seen[1].items():
            ref = volume["spec"].get("claimRef") or {}
            # As the binder does: a claim that is not in its view is asked for.
            known = self.seen[0].get(ref.get("name", ""))
            if known is None or uid_of(known) != ref.get("uid"):
                known = self.claims.get(ref.get("name", ""))
            step = step_of_volume(volume, known)
            spec = {**volume["spec"]}
            if step.gives_up == "claim":
                del spec["claimRef"]
            elif step.gives_up == "uid":
                spec["claimRef"] = {**ref, "uid": ""}
            phase = step.phase or ("Available" if step.gives_up else volume["status"]["phase"])
            if spec != volume["spec"] or phase != volume["status"]["phase"]:
                self._write(self.volumes, self.seen[1][name], {**volume, "spec": spec, "status": {"phase": phase}})

    def bound(self) -> list[tuple[str, str]]:
        """Each claim with its volume, where both name each other and the claim says so."""
        pairs = []
        for name, claim in self.claims.items():
            mine = self.volumes.get(claim["spec"].get("volumeName", ""))
            if mine and BIND_COMPLETED in annotations_of(claim) and self._owner_of(mine) == (name, uid_of(claim)):
                pairs.append((name, name_of(mine)))
        return pairs

    @staticmethod
    def _owner_of(volume: Object) -> tuple[str, str]:
        ref = volume["spec"].get("claimRef") or {}
        return ref.get("name", ""), ref.get("uid", "")

    def _check(self) -> None:
        volumes = [mine for _, mine in self.bound()]
        assert len(volumes) == len({*volumes}), "a volume is bound to two claims"


def test_claim_and_volume_are_bound_once_in_any_order() -> None:
    for seed in range(300):
        _check_order(seed)


def _check_order(seed: int) -> None:
    cluster = _Cluster(random.Random(seed))
    cluster.run(60)
    cluster.settle()
    for name, claim in cluster.claims.items():
        holding = [volume for volume in cluster.volumes.values() if cluster._owner_of(volume) == (name, uid_of(claim))]
        assert len(holding) <= 1, "two volumes are kept for one claim"
        free = [volume for volume in cluster.volumes.values() if smallest_fit(claim, [volume]) and not holding]
        waits = BIND_COMPLETED not in annotations_of(claim) and not claim["spec"].get("volumeName")
        assert not (waits and free), "a claim waits beside a volume that fits"
