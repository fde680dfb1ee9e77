"""What is said of nodes, their runtime and the cloud behind them, in situations that an expert found wrongly explained.

The texts are those of kubelet, containerd and nvidia-container-cli, of the cluster autoscaler of GKE and of EKS, and of Karpenter.
"""

from datetime import timedelta
from typing import Any

import pytest

from grid.core.labels import NODE_POOL
from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.pods import explain_pod
from grid.kube.objects import Event, Node, Pod
from grid.kube.pools import NodeGroup
from tests.diagnosis.placement.worlds import surroundings
from tests.diagnosis.situations import ago, ended, event_saying
from tests.support.builders import MOMENT, condition, container_status, decode, node, pod

CUDA = (
    "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please update your driver to a newer version, "
    "or use an earlier cuda container: unknown"
)
FORMAT = "exec /usr/local/bin/python: exec format error"
PLEG = "PLEG is not healthy: pleg was last seen active 4m12.5s ago; threshold is 3m0s"
NO_NETWORK = "network is not ready: container runtime network not ready: Network plugin returns error: cni plugin not initialized"
NO_PAUSE_IMAGE = (
    'failed to start sandbox "0a1b": failed to get sandbox image "registry.k8s.io/pause:3.10.1": failed to pull image '
    '"registry.k8s.io/pause:3.10.1": dial tcp 34.96.108.209:443: i/o timeout'
)
NO_CGROUPS = "mkdir /sys/fs/cgroup/kubepods.slice/kubepods-podc6.slice: no space left on device"
SELECTED = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
FAILED = "Node scale up in zones europe-west4-a associated with this pod failed: {why}. Pod is at risk of not being scheduled."
VCPU = "VcpuLimitExceeded - You have requested more vCPU capacity than your current vCPU limit of 64 allows for the instance bucket"
GATE = 'the status of pod readiness gate "target-health.elbv2.k8s.aws/app" is not "True", but False'
RUNS = {"running": {"startedAt": ago(7200)}}
CREATING = {"waiting": {"reason": "ContainerCreating"}}


def placed(
    state: dict[str, Any] = RUNS, *, phase: str = "Running", conditions: Any = (), **more: Any
) -> dict[str, Any]:
    statuses = more.pop("statuses", [container_status(state=state, ready="running" in state)])
    conditions = [condition("PodScheduled", "True", at=MOMENT - timedelta(hours=2)), *conditions]
    return pod("p", node="node-1", phase=phase, conditions=conditions, statuses=statuses, **more)


def explain(raw: dict[str, Any], *events: dict[str, Any], **more: Any) -> Diagnosis:
    return explain_pod(decode(raw, Pod), [decode(each, Event) for each in events], now=MOMENT, **more)


def with_ready(status: str, message: str, *, minutes: float = 600) -> Node:
    ready = condition("Ready", status, "KubeletNotReady", message)
    return decode(node("node-1", created=MOMENT - timedelta(minutes=minutes), conditions=[ready]), Node)


def assert_says(diagnosis: Diagnosis, severity: str, who: str, *words: str) -> None:
    assert (diagnosis.severity, diagnosis.who) == (severity, who), diagnosis
    text = f"{diagnosis.sentence} {diagnosis.next_step}"
    assert [each for each in words if each not in text] == [], text


@pytest.mark.parametrize("state", [ended(128, "StartError", message=CUDA), {"waiting": {"reason": "CrashLoopBackOff"}}])
def test_image_for_newer_cuda_blames_old_driver(state: dict[str, Any]) -> None:
    status = container_status(state=state, lastState=ended(128, "StartError", message=CUDA))
    answer = explain(placed(phase="Failed" if "terminated" in state else "Running", statuses=[status]))
    assert_says(answer, "problem", "admin", "CUDA 12.8", "driver is older", "older CUDA", "update the driver")


@pytest.mark.parametrize("message", [PLEG, "container runtime is down"])
def test_unready_node_says_its_runtime_is_silent(message: str) -> None:
    answer = explain(placed(conditions=[condition("Ready", "True")]), node=with_ready("False", message))
    assert_says(
        answer, "problem", "operator", f"its container runtime does not answer ({message})", "may continue", "drain"
    )


def test_unknown_node_no_longer_answers_without_any_event() -> None:
    raw, silent = (
        placed(conditions=[condition("Ready", "False")]),
        with_ready("Unknown", "Kubelet stopped posting node status."),
    )
    assert_says(explain(raw, node=silent), "problem", "operator", "Node node-1 no longer answers.")
    context = surroundings([node("node-1", conditions=[condition("Ready", "Unknown")])], [raw])
    assert_says(explain(raw, scheduling=context), "problem", "operator", "Node node-1 no longer answers.")


