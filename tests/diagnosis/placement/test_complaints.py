"""What the scheduler knows and the objects do not say: devices and claims that no sum of CPU and memory overrules."""

from datetime import timedelta
from typing import Any

import pytest

from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.pods import explain_pod
from grid.kube.objects import Event, Pod, StorageClass, Volume, VolumeClaim
from tests.diagnosis.placement.worlds import surroundings
from tests.diagnosis.situations import event_saying
from tests.support.builders import MOMENT, NAMESPACE, condition, decode, metadata, node, pod

ONE_POD = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"


def explain(message: str, *, knows_nodes: bool, minutes: float = 5, **status: Any) -> Diagnosis:
    """Of a pod for which two empty nodes have room."""
    conditions = [condition("PodScheduled", "False", "Unschedulable", message)] if message else []
    waiting = pod("w", requests={"cpu": "1"}, conditions=conditions, status={"phase": "Pending", **status})
    scheduling = surroundings([node("n1"), node("n2")], ()) if knows_nodes else None
    return explain_pod(decode(waiting, Pod), [], now=MOMENT + timedelta(minutes=minutes), scheduling=scheduling)


@pytest.mark.parametrize("knows_nodes", [True, False])
@pytest.mark.parametrize(
    ("complaint", "code", "severity", "words"),
    [
        (
            "node(s) exceed max volume count",
            "volume_limit",
            "wait",
            "2 nodes have as many volumes attached as they may",
        ),
        (ONE_POD, "one_pod", "wait", "another pod uses its volume, which one pod may use at a time (ReadWriteOncePod)"),
        (
            "cannot allocate all claims",
            "device_claim",
            "problem",
            "2 nodes cannot give it the devices that its claim asks for",
        ),
        (
            "node(s) did not pass Lab's own plugin",
            "unschedulable",
            "problem",
            "2 nodes: node(s) did not pass Lab's own plugin",
        ),
    ],
)
def test_complaint_that_is_not_computed_stands_in_the_sentence(
    complaint: str, code: str, severity: str, words: str, *, knows_nodes: bool
) -> None:
    message = (
        f"0/2 nodes are available: 2 {complaint}. preemption: 0/2 nodes are available: 2 No preemption victims found."
    )
    diagnosis = explain(message, knows_nodes=knows_nodes)
    assert (diagnosis.code, diagnosis.severity) == (code, severity)
    assert diagnosis.sentence == f"The scheduler finds no place for it: {words}."
    assert diagnosis.who
    assert diagnosis.next_step
    assert diagnosis.is_normal is None
    assert all("has room" not in row.what for row in diagnosis.table)


def test_computed_complaint_of_before_does_not_hide_the_other() -> None:
    message = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) exceed max volume count."
    assert explain(message, knows_nodes=True).code == "volume_limit"
    assert explain("0/2 nodes are available: 2 Insufficient cpu.", knows_nodes=True, minutes=0.2).code == "scheduling"


@pytest.mark.parametrize("knows_nodes", [True, False])
def test_nomination_is_a_preemption_only_after_a_refusal(*, knows_nodes: bool) -> None:
    chosen = explain("", knows_nodes=knows_nodes, minutes=0.2, nominatedNodeName="n1")
    assert chosen.sentence == "About to start: node n1 is chosen, and what this needs there is being prepared."
    assert (chosen.severity, chosen.who) == ("wait", "")
    assert explain("", knows_nodes=knows_nodes, nominatedNodeName="n1").who == "operator"
    refused = explain("0/2 nodes are available: 2 Insufficient cpu.", knows_nodes=knows_nodes, nominatedNodeName="n1")
    assert "pods of lower priority end there" in refused.sentence


GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb"
REFUSED = condition("PodScheduled", "False", "Unschedulable", "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")


def explain_gpus(
    nodes: list[dict[str, Any]], pods: list[dict[str, Any]] | None = None, *, gpus: str = "2"
) -> Diagnosis:
    waiting = pod("w", requests={"cpu": "1", GPU: gpus}, conditions=[REFUSED])
    now = MOMENT + timedelta(minutes=5)
    return explain_pod(decode(waiting, Pod), [], now=now, scheduling=surroundings(nodes, pods or []))


def broken(name: str, capacity: str, offered: str) -> dict[str, Any]:
    item = node(name)
    item["status"]["allocatable"] = {**item["status"]["allocatable"], GPU: offered}
    item["status"]["capacity"] = {**item["status"]["allocatable"], GPU: capacity}
    return item


