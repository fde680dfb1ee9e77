"""What is said of faults of nodes and of the cloud, in situations that an expert wrote down before reading any rule.

The texts are those of kubelet, containerd and cri-o, of the cluster autoscaler of GKE, EKS and AKS, of Karpenter and of Kueue.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest

from grid.core.labels import NODE_POOL
from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.pods import explain_pod
from grid.kube.objects import Event, Node, Pod
from grid.kube.pools import NodeGroup
from tests.diagnosis.placement.worlds import surroundings
from tests.diagnosis.situations import event_saying
from tests.support.builders import MOMENT, condition, container_status, decode, metadata, node, pod, stamp

EVICTED = "The node was low on resource: {resource}. Threshold quantity: 10Gi, available: 9Gi. "
USES = "Container {name} was using {used}, request is {asked}, has larger consumption of {resource}. "
SANDBOX = "Failed to create pod sandbox: rpc error: code = Unknown desc = "
TASK = 'failed to start sandbox "3f1c": failed to create containerd task: '
CGROUPS = (
    TASK
    + "failed to create shim task: OCI runtime create failed: runc create failed: expected cgroupsPath to be of format "
    '"slice:prefix:name" for systemd cgroups, got "/kubepods/burstable/pod0b4e/3f1c" instead: unknown'
)
FORK = TASK + "failed to start shim: start failed: : fork/exec /usr/bin/shim: resource temporarily unavailable: unknown"
CALICO = 'failed to setup network for sandbox "3f1c": plugin type="calico" failed (add): connection is unauthorized'
MULTUS = (
    "failed to create pod network sandbox k8s_p_lab_0(3f1c): error adding pod lab_p to CNI network "
    '"multus-cni-network": plugin type="multus-shim" failed (add): timed out waiting for OVS port binding'
)
NO_GPU = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
MISMATCH = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
FAILED = "Node scale up in zones {zone} associated with this pod failed: {why}. Pod is at risk of not being scheduled."
TRIGGERED = "pod triggered scale-up: [{gpu-a 0->1 (max: 4)}]"
BACKED_OFF = "pod didn't trigger scale-up: 1 in backoff after failed scale-up, 2 node(s) didn't match Pod's node affinity/selector"
CILIUM, UNINITIALIZED = "node.cilium.io/agent-not-ready", "node.cloudprovider.kubernetes.io/uninitialized"


def assert_says(diagnosis: Diagnosis, severity: str, who: str, *words: str, never: Iterable[str] = ()) -> None:
    assert (diagnosis.severity, diagnosis.who) == (severity, who), diagnosis
    text = f"{diagnosis.sentence} {diagnosis.next_step}"
    assert [each for each in words if each not in text] == [], text
    assert [each for each in never if each in text] == [], text


def explain(raw: dict[str, Any], *events: dict[str, Any], **more: Any) -> Diagnosis:
    return explain_pod(decode(raw, Pod), [decode(each, Event) for each in events], now=MOMENT, **more)


def evicted(resource: str, *uses: tuple[str, str, str], containers: Iterable[str] = ("run",)) -> Diagnosis:
    used = "".join(USES.format(name=name, used=used, asked=asked, resource=resource) for name, used, asked in uses)
    status = {"reason": "Evicted", "message": EVICTED.format(resource=resource) + used}
    specs = [{"name": name, "image": "lab:4"} for name in containers]
    return explain(pod("p", node="node-1", phase="Failed", containers=specs, status=status))


@pytest.mark.parametrize(
    ("resource", "used", "asked"), [("ephemeral-storage", "34Mi", "0"), ("memory", "8232Mi", "8Gi")]
)
def test_small_user_of_full_node_is_not_at_fault(resource: str, used: str, asked: str) -> None:
    answer = evicted(resource, ("run", used, asked))
    assert_says(answer, "problem", "operator", "which hardly explains it", "not at fault", never=["tier"])


@pytest.mark.parametrize(
    ("resource", "used", "asked"), [("ephemeral-storage", "41Gi", "0"), ("memory", "8700Mi", "8Gi")]
)
def test_large_user_of_full_node_needs_larger_tier(resource: str, used: str, asked: str) -> None:
    answer = evicted(resource, ("run", used, asked))
    assert_says(answer, "problem", "you", "on a tier that requests as much as it uses", never=["not at fault"])


@pytest.mark.parametrize("uses", [[("istio-proxy", "41Gi", "0")], [("istio-proxy", "41Gi", "0"), ("run", "34Mi", "0")]])
def test_full_disk_is_blamed_on_injected_container(uses: list[tuple[str, str, str]]) -> None:
    answer = evicted("ephemeral-storage", *uses, containers=["run", "istio-proxy"])
    assert_says(answer, "problem", "admin", "istio-proxy used 41 GiB", "ask your admin about container istio-proxy")


@pytest.mark.parametrize(
    ("message", "words", "never"),
    [
        (CGROUPS, ["its kubelet and its container runtime have different cgroup drivers"], []),
        (FORK, ["it has no room for more processes"], []),
        (CALICO, [': plugin type="calico" failed (add): connection is unauthorized.'], ["3f1c"]),
        (MULTUS, [': plugin type="multus-shim" failed (add): timed out waiting for OVS port binding.'], ["3f1c"]),
        ("context deadline exceeded", ["network or sandbox: context deadline exceeded."], []),
        ("mkdir /run/containerd/0b4e: no space left on device", ["its disk is full"], []),
    ],
)
def test_failed_sandbox_names_fault_of_its_node(message: str, words: list[str], never: list[str]) -> None:
    creating = container_status(state={"waiting": {"reason": "ContainerCreating"}})
    answer = explain(
        pod("p", node="node-1", statuses=[creating]),
        event_saying("FailedCreatePodSandBox", SANDBOX + message) | {"type": "Warning"},
    )
    assert_says(answer, "problem", "operator", *words, "launched again, this may get another one", never=never)


def left_on(minutes: float, status: str, message: str) -> Diagnosis:
    """Explain a pod that is being deleted, on a node that has been in that state for that time."""
    since = MOMENT - timedelta(minutes=minutes)
    silent = node(
        "node-1", created=MOMENT - timedelta(days=4), conditions=[condition("Ready", status, "", message, at=since)]
    )
    raw = pod("p", node="node-1", phase="Running", statuses=[container_status(state={"running": {}}, ready=True)])
    deleted = {"deletionTimestamp": stamp(since + timedelta(minutes=5)), "deletionGracePeriodSeconds": 30}
    return explain({**raw, "metadata": metadata("p") | deleted}, node=decode(silent, Node))


def test_pod_left_on_silent_node_says_since_when() -> None:
    answer = left_on(40, "Unknown", "Kubelet stopped posting node status.")
    words = "has not answered for 40 minutes", "should have ended 35 minutes ago", "frees its volumes"
    assert_says(answer, "problem", "operator", *words, never=["soon", "given time"])


def test_pod_left_on_unready_node_is_not_just_ending() -> None:
    answer = left_on(40, "False", "container runtime is down")
    assert_says(answer, "problem", "operator", "runtime does not answer", "should have ended 35 minutes ago")


def waits(
    *events: dict[str, Any],
    pool: str = "gpu",
    group: NodeGroup | None = None,
    knows_nodes: bool = True,
    nodes: Iterable[dict[str, Any]] = (),
) -> Diagnosis:
    refused = condition("PodScheduled", "False", "Unschedulable", MISMATCH if pool else NO_GPU)
    spec = {"nodeSelector": {NODE_POOL: pool}} if pool else {}
    requests = {"cpu": "2", "nvidia.com/gpu": "1"}
    raw = pod("p", conditions=[refused], requests=requests, spec=spec, created=MOMENT - timedelta(hours=1))
    context = (
        surroundings([node("node-1"), *nodes], [raw], groups={"gpu": group} if group else {}) if knows_nodes else None
    )
    return explain(raw, *events, scheduling=context)


@pytest.mark.parametrize("pool", ["gpu", ""])
def test_backoff_after_scale_up_blames_cloud_not_tier(pool: str) -> None:
    started = event_saying("TriggeredScaleUp", TRIGGERED, seconds=1400)
    answer = waits(started, event_saying("NotTriggerScaleUp", BACKED_OFF, seconds=120), pool=pool)
    never = "no node takes this one", "does not need it", "being started"
    assert_says(answer, "wait", "you", "the cloud could not deliver a new node and is asked again", never=never)
    assert {TRIGGERED, BACKED_OFF} <= set(answer.evidence)


def failed(why: str, *, zone: str = "eu-1a", seconds: float = 60) -> dict[str, Any]:
    return event_saying("FailedScaleUp", FAILED.format(zone=zone, why=why), seconds=seconds)


@pytest.mark.parametrize(("pool", "knows_nodes"), [("gpu", True), ("", True), ("gpu", False)])
def test_zones_that_fail_for_different_reasons_are_both_named(pool: str, knows_nodes: bool) -> None:
    events = failed("GCE out of resources", seconds=720), failed("GCE quota exceeded", zone="eu-1b")
    answer = waits(*events, pool=pool, knows_nodes=knows_nodes)
    words = "no such machine in eu-1a now", "quota is used up", "quota raised", "or choose another tier"
    assert_says(answer, "problem", "operator", *words, never=["waiting alone"])
    assert all(any(why in text for text in answer.evidence) for why in ("out of resources", "quota exceeded"))


@pytest.mark.parametrize(("pool", "knows_nodes"), [("gpu", True), ("", True), ("gpu", False)])
@pytest.mark.parametrize(
    ("why", "severity", "who", "words"),
    [
        (
            "IP space exhausted",
            "problem",
            "operator",
            ["no free addresses for another node", "waiting alone does not help"],
        ),
        ("Service account deleted", "problem", "operator", ["refuses it: Service account deleted", "Ask an operator"]),
        (
            "Internal error",
            "wait",
            "you",
            ["could not deliver a new node", "(Internal error)", "if it lasts, ask an operator"],
        ),
    ],
)
def test_failed_scale_up_quotes_what_is_not_stock(
    why: str, severity: str, who: str, words: list[str], pool: str, knows_nodes: bool
) -> None:
    answer = waits(failed(why), pool=pool, knows_nodes=knows_nodes)
    assert_says(answer, severity, who, *words, never=["no such machine", "does not need it"])


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("SubnetIsFull: Subnet aks has not enough capacity for 12 IP addresses.", "no free addresses"),
        ("InsufficientFreeAddressesInSubnet: There are not enough free addresses in subnet-0ab1.", "no free addresses"),
        ("IP_SPACE_EXHAUSTED: creation failed: IP space of 'gke-pods' is exhausted.", "no free addresses"),
        ("MaxSpotInstanceCountExceeded: Max spot instance count exceeded", "quota is used up"),
        ("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS: not enough resources.", "no such machine"),
        ("AllocationFailed: We do not have sufficient capacity for the requested VM size.", "no such machine"),
        ("You are not authorized to use launch template: lt-0ab1", "refuses it: You are not authorized"),
        ("Client.InstanceInitiatedShutdown: shut down", "a new node (Client.InstanceInitiatedShutdown: shut down)"),
    ],
)
def test_error_of_cloud_has_its_kind(error: str, words: str) -> None:
    answer = waits(group=NodeGroup("gpu", 0, 5, 0, is_backed_off=True, error=error))
    assert words in answer.sentence


def nominated(*claims: tuple[str, float], times: int = 1) -> list[dict[str, Any]]:
    """Return Karpenter's choices, each so many minutes ago at first; of `times` the last is of now."""
    made = []
    for claim, minutes in claims:
        event = event_saying("Nominated", f"Pod should schedule on: {claim}", seconds=60 * minutes)
        last = {"count": times, "lastTimestamp": stamp(MOMENT)} if times > 1 else {}
        made.append(event | last | {"reportingComponent": "karpenter"})
    return made


