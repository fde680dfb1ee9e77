"""What a person is told about a pod without a node, case by case and for every message recorded from a real scheduler."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from grid.core.labels import NODE_POOL
from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.held import scheduler_message
from grid.diagnosis.pods import explain_pod
from grid.diagnosis.scheduling import counted_reasons, promised_size
from grid.kube.objects import Event, Pod
from tests.diagnosis.placement.worlds import as_read, surroundings
from tests.diagnosis.situations import Case, ago, assert_told_as_stored, event_saying
from tests.support.builders import MOMENT, condition, decode, node, pod
from tests.support.golden import assert_golden

GPU: dict[str, Any] = {"nodeSelector": {NODE_POOL: "default-gpu"}}
FILES: dict[str, Any] = {
    "volumes": [{"name": "project", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "tmp", "ephemeral": {}}]
}
NO_SCRATCH = (
    "0/3 nodes are available: waiting for ephemeral volume controller to create "
    'the persistentvolumeclaim "p-tmp". not found'
)
CLOSED = (
    "0/9 nodes are available: 2 node(s) were unschedulable, 7 node(s) didn't match Pod's node affinity/selector. {rest}"
)
MISMATCH = "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector. {rest}"
HOPELESS = (
    "no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
)
NO_VICTIMS = (
    "no new claims to deallocate, preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod."
)


def waiting_for_a_node(message: str, *, age: float = 120, **more: Any) -> dict[str, Any]:
    unscheduled = condition("PodScheduled", "False", "Unschedulable", message)
    created = MOMENT - timedelta(seconds=age)
    return pod("p", conditions=[unscheduled] if message else [], created=created, **{"spec": GPU, **more})


NO_CPU = "0/3 nodes are available: 3 Insufficient cpu."
ALL_TAINTED = "0/3 nodes are available: 3 node(s) had untolerated taint(s)."
AT_MAXIMUM = "1 max node group size reached"
FAILED = "1 in backoff after failed scale-up"
OTHER_POOLS = "2 node(s) didn't match Pod's node affinity/selector"
SCALE_UP = "pod triggered scale-up: [{default-gpu 0->1 (max: 2)}]"
CASES = [
    Case("young and nothing said", waiting_for_a_node("", age=3)),
    Case("scheduler down", waiting_for_a_node("", age=90)),
    Case("first impression of an empty pool", waiting_for_a_node(MISMATCH.format(rest=HOPELESS), age=5)),
    Case("almost a minute old", waiting_for_a_node("", age=59)),
    Case("a minute old", waiting_for_a_node("", age=60)),
    Case("said by an event alone", waiting_for_a_node(""), [event_saying("FailedScheduling", ALL_TAINTED), event_saying("Other", "")]),
    Case("of no pool", waiting_for_a_node(MISMATCH.format(rest=HOPELESS), spec={})),
    Case(
        "scale-up of an unknown pool",
        waiting_for_a_node("", age=200),
        [event_saying("TriggeredScaleUp", "pod triggered scale-up", seconds=900)]
    ),
    Case(
        "scale-up under way",
        waiting_for_a_node(MISMATCH.format(rest=HOPELESS), age=200),
        [event_saying("FailedScheduling", "x", seconds=100), event_saying("TriggeredScaleUp", SCALE_UP, seconds=90)]
    ),
    Case(
        "scale-up that never came",
        waiting_for_a_node(MISMATCH.format(rest=HOPELESS), age=2000),
        [event_saying("TriggeredScaleUp", SCALE_UP, seconds=1200)]
    ),
    *(
        Case(name, waiting_for_a_node(message), [event_saying("NotTriggerScaleUp", f"pod didn't trigger scale-up: {why}")])
        for name, message, why in (
            (
                "pool at its maximum",
                f"0/3 nodes are available: 3 Insufficient nvidia.com/gpu. {NO_VICTIMS}",
                f"2 Insufficient nvidia.com/gpu, {AT_MAXIMUM}",
            ),
            ("pool at its maximum, the scheduler silent", "", AT_MAXIMUM),
            ("other groups have no GPU, the scheduler silent", "", f"1 Insufficient cpu, 2 Insufficient nvidia.com/gpu, {AT_MAXIMUM}"),
            (
                "a claim that is missing at every group, the scheduler silent",
                "", f'2 persistentvolumeclaim "absent" not found, {AT_MAXIMUM}',
            ),
            ("too large for a pool at its maximum", f"{NO_CPU} {HOPELESS}", AT_MAXIMUM),
            ("tainted nodes of a pool at its maximum", f"{ALL_TAINTED} {NO_VICTIMS}", AT_MAXIMUM),
            ("fits a node of another kind, and no new one", f"{NO_CPU} {NO_VICTIMS}", "2 Insufficient cpu"),
            ("tainted nodes, and groups of other pools", f"{ALL_TAINTED} {HOPELESS}", OTHER_POOLS),
            ("groups of other pools alone", "", OTHER_POOLS),
            ("no machine type is large enough", f"0/3 nodes are available: 3 Insufficient memory. {HOPELESS}", "3 Insufficient memory"),
        )
    ),
    Case(
        "cloud out of stock",
        waiting_for_a_node(MISMATCH.format(rest=HOPELESS)),
        [event_saying("NotTriggerScaleUp", f"pod didn't trigger scale-up: {FAILED}, {OTHER_POOLS}")]
    ),
    Case(
        "cloud out of stock for a group that may be another pool's",
        waiting_for_a_node(f"{NO_CPU} {HOPELESS}"),
        [event_saying("NotTriggerScaleUp", f"pod didn't trigger scale-up: {FAILED}, 1 Insufficient cpu")]
    ),
    Case(
        "cloud out of stock for one group, and another full",
        waiting_for_a_node(""),
        [event_saying("NotTriggerScaleUp", f"pod didn't trigger scale-up: {FAILED}, {AT_MAXIMUM}")]
    ),
    Case(
        "busy without an autoscaler",
        waiting_for_a_node(f"0/3 nodes are available: 1 Too many pods, 2 Insufficient cpu. {NO_VICTIMS}")
    ),
    Case("tainted", waiting_for_a_node(f"{ALL_TAINTED} {HOPELESS}")),
    Case("cordoned", waiting_for_a_node(f"0/3 nodes are available: 3 node(s) were unschedulable. {HOPELESS}")),
    Case("empty pool that stays empty", waiting_for_a_node(MISMATCH.format(rest=HOPELESS))),
    Case(
        "no volume",
        waiting_for_a_node('0/3 nodes are available: persistentvolumeclaim "data" not found. not found', spec=GPU | FILES)
    ),
    Case("no scratch volume", waiting_for_a_node(NO_SCRATCH, spec=GPU | FILES)),
    Case("closed nodes of any pool", waiting_for_a_node(CLOSED.format(rest=HOPELESS))),
    Case("two gates", waiting_for_a_node("", spec={"schedulingGates": [{"name": "a/b"}, {"name": "c"}]})),
    Case("of another scheduler", waiting_for_a_node("", spec={"schedulerName": "mine"})),
    Case("with a resource claim", waiting_for_a_node("", spec={"resourceClaims": [{"name": "g", "resourceClaimName": "my-gpu"}]})),
    Case("nominated", waiting_for_a_node("", status={"nominatedNodeName": "n1", "phase": "Pending"})),
    Case(
        "volume being made",
        waiting_for_a_node("0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found", age=5, spec=GPU | FILES)
    ),
    Case("gated", pod("p", conditions=[condition("PodScheduled", "False", "SchedulingGated", "Scheduling is blocked")])),
]  # fmt: skip


def test_the_whole_words_are_as_stored() -> None:
    assert_told_as_stored("words-of-pods-without-a-node", CASES)


MESSAGES = json.loads((Path(__file__).parent / "recorded_messages.json").read_text())


def unscheduled(message: str) -> Any:
    because = condition("PodScheduled", "False", "Unschedulable", message)
    return pod("p", conditions=[because], created=MOMENT - timedelta(minutes=5))


def test_recorded_messages_are_explained_as_stored() -> None:
    recorded = [Case(name, unscheduled(message)) for name, message in MESSAGES.items()]
    assert_told_as_stored("words-of-scheduler-messages", recorded)


@pytest.mark.parametrize("case", sorted(MESSAGES))
def test_reasons_are_counted_without_the_part_on_preemption(case: str) -> None:
    counted = counted_reasons(MESSAGES[case])
    assert counted
    assert not any("reemption" in reason or "available" in reason.partition("no nodes")[0] for reason in counted
                   if "persistent volumes" not in reason)  # fmt: skip


def test_reasons_of_the_autoscaler_are_counted_in_any_order() -> None:
    for message in (
        "1 max node group size reached, 2 Insufficient cpu",
        "2 Insufficient cpu, 1 max node group size reached",
    ):
        assert counted_reasons(f"pod didn't trigger scale-up: {message}") == {
            "max node group size reached": 1,
            "Insufficient cpu": 2,
        }


def test_a_reason_without_a_number_counts_no_node() -> None:
    assert counted_reasons(MESSAGES["pvc-not-found"]) == {'persistentvolumeclaim "data" not found': 0}
    assert counted_reasons("no nodes available to schedule pods") == {"no nodes available to schedule pods": 0}
    assert counted_reasons("") == {}


@pytest.mark.parametrize(
    ("events", "size"),
    [
        ([], 0),
        ([event_saying("TriggeredScaleUp", SCALE_UP)], 1),
        ([event_saying("TriggeredScaleUp", "pod triggered scale-up: [{a 1->3 (max: 9)} {b 0->7 (max: 9)} {c 0->2 (max: 9)}]")], 7),
        ([event_saying("TriggeredScaleUp", "pod triggered scale-up")], 0),
        ([event_saying("TriggeredScaleUp", SCALE_UP), event_saying("NotTriggerScaleUp", "pod didn't trigger scale-up: ")], 0),
        ([event_saying("NotTriggerScaleUp", "pod didn't trigger scale-up: "), event_saying("TriggeredScaleUp", SCALE_UP)], 1),
    ],
)  # fmt: skip
def test_promised_size_is_that_of_the_last_scale_up(events: list[dict[str, Any]], size: int) -> None:
    assert promised_size([decode(raw, Event) for raw in events]) == size


@pytest.mark.parametrize("message", ["", "nonsense", "0/3 nodes are available", "1 " * 4000, "\x00\u202e"])
def test_a_message_that_nobody_foresaw_is_no_error(message: str) -> None:
    assert explain_pod(decode(unscheduled(message), Pod), (), now=MOMENT).severity in ("wait", "problem")


TRIED = "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod."
HELPLESS = "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
CLEARING = "0/3 nodes are available: 3 Insufficient cpu. preemption: not eligible due to a terminating pod on the nominated node."


def waiting(message: str, *, seconds: float = 90, nominated: str = "", scheduler: str = "") -> dict[str, Any]:
    scheduled = condition("PodScheduled", "False", "Unschedulable", message)
    return pod(
        "p", conditions=[scheduled], creationTimestamp=ago(seconds), status={"nominatedNodeName": nominated},
        spec={"schedulerName": scheduler} if scheduler else None,
    )  # fmt: skip


NO_ROOM = "0/1 nodes are available: 1 Insufficient cpu."
LIMITS = 'all available instance types exceed limits for nodepool "graviton"'
TAINTED = 'incompatible with nodepool "ci", daemonset overhead={"cpu":"1"}, did not tolerate workload=ci:NoSchedule'
LARGE = (
    'incompatible with nodepool "default", daemonset overhead={"cpu":"150m","pods":"4"}, no instance type satisfied resources '
    '{"cpu":"100","pods":"5"} and requirements kubernetes.io/arch In [amd64] (no instance type has enough resources)'
)


def of_karpenter(reason: str, message: str, *, reporter: str = "karpenter") -> Event:
    return decode(
        {**event_saying(reason, message), "reportingComponent": reporter, "source": {"component": reporter}}, Event
    )


def explain(*events: Event, knows_nodes: bool = True, minutes: float = 5, message: str = NO_ROOM) -> Diagnosis:
    conditions: list[Any] = [condition("PodScheduled", "False", "Unschedulable", message)] if message else []
    waits = decode(pod("w", requests={"cpu": "8"}, conditions=conditions), Pod)
    scheduling = surroundings([node("n1")]) if knows_nodes else None
    return explain_pod(waits, list(events), now=MOMENT + timedelta(minutes=minutes), scheduling=scheduling)


def test_nomination_by_anybody_else_is_none_of_karpenter() -> None:
    event = of_karpenter("Nominated", "Pod should schedule on: nodeclaim/x", reporter="other")
    assert explain(event) == explain()


def test_schedulers_words_are_not_taken_from_karpenter() -> None:
    waits = decode(pod("w"), Pod)
    ours = of_karpenter("FailedScheduling", NO_ROOM, reporter="default-scheduler")
    theirs = of_karpenter("FailedScheduling", f"Failed to schedule pod, {LIMITS}")
    assert scheduler_message(waits, [ours, theirs]) == NO_ROOM
    assert scheduler_message(waits, [theirs]) == ""


def of_schedulers() -> dict[str, Diagnosis]:
    held = {
        "nominated, and the node is being cleared": waiting(CLEARING, nominated="n1"),
        "nominated, and others end": waiting(TRIED, nominated="n1"),
        "nominated, and nothing helps": waiting(HELPLESS, nominated="n1"),
        "another scheduler is silent": waiting("", scheduler="mine"),
        "another scheduler says the same": waiting(TRIED, scheduler="mine"),
        "another scheduler says something": waiting("pod group is not ready,\n 1 Pending.", scheduler="mine"),
        "another scheduler is silent for 59 s": waiting("", seconds=59, scheduler="mine"),
        "another scheduler is silent for a minute": waiting("", seconds=60, scheduler="mine"),
        "another scheduler says something for 59 s": waiting("not ready", seconds=59, scheduler="mine"),
        "another scheduler says something for a minute": waiting("not ready", seconds=60, scheduler="mine"),
    }
    return {name: Case(name, raw).explain() for name, raw in held.items()}


def words_of_karpenter(*, knows_nodes: bool) -> dict[str, Diagnosis]:
    refusals = (
        LIMITS, "all available instance types exceed limits for nodepool (NodePool=a)", LARGE, f"{TAINTED}; {LIMITS}",
        "no nodepools found",
    )  # fmt: skip
    claim = "Pod should schedule on: nodeclaim/default-x7k2p"
    started, by_eks = (
        of_karpenter("Nominated", claim),
        of_karpenter("Nominated", claim, reporter="eks-auto-mode/compute"),
    )
    chosen = of_karpenter("Nominated", "Pod should schedule on: nodeclaim/a, node/b")
    refused = {why: of_karpenter("FailedScheduling", f"Failed to schedule pod, {why}") for why in refusals}
    return {
        "starts a node": explain(started, knows_nodes=knows_nodes),
        "starts a node in EKS Auto Mode": explain(by_eks, knows_nodes=knows_nodes),
        "started a node long ago": explain(started, knows_nodes=knows_nodes, minutes=16),
        "started a node in EKS Auto Mode long ago": explain(by_eks, knows_nodes=knows_nodes, minutes=16),
        **{f"starts none: {why}": explain(event, knows_nodes=knows_nodes) for why, event in refused.items()},
        "chose a node, and refused since": explain(chosen, refused[LIMITS], knows_nodes=knows_nodes),
        "refused, and chose a node since": explain(refused[LIMITS], chosen, knows_nodes=knows_nodes),
    }


def test_words_of_schedulers_and_karpenter_are_told_as_stored() -> None:
    situations = of_schedulers() | words_of_karpenter(knows_nodes=True)
    situations |= {f"{name} (nodes not read)": why for name, why in words_of_karpenter(knows_nodes=False).items()}
    blocks = []
    for name, why in situations.items():
        blocks += [f"# {name}", as_read(why), *(f"> {text}" for text in why.evidence)]
    assert_golden("words-of-schedulers", "\n".join(blocks), ending="txt")