@pytest.mark.parametrize(("offered", "numbers"), [("0", "none of them works"), ("1", "1 of them works")])
def test_capacity_above_allocatable_is_broken_not_small(offered: str, numbers: str) -> None:
    diagnosis = explain_gpus([broken("g1", "4", offered), node("cpu")])
    assert (diagnosis.code, diagnosis.severity, diagnosis.who) == ("broken_devices", "problem", "operator")
    assert diagnosis.sentence == (
        f"Node g1 has 4 GPUs, but {numbers} (nvidia.com/gpu); this needs 2 GPUs; of the others, 1 is too small."
    )
    assert diagnosis.next_step == "Ask an operator to look at the device plugin and the driver on g1."
    rows = {row.names[0]: (row.what, row.lasting) for row in diagnosis.table}
    assert rows["g1"] == (f"devices that do not work: {offered} of 4 GPUs offered, but 2 needed", "for_now")


def test_labels_tell_of_devices_whose_plugin_is_gone() -> None:
    gone = broken("g1", "0", "0")
    gone["metadata"]["labels"]["nvidia.com/gpu.count"] = "4"
    assert explain_gpus([gone]).code == "broken_devices"
    gone["status"]["allocatable"][MIG] = "7"
    assert explain_gpus([gone]).code == "too_large", "the GPUs are offered as slices"


def test_too_many_devices_are_too_many_though_some_are_broken() -> None:
    diagnosis = explain_gpus([broken("g1", "4", "0")], gpus="8")
    assert diagnosis.code == "too_large"
    assert "the largest has 4 GPUs" in diagnosis.sentence


def test_full_node_with_working_devices_is_waited_for() -> None:
    works = node("g2", extended={GPU: "2"})
    taker = pod("t", node="g2", phase="Running", requests={GPU: "2"})
    assert explain_gpus([broken("g1", "4", "0"), works], [taker]).code == "busy"


def test_device_that_no_node_has_is_called_absent() -> None:
    diagnosis = explain_gpus([node("n1"), node("n2")])
    assert diagnosis.sentence == "No node has a GPU, which this needs."
    assert diagnosis.next_step == "Choose a tier that does not need it, or ask your admin for nodes that have it."
    assert explain_gpus([node("n1", extended={MIG: "1"})]).sentence == "No node has nvidia.com/gpu, which this needs."
    assert explain_gpus([node("n1", extended={GPU: "1"})]).sentence.endswith("it needs 2 GPUs, the largest has 1 GPU.")


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


def explain_claim(
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
    diagnosis = explain_claim(scheduling, {"storageClassName": "fast"}, NO_FAST, minutes=minutes)
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
    assert explain_claim(scheduling, claim, *events).sentence == sentence


@pytest.mark.parametrize("claim", [{"storageClassName": "fast", "volumeName": "v"}, {"volumeName": "v"}])
def test_a_claim_that_is_bound_needs_no_class(claim: dict[str, Any]) -> None:
    assert (
        explain_claim(classes(), claim, message="0/1 nodes are available: 1 Insufficient cpu.").code != "storage_class"
    )


def test_claim_without_class_may_be_bound_late_until_missed() -> None:
    assert explain_claim(classes(), {}, message="0/1 nodes are available: 1 Insufficient cpu.").code != "storage_class"


def test_class_without_object_used_by_volumes_is_not_missing() -> None:
    small = {"metadata": metadata("v"), "spec": {"storageClassName": "manual", "capacity": {"storage": "5Gi"}}}
    claim = {"storageClassName": "manual", "resources": {"requests": {"storage": "10Gi"}}}
    volumes = {"v": decode(small, Volume)}
    assert explain_claim(classes("slow"), claim, volumes=volumes).code != "storage_class"
    assert explain_claim(classes("slow"), claim).code == "storage_class"


def test_failed_provisioning_is_told_in_the_words_of_the_driver() -> None:
    failed = event_saying(
        "ProvisioningFailed", 'failed to provision volume with StorageClass "slow": quota of disks is used up.'
    )
    diagnosis = explain_claim(classes("slow"), {"storageClassName": "slow"}, failed)
    assert diagnosis.sentence.endswith(
        'Its storage driver says: failed to provision volume with StorageClass "slow": quota of disks is used up.'
    )
    assert (diagnosis.severity, diagnosis.who) == ("problem", "admin")
    assert failed["message"] in diagnosis.evidence