def test_unready_pod_alone_leaves_node_state_open() -> None:
    answer = explain(placed(conditions=[condition("Ready", "False"), condition("ContainersReady", "True")]))
    assert_says(answer, "problem", "operator", "node-1 is not ready or no longer answers")


def waits_for_gpu(*events: dict[str, Any], group: NodeGroup | None = None) -> Diagnosis:
    refused = condition("PodScheduled", "False", "Unschedulable", SELECTED)
    raw = pod("p", conditions=[refused], spec={"nodeSelector": {NODE_POOL: "gpu"}}, created=MOMENT - timedelta(hours=1))
    context = surroundings([node("node-1")], [raw], groups={"gpu": group} if group else {})
    return explain(raw, *events, scheduling=context)


@pytest.mark.parametrize("group", [None, NodeGroup("gpu", 0, 5, 0)])
@pytest.mark.parametrize(
    ("why", "severity", "who", "words"),
    [
        ("GCE out of resources", "wait", "you", ("no such machine in europe-west4-a", "another node pool")),
        ("GCE quota exceeded", "problem", "operator", ("quota is used up", "raised", "waiting alone does not help")),
    ],
)
def test_failed_scale_up_says_what_cloud_refused(
    group: NodeGroup | None, why: str, severity: str, who: str, words: tuple[str, ...]
) -> None:
    started = event_saying("TriggeredScaleUp", "pod triggered scale-up: [{gpu 0->1 (max: 5)}]", seconds=90)
    answer = waits_for_gpu(started, event_saying("FailedScaleUp", FAILED.format(why=why), seconds=60), group=group)
    assert_says(answer, severity, who, *words)
    assert any(why in text for text in answer.evidence)


def test_failed_scale_up_is_explained_without_nodes() -> None:
    raw = pod("p", conditions=[condition("PodScheduled", "False", "Unschedulable", SELECTED)])
    answer = explain(raw, event_saying("FailedScaleUp", FAILED.format(why="GCE out of resources")))
    assert_says(answer, "wait", "you", "could not deliver a new node")


@pytest.mark.parametrize(
    ("error", "severity", "who", "words"),
    [
        (VCPU, "problem", "operator", ("quota is used up (vCPU limit of 64)", "raised")),
        ("Quota 'NVIDIA_T4_GPUS' exceeded.  Limit: 1.0", "problem", "operator", ("Quota 'NVIDIA_T4_GPUS'",)),
        (
            "InsufficientInstanceCapacity - in the Availability Zone you requested (eu-west-1a).",
            "wait",
            "you",
            ("eu-west-1a",),
        ),
        ("GCE_STOCKOUT", "wait", "you", ("no such machine now",)),
    ],
)
def test_backed_off_group_says_what_cloud_refused(error: str, severity: str, who: str, words: tuple[str, ...]) -> None:
    assert_says(waits_for_gpu(group=NodeGroup("gpu", 0, 5, 0, True, error)), severity, who, *words)


def test_forbidden_sysctl_is_named_and_never_relaunched() -> None:
    message = 'Pod was rejected: forbidden sysctl: "net.core.somaxconn" not allowlisted'
    raw = placed(phase="Failed", statuses=[], status={"reason": "SysctlForbidden", "message": message})
    assert_says(answer := explain(raw), "problem", "admin", "net.core.somaxconn", "allowedUnsafeSysctls")
    assert "Launch" not in answer.next_step


@pytest.mark.parametrize(
    ("phase", "logs"),
    [
        ("Failed", container_status("logs", state=ended(137, "OOMKilled"))),
        (
            "Running",
            container_status(
                "logs", state={"waiting": {"reason": "CrashLoopBackOff"}}, lastState=ended(137, "OOMKilled")
            ),
        ),
    ],
)
def test_companion_out_of_memory_blames_no_tier(phase: str, logs: dict[str, Any]) -> None:
    limits = {"limits": {"memory": "64Mi"}}
    containers = [{"name": "run", "image": "lab:4"}, {"name": "logs", "image": "fluent-bit:3", "resources": limits}]
    statuses = [container_status(state=ended(0, "Completed")), logs]
    answer = explain(placed(phase=phase, containers=containers, statuses=statuses))
    assert_says(
        answer, "problem", "admin", "64 MiB", "The program itself ended without an error.", "limit of container logs"
    )
    assert "tier" not in answer.next_step


