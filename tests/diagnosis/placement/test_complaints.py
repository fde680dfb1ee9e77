"""What the scheduler knows and the objects do not say: devices and claims that no sum of CPU and memory overrules.

Read `tests/golden/words-of-complaints.txt`.
"""

from datetime import timedelta
from typing import Any

from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.pods import explain_pod
from grid.kube.objects import Event, Pod, StorageClass, Volume, VolumeClaim
from tests.diagnosis.placement.worlds import as_read, surroundings
from tests.diagnosis.situations import event_saying
from tests.support.builders import MOMENT, NAMESPACE, condition, decode, metadata, node, pod
from tests.support.golden import assert_golden

VOLUMES = "node(s) exceed max volume count"
ONE_POD = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"


def explain(message: str, *, knows_nodes: bool, minutes: float = 5, **status: Any) -> Diagnosis:
    """Of a pod for which two empty nodes have room."""
    conditions = [condition("PodScheduled", "False", "Unschedulable", message)] if message else []
    waiting = pod("w", requests={"cpu": "1"}, conditions=conditions, status={"phase": "Pending", **status})
    scheduling = surroundings([node("n1"), node("n2")], ()) if knows_nodes else None
    return explain_pod(decode(waiting, Pod), [], now=MOMENT + timedelta(minutes=minutes), scheduling=scheduling)


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


UNBOUND = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"
NO_FAST = event_saying("ProvisioningFailed", 'storageclass.storage.k8s.io "fast" not found')


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


def of_complaints(*, knows_nodes: bool) -> dict[str, Diagnosis]:
    complaints = (VOLUMES, ONE_POD, "cannot allocate all claims", "node(s) did not pass Lab's own plugin")
    tried = "preemption: 0/2 nodes are available: 2 No preemption victims found."
    full = "0/2 nodes are available: 2 Insufficient cpu."
    chosen: dict[str, Any] = {"nominatedNodeName": "n1", "knows_nodes": knows_nodes}
    return {
        **{
            complaint: explain(f"0/2 nodes are available: 2 {complaint}. {tried}", knows_nodes=knows_nodes)
            for complaint in complaints
        },
        "nominated a moment ago": explain("", minutes=0.2, **chosen),
        "nominated five minutes ago": explain("", **chosen),
        "nominated after a refusal": explain(full, **chosen),
        "one complaint is computed": explain(
            f"0/2 nodes are available: 1 Insufficient cpu, 1 {VOLUMES}.", knows_nodes=knows_nodes
        ),
        "computed, and not true any more": explain(full, knows_nodes=knows_nodes, minutes=0.2),
    }


def of_devices() -> dict[str, Diagnosis]:
    gone, sliced = broken("g1", "0", "0"), broken("g1", "0", "0")
    for each in (gone, sliced):
        each["metadata"]["labels"]["nvidia.com/gpu.count"] = "4"
    sliced["status"]["allocatable"][MIG] = "7"
    works, taker = node("g2", extended={GPU: "2"}), pod("t", node="g2", phase="Running", requests={GPU: "2"})
    return {
        "none of four works": explain_gpus([broken("g1", "4", "0"), node("cpu")]),
        "one of four works": explain_gpus([broken("g1", "4", "1"), node("cpu")]),
        "a label tells of devices": explain_gpus([gone]),
        "a label tells of devices, and slices are offered": explain_gpus([sliced]),
        "eight are too many for four broken ones": explain_gpus([broken("g1", "4", "0")], gpus="8"),
        "working ones are taken": explain_gpus([broken("g1", "4", "0"), works], [taker]),
        "no node has any": explain_gpus([node("n1"), node("n2")]),
        "slices alone": explain_gpus([node("n1", extended={MIG: "1"})]),
        "one where two are needed": explain_gpus([node("n1", extended={GPU: "1"})]),
    }


def of_claims() -> dict[str, Diagnosis]:
    fast, none, bound = {"storageClassName": "fast"}, {"storageClassName": ""}, {"volumeName": "v"}
    waits = event_saying("ExternalProvisioning", "Waiting for a volume")
    failed = 'failed to provision volume with StorageClass "slow": quota of disks is used up.'
    small = {"metadata": metadata("v"), "spec": {"storageClassName": "manual", "capacity": {"storage": "5Gi"}}}
    manual = {"storageClassName": "manual", "resources": {"requests": {"storage": "10Gi"}}}
    others, full = classes("slow", default="standard"), "0/1 nodes are available: 1 Insufficient cpu."
    return {
        "no such class": explain_claim(others, fast, NO_FAST),
        "no such class, at once": explain_claim(others, fast, NO_FAST, minutes=0),
        "no class at all": explain_claim(classes(), fast, NO_FAST),
        "no class at all, at once": explain_claim(classes(), fast, NO_FAST, minutes=0),
        "the class was made since": explain_claim(classes("fast"), fast, NO_FAST),
        "classes not read, an event says so": explain_claim(None, fast, NO_FAST),
        "classes not read, no event": explain_claim(None, fast),
        "classes not read, a newer event": explain_claim(None, fast, NO_FAST, waits),
        "classes not read, an event about another class": explain_claim(None, {"storageClassName": "faster"}, NO_FAST),
        "no class named, no default": explain_claim(classes(), {}),
        "no class named, a default": explain_claim(classes(default="slow"), {}),
        "no class wanted": explain_claim(classes("slow"), none),
        "no class named, classes not read": explain_claim(None, {}),
        "bound, of a class that is gone": explain_claim(classes(), {**fast, **bound}, message=full),
        "bound, of no class": explain_claim(classes(), bound, message=full),
        "may be bound late": explain_claim(classes(), {}, message=full),
        "a class without an object, used by a volume": explain_claim(
            classes("slow"), manual, volumes={"v": decode(small, Volume)}
        ),
        "a class without an object": explain_claim(classes("slow"), manual),
        "provisioning failed": explain_claim(
            classes("slow"), {"storageClassName": "slow"}, event_saying("ProvisioningFailed", failed)
        ),
    }


def test_what_only_the_scheduler_knows_is_told_as_stored() -> None:
    situations = of_complaints(knows_nodes=True) | of_devices() | of_claims()
    situations |= {f"{name} (nodes not read)": why for name, why in of_complaints(knows_nodes=False).items()}
    blocks = []
    for name, why in situations.items():
        blocks += [f"# {name}", as_read(why), *(f"> {text}" for text in why.evidence)]
    assert_golden("words-of-complaints", "\n".join(blocks), ending="txt")
