"""What is said of nodes, their runtime and the cloud behind them, in situations that an expert found wrongly explained.

The texts are those of kubelet, containerd and nvidia-container-cli, of the cluster autoscaler of GKE and of EKS, and of Karpenter.
Read `tests/golden/words-of-nodes-and-clouds.txt`.
"""

from datetime import timedelta
from typing import Any

from grid.core.labels import NODE_POOL
from grid.diagnosis.diagnosis import Diagnosis
from grid.kube.objects import Node
from grid.kube.pools import NodeGroup
from tests.diagnosis.placement.worlds import surroundings
from tests.diagnosis.situations import ago, assert_answers_as_stored, ended, event_saying, explain
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


def with_ready(status: str, message: str, *, minutes: float = 600) -> Node:
    ready = condition("Ready", status, "KubeletNotReady", message)
    return decode(node("node-1", created=MOMENT - timedelta(minutes=minutes), conditions=[ready]), Node)


def waits_for_gpu(*events: dict[str, Any], group: NodeGroup | None = None) -> Diagnosis:
    refused = condition("PodScheduled", "False", "Unschedulable", SELECTED)
    raw = pod("p", conditions=[refused], spec={"nodeSelector": {NODE_POOL: "gpu"}}, created=MOMENT - timedelta(hours=1))
    context = surroundings([node("node-1")], [raw], groups={"gpu": group} if group else {})
    return explain(raw, *events, scheduling=context)


def gpu_scale_up_failed(why: str, group: NodeGroup | None) -> Diagnosis:
    started = event_saying("TriggeredScaleUp", "pod triggered scale-up: [{gpu 0->1 (max: 5)}]", seconds=90)
    return waits_for_gpu(started, event_saying("FailedScaleUp", FAILED.format(why=why), seconds=60), group=group)


def ended_beside(phase: str, logs: dict[str, Any]) -> Diagnosis:
    """A program that ended well beside a container with a limit of its own."""
    limits = {"limits": {"memory": "64Mi"}}
    containers = [{"name": "run", "image": "lab:4"}, {"name": "logs", "image": "fluent-bit:3", "resources": limits}]
    return explain(
        placed(phase=phase, containers=containers, statuses=[container_status(state=ended(0, "Completed")), logs])
    )


def with_conditions(*conditions: dict[str, Any]) -> dict[str, Any]:
    return placed(conditions=conditions)


def resized(kind: str, reason: str, message: str) -> Diagnosis:
    at = MOMENT - timedelta(minutes=6)
    return explain(with_conditions(condition("Ready", "True"), condition(kind, "True", reason, message, at=at)))


def gated(seconds: float) -> Diagnosis:
    at = MOMENT - timedelta(seconds=seconds)
    return explain(with_conditions(condition("Ready", "False", "ReadinessGatesNotReady", GATE, at=at)))


def without_network(minutes: float) -> Diagnosis:
    bound = condition("PodScheduled", "True", at=MOMENT - timedelta(minutes=minutes))
    raw = pod("p", node="node-1", conditions=[bound], statuses=[container_status(state=CREATING)])
    unready = with_ready("False", NO_NETWORK, minutes=minutes)
    return explain(raw, event_saying("NetworkNotReady", NO_NETWORK), node=unready)


def of_karpenter(reason: str) -> Diagnosis:
    evicted = condition("DisruptionTarget", "True", "EvictionByEvictionAPI", "Eviction API: evicting")
    raw = placed(ended(143), phase="Failed", conditions=[evicted])
    return explain(raw, event_saying("Evicted", f"Evicted pod: {reason}"))