@pytest.mark.parametrize(
    ("end", "who"),
    [
        (ended(255, message=f"{FORMAT}\n"), "you"),
        (ended(1, message=FORMAT), "you"),
        (
            ended(128, "StartError", message='runc create failed: exec: "/usr/local/bin/python": exec format error'),
            "admin",
        ),
    ],
)
def test_image_of_other_architecture_is_named(end: dict[str, Any], who: str) -> None:
    answer = explain(placed(end, phase="Failed"))
    assert_says(
        answer, "problem", who, "/usr/local/bin/python", "another architecture", "admin for an image", "other nodes"
    )


@pytest.mark.parametrize(("seconds", "severity"), [(660, "problem"), (30, "wait")])
def test_open_readiness_gate_means_no_traffic(seconds: float, severity: str) -> None:
    at = MOMENT - timedelta(seconds=seconds)
    answer = explain(placed(conditions=[condition("Ready", "False", "ReadinessGatesNotReady", GATE, at=at)]))
    assert_says(answer, severity, "operator", "gets no traffic", "target-health.elbv2.k8s.aws/app")


@pytest.mark.parametrize(
    ("kind", "reason", "message", "words"),
    [
        (
            "PodResizePending", "Infeasible",
            "Node didn't have enough capacity: memory, requested: 68719476736, capacity: 17179869184",
            ("old size", "never fits", "requested: 64 GiB, capacity: 16 GiB", "larger tier"),
        ),
        (
            "PodResizeInProgress", "Error",
            'attempting to set container "run" memory limit (536870912) below current usage (1811939328)',
            ("cannot be changed", "(512 MiB) below current usage (1.7 GiB)", "use less memory"),
        ),
    ],
)  # fmt: skip
def test_resize_that_fails_leaves_the_old_size(kind: str, reason: str, message: str, words: tuple[str, ...]) -> None:
    resize = condition(kind, "True", reason, message, at=MOMENT - timedelta(minutes=6))
    assert_says(explain(placed(conditions=[condition("Ready", "True"), resize])), "problem", "you", "Running", *words)


def test_container_that_cannot_be_killed_needs_reboot() -> None:
    raw = placed(deletionTimestamp=ago(1500), deletionGracePeriodSeconds=30)
    answer = explain(raw, event_saying("FailedKillPod", 'error killing pod: failed to "KillContainer" for "run"'))
    assert_says(answer, "problem", "operator", "25 minutes", "node-1 cannot end its containers", "reboot")


def test_pod_prepared_for_hours_needs_operator() -> None:
    no_sandbox = condition("PodReadyToStartContainers", "False")
    answer = explain(placed(CREATING, phase="Pending", conditions=[no_sandbox]))
    assert_says(
        answer, "problem", "operator", "has prepared nothing", "kubelet and container runtime", "launch it again"
    )
    has_sandbox = condition("PodReadyToStartContainers", "True")
    assert explain(placed(CREATING, phase="Pending", conditions=[has_sandbox])).severity == "wait"


@pytest.mark.parametrize(
    ("reason", "message", "words"),
    [
        (
            "FailedCreatePodSandBox",
            NO_PAUSE_IMAGE,
            ("its own pause image", "no access to registry.k8s.io", "look at the node"),
        ),
        ("FailedCreatePodContainer", NO_CGROUPS, ("no cgroups left", "disk is not full", "drain and reboot")),
    ],
)
def test_sandbox_fault_names_cause_and_repair(reason: str, message: str, words: tuple[str, ...]) -> None:
    answer = explain(placed(CREATING, phase="Pending"), event_saying(reason, message) | {"type": "Warning"})
    assert_says(answer, "problem", "operator", *words)


@pytest.mark.parametrize(("minutes", "severity", "who"), [(1, "wait", ""), (20, "problem", "operator")])
def test_network_of_new_node_is_waited_for(minutes: float, severity: str, who: str) -> None:
    bound = condition("PodScheduled", "True", at=MOMENT - timedelta(minutes=minutes))
    raw = pod("p", node="node-1", conditions=[bound], statuses=[container_status(state=CREATING)])
    unready = with_ready("False", NO_NETWORK, minutes=minutes)
    assert_says(explain(raw, event_saying("NetworkNotReady", NO_NETWORK), node=unready), severity, who, "network")


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("SpotInterrupted", "the cloud took its node, a spot machine, back"),
        ("Underutilized", "removed its node (Underutilized)"),
    ],
)
def test_eviction_by_karpenter_is_no_program_fault(reason: str, words: str) -> None:
    evicted = condition("DisruptionTarget", "True", "EvictionByEvictionAPI", "Eviction API: evicting")
    answer = explain(
        placed(ended(143), phase="Failed", conditions=[evicted]), event_saying("Evicted", f"Evicted pod: {reason}")
    )
    assert_says(answer, "problem", "you", words, "no fault of the program", "save its state")