@pytest.mark.parametrize("knows_nodes", [True, False])
def test_second_choice_of_karpenter_is_no_normal_wait(knows_nodes: bool) -> None:
    late = waits(*nominated(("nodeclaim/a", 25), ("nodeclaim/b", 9)), knows_nodes=knows_nodes)
    assert_says(late, "problem", "operator", "chosen 2 nodes for this in 25 minutes", "NodeClaim b", "none took it")
    early = waits(*nominated(("nodeclaim/a", 4), ("nodeclaim/b", 1)), knows_nodes=knows_nodes)
    assert_says(early, "wait", "operator", "chosen 2 nodes for this in 4 minutes", "look at Karpenter")
    assert not early.is_normal


def test_repeated_choice_of_karpenter_counts_from_first() -> None:
    assert_says(
        waits(*nominated(("nodeclaim/a", 25), times=40)), "problem", "operator", "NodeClaim a for this 25 minutes ago"
    )
    assert waits(*nominated(("nodeclaim/a", 4), ("nodeclaim/a, node/b", 1))).is_normal
    assert "chosen 2 nodes for this in 18 minutes" in waits(*nominated(("node/a", 18), ("node/b", 2))).sentence


def beside_full_node(key: str, minutes: float, *events: dict[str, Any]) -> Diagnosis:
    new = node("new", created=MOMENT - timedelta(minutes=minutes), taints=[{"key": key, "effect": "NoSchedule"}])
    full = pod("x", node="old", phase="Running", ready=True, requests={"cpu": "3"})
    refused = condition("PodScheduled", "False", "Unschedulable", "0/2 nodes are available: 1 Insufficient cpu.")
    raw = pod("p", conditions=[refused], requests={"cpu": "3"}, created=MOMENT - timedelta(minutes=22))
    old = node("old", created=MOMENT - timedelta(days=4))
    return explain(raw, *events, scheduling=surroundings([new, old], [full]))


