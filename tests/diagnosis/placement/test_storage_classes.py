"""A claim for which no volume is made names its missing storage class, or that the cluster has no default one, and what exists."""

from datetime import timedelta
from typing import Any

import pytest

from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.pods import explain_pod
from grid.kube.objects import Event, Pod, StorageClass, Volume, VolumeClaim
from tests.diagnosis.placement.worlds import surroundings
from tests.diagnosis.situations import event_saying
from tests.support.builders import MOMENT, NAMESPACE, condition, decode, metadata, node, pod

UNBOUND = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"
NO_FAST = event_saying("ProvisioningFailed", 'storageclass.storage.k8s.io "fast" not found')
MISSING = "The project's files have no volume: there is no storage class fast."
NO_DEFAULT = "The project's files have no volume: it names no storage class, and the cluster has no default one."
UNTOLD = "The project's files have no volume yet (storage class fast)."


def classes(*names: str, default: str = "") -> dict[str, StorageClass]:
    marks = {default: {"storageclass.kubernetes.io/is-default-class": "true"}}
    every = [
        {"metadata": metadata(name, annotations=marks.get(name, {}))}
        for name in (*names, *([default] if default else []))
    ]
    return {item["metadata"]["name"]: decode(item, StorageClass) for item in every}


def explain(
    scheduling: dict[str, StorageClass] | None,
    claim: dict[str, Any],
    *events: Any,
    minutes: int = 5,
    message: str = UNBOUND,
    volumes: dict[str, Volume] | None = None,
) -> Diagnosis:
    mounts = [{"name": "project", "persistentVolumeClaim": {"claimName": "c"}}]
    unscheduled = condition("PodScheduled", "False", "Unschedulable", message)
    waits = decode(pod("w", spec={"volumes": mounts}, conditions=[unscheduled]), Pod)
    named = decode({"metadata": metadata("c", namespace=NAMESPACE), "spec": claim}, VolumeClaim)
    claim_events = [decode(event, Event) for event in events]
    world = surroundings(
        [node("n1")],
        claims={f"{NAMESPACE}/c": named},
        classes=scheduling,
        volumes=volumes,
        claim_events=lambda asked: claim_events if asked is named else (),
    )
    return explain_pod(waits, [], now=MOMENT + timedelta(minutes=minutes), scheduling=world)


@pytest.mark.parametrize("minutes", [0, 5])
@pytest.mark.parametrize(
    ("scheduling", "step"),
    [
        (
            classes("slow", default="standard"),
            "create the class, or to make the claim again with one that exists: slow and standard.",
        ),
        (classes(), "create the class."),
    ],
)
def test_missing_class_is_named_at_once_with_existing_ones(
    scheduling: dict[str, StorageClass], step: str, minutes: int
) -> None:
    diagnosis = explain(scheduling, {"storageClassName": "fast"}, NO_FAST, minutes=minutes)
    assert (diagnosis.code, diagnosis.severity, diagnosis.who) == ("storage_class", "problem", "admin")
    assert (diagnosis.sentence, diagnosis.next_step) == (MISSING, f"Ask your admin to {step}")
    assert diagnosis.evidence == (UNBOUND, NO_FAST["message"])


@pytest.mark.parametrize(
    ("scheduling", "claim", "events", "sentence"),
    [
        (classes("fast"), {"storageClassName": "fast"}, [NO_FAST], UNTOLD),
        (None, {"storageClassName": "fast"}, [NO_FAST], MISSING),
        (None, {"storageClassName": "fast"}, [], UNTOLD),
        (
            None,
            {"storageClassName": "fast"},
            [NO_FAST, event_saying("ExternalProvisioning", "Waiting for a volume")],
            UNTOLD,
        ),
        (None, {"storageClassName": "faster"}, [NO_FAST], UNTOLD.replace("fast)", "faster)")),
        (classes(), {}, [], NO_DEFAULT),
        (classes(default="slow"), {}, [], "The project's files have no volume yet."),
        (classes("slow"), {"storageClassName": ""}, [], "The project's files have no volume yet."),
        (None, {}, [], "The project's files have no volume yet."),
    ],
)
def test_class_is_called_missing_only_when_known_so(
    scheduling: dict[str, StorageClass] | None, claim: dict[str, Any], events: list[Any], sentence: str
) -> None:
    assert explain(scheduling, claim, *events).sentence == sentence


@pytest.mark.parametrize("claim", [{"storageClassName": "fast", "volumeName": "v"}, {"volumeName": "v"}])
def test_a_claim_that_is_bound_needs_no_class(claim: dict[str, Any]) -> None:
    assert explain(classes(), claim, message="0/1 nodes are available: 1 Insufficient cpu.").code != "storage_class"


def test_claim_without_class_may_be_bound_late_until_missed() -> None:
    assert explain(classes(), {}, message="0/1 nodes are available: 1 Insufficient cpu.").code != "storage_class"


def test_class_without_object_used_by_volumes_is_not_missing() -> None:
    small = {"metadata": metadata("v"), "spec": {"storageClassName": "manual", "capacity": {"storage": "5Gi"}}}
    claim = {"storageClassName": "manual", "resources": {"requests": {"storage": "10Gi"}}}
    volumes = {"v": decode(small, Volume)}
    assert explain(classes("slow"), claim, volumes=volumes).code != "storage_class"
    assert explain(classes("slow"), claim).code == "storage_class"


def test_failed_provisioning_is_told_in_the_words_of_the_driver() -> None:
    failed = event_saying(
        "ProvisioningFailed", 'failed to provision volume with StorageClass "slow": quota of disks is used up.'
    )
    diagnosis = explain(classes("slow"), {"storageClassName": "slow"}, failed)
    assert diagnosis.sentence.endswith("(storage class slow). Its storage driver says: quota of disks is used up.")
    assert (diagnosis.severity, diagnosis.who) == ("problem", "admin")
    assert failed["message"] in diagnosis.evidence