def of_pods() -> dict[str, Diagnosis]:
    newer = ended(128, "StartError", message=CUDA)
    again: dict[str, Any] = {"waiting": {"reason": "CrashLoopBackOff"}}
    out_of_memory = ended(137, "OOMKilled")
    sysctl = 'Pod was rejected: forbidden sysctl: "net.core.somaxconn" not allowlisted'
    runc = 'runc create failed: exec: "/usr/local/bin/python": exec format error'
    deleted = placed(deletionTimestamp=ago(1500), deletionGracePeriodSeconds=30)
    return {
        "image for a newer CUDA": explain(
            placed(phase="Failed", statuses=[container_status(state=newer, lastState=newer)])
        ),
        "image for a newer CUDA, again": explain(placed(statuses=[container_status(state=again, lastState=newer)])),
        "forbidden sysctl": explain(
            placed(phase="Failed", statuses=[], status={"reason": "SysctlForbidden", "message": sysctl})
        ),
        "companion out of memory": ended_beside("Failed", container_status("logs", state=out_of_memory)),
        "companion out of memory, again": ended_beside(
            "Running", container_status("logs", state=again, lastState=out_of_memory)
        ),
        "other architecture, 255": explain(placed(ended(255, message=f"{FORMAT}\n"), phase="Failed")),
        "other architecture, 1": explain(placed(ended(1, message=FORMAT), phase="Failed")),
        "other architecture, the runtime": explain(placed(ended(128, "StartError", message=runc), phase="Failed")),
        "readiness gate, eleven minutes": gated(660),
        "readiness gate, half a minute": gated(30),
        "resize that never fits": resized(
            "PodResizePending",
            "Infeasible",
            "Node didn't have enough capacity: memory, requested: 68719476736, capacity: 17179869184",
        ),
        "resize below what is used": resized(
            "PodResizeInProgress",
            "Error",
            'attempting to set container "run" memory limit (536870912) below current usage (1811939328)',
        ),
        "container that cannot be killed": explain(
            deleted, event_saying("FailedKillPod", 'error killing pod: failed to "KillContainer" for "run"')
        ),
        "spot machine": of_karpenter("SpotInterrupted"),
        "removed by Karpenter": of_karpenter("Underutilized"),
    }


def of_nodes() -> dict[str, Diagnosis]:
    unready = with_conditions(condition("Ready", "False"))
    ready = with_conditions(condition("Ready", "True"))
    context = surroundings([node("node-1", conditions=[condition("Ready", "Unknown")])], [unready])
    unscheduled = pod("p", conditions=[condition("PodScheduled", "False", "Unschedulable", SELECTED)])
    group, stock, quota = NodeGroup("gpu", 0, 5, 0), "GCE out of resources", "GCE quota exceeded"
    errors = {
        "vCPU": VCPU,
        "a quota": "Quota 'NVIDIA_T4_GPUS' exceeded.  Limit: 1.0",
        "a zone": "InsufficientInstanceCapacity - in the Availability Zone you requested (eu-west-1a).",
        "no stock": "GCE_STOCKOUT",
    }
    creating = placed(CREATING, phase="Pending")
    faults = (("FailedCreatePodSandBox", NO_PAUSE_IMAGE), ("FailedCreatePodContainer", NO_CGROUPS))
    return {
        "PLEG": explain(ready, node=with_ready("False", PLEG)),
        "runtime down": explain(ready, node=with_ready("False", "container runtime is down")),
        "node silent": explain(unready, node=with_ready("Unknown", "Kubelet stopped posting node status.")),
        "node silent, by its condition": explain(unready, scheduling=context),
        "node of unknown state": explain(
            with_conditions(condition("Ready", "False"), condition("ContainersReady", "True"))
        ),
        "scale-up without stock": gpu_scale_up_failed(stock, None),
        "scale-up without stock, the group known": gpu_scale_up_failed(stock, group),
        "scale-up beyond the quota": gpu_scale_up_failed(quota, None),
        "scale-up beyond the quota, the group known": gpu_scale_up_failed(quota, group),
        "scale-up without stock, no nodes": explain(
            unscheduled, event_saying("FailedScaleUp", FAILED.format(why=stock))
        ),
        **{
            f"backed off: {name}": waits_for_gpu(group=NodeGroup("gpu", 0, 5, 0, True, error))
            for name, error in errors.items()
        },
        **{
            f"prepared for hours, sandbox {status}": explain(
                placed(CREATING, phase="Pending", conditions=[condition("PodReadyToStartContainers", status)])
            )
            for status in ("False", "True")
        },
        **{
            reason: explain(creating, event_saying(reason, message) | {"type": "Warning"}) for reason, message in faults
        },
        "no network, one minute": without_network(1),
        "no network, twenty minutes": without_network(20),
    }


def test_faults_of_nodes_and_clouds_are_told_as_stored() -> None:
    assert_answers_as_stored("words-of-nodes-and-clouds", (of_pods() | of_nodes()).items())