@pytest.mark.parametrize(
    ("key", "who"),
    [
        (CILIUM, "the agent of node.cilium.io"),
        (UNINITIALIZED, "the cloud controller manager"),
        ("disk.csi.azure.com/agent-not-ready", "the agent of disk.csi.azure.com"),
        ("karpenter.sh/unregistered", "Karpenter"),
    ],
)
@pytest.mark.parametrize("is_late_scale_up", [True, False])
def test_startup_taint_that_stays_is_the_reason(key: str, who: str, is_late_scale_up: bool) -> None:
    started = [event_saying("TriggeredScaleUp", TRIGGERED, seconds=1300)] if is_late_scale_up else []
    answer = beside_full_node(key, 20, *started)
    words = (
        "Node new (20 minutes old) would fit",
        f"{who} has not removed its startup taint {key}",
        "1 is full",
        f"look at {who}",
    )
    assert_says(answer, "problem", "operator", *words, never=["has not come", "stop something"])


def test_node_that_autoscaler_is_starting_outlasts_old_taint() -> None:
    tainted = [{"key": CILIUM, "effect": "NoSchedule"}]
    old = node(
        "old", pool="gpu", created=MOMENT - timedelta(minutes=20), taints=tainted, extended={"nvidia.com/gpu": "1"}
    )
    answer = waits(group=NodeGroup("gpu", 0, 4, 2), nodes=[old])
    assert_says(answer, "wait", "", "still starting; 1 more node is starting")


def test_startup_taint_of_young_node_is_normal() -> None:
    answer = beside_full_node(CILIUM, 3)
    assert_says(answer, "wait", "", "is full", "node new is still starting", never=["stop something"])
    assert answer.is_normal


def test_node_that_karpenter_is_bringing_outlasts_old_taint() -> None:
    answer = beside_full_node(CILIUM, 20, *nominated(("nodeclaim/b", 1)))
    assert_says(answer, "wait", "", "Karpenter is starting a node for this (the NodeClaim b)")


@pytest.mark.parametrize(
    ("gates", "labels", "who", "words"),
    [
        (
            ["kueue.x-k8s.io/admission"],
            {"kueue.x-k8s.io/queue-name": "vision"},
            "admin",
            "Kueue admits it from its queue vision.",
        ),
        (["kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology"], {}, "admin", "Kueue admits it from its queue."),
        (
            ["kueue.x-k8s.io/admission", "lab.example/hold"],
            {},
            "operator",
            "kueue.x-k8s.io/admission and lab.example/hold",
        ),
    ],
)
def test_gate_of_kueue_is_a_queue(gates: list[str], labels: dict[str, str], who: str, words: str) -> None:
    refused = condition(
        "PodScheduled", "False", "SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates"
    )
    spec = {"schedulingGates": [{"name": name} for name in gates]}
    assert_says(explain(pod("p", conditions=[refused], spec=spec, labels=labels)), "wait", who, words)
