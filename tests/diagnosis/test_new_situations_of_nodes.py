"""What is said of faults of nodes and of the cloud, in situations that an expert wrote down before reading any rule.

The texts are those of kubelet, containerd and cri-o, of the cluster autoscaler of GKE, EKS and AKS, of Karpenter and of Kueue.
Read `tests/golden/words-of-new-situations-of-nodes.txt`.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from grid.core.labels import NODE_POOL
from grid.diagnosis.diagnosis import Diagnosis
from grid.kube.objects import Node
from grid.kube.pools import NodeGroup
from tests.diagnosis.placement.worlds import surroundings
from tests.diagnosis.situations import ago, assert_answers_as_stored, event_saying, explain
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
TOO_LITTLE = "container init was OOM-killed (memory limit too low?): unknown"
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
CILIUM = "node.cilium.io/agent-not-ready"


def evicted(resource: str, *uses: tuple[str, str, str], containers: Iterable[str] = ("run",)) -> Diagnosis:
    used = "".join(USES.format(name=name, used=used, asked=asked, resource=resource) for name, used, asked in uses)
    status = {"reason": "Evicted", "message": EVICTED.format(resource=resource) + used}
    specs = [{"name": name, "image": "lab:4"} for name in containers]
    return explain(pod("p", node="node-1", phase="Failed", containers=specs, status=status))


def of_evictions() -> dict[str, Diagnosis]:
    users = {
        "a full disk, and its small user": ("ephemeral-storage", ("run", "34Mi", "0")),
        "a full memory, and its small user": ("memory", ("run", "8232Mi", "8Gi")),
        "a full disk, and its large user": ("ephemeral-storage", ("run", "41Gi", "0")),
        "a full memory, and its large user": ("memory", ("run", "8700Mi", "8Gi")),
    }
    proxy, small = ("istio-proxy", "41Gi", "0"), ("run", "34Mi", "0")
    injected = ["run", "istio-proxy"]
    return {name: evicted(resource, uses) for name, (resource, uses) in users.items()} | {
        "a disk filled by an injected container": evicted("ephemeral-storage", proxy, containers=injected),
        "a disk filled by an injected container first": evicted("ephemeral-storage", proxy, small, containers=injected),
    }


def of_sandboxes() -> dict[str, Diagnosis]:
    messages = {
        "other cgroup drivers": CGROUPS,
        "no more processes": FORK,
        "Calico is not authorized": CALICO,
        "Multus waits in vain": MULTUS,
        "out of time": "context deadline exceeded",
        "a full disk of the runtime": "mkdir /run/containerd/0b4e: no space left on device",
    }
    creating = pod("p", node="node-1", statuses=[container_status(state={"waiting": {"reason": "ContainerCreating"}})])
    failed = {why: event_saying("FailedCreatePodSandBox", SANDBOX + text) for why, text in messages.items()}
    return {f"no sandbox: {why}": explain(creating, event | {"type": "Warning"}) for why, event in failed.items()}


def waiting(reason: str, message: str = "", *events: dict[str, Any]) -> Diagnosis:
    statuses = [container_status(state={"waiting": {"reason": reason, "message": message}})]
    conditions = [condition("PodScheduled", "True", at=MOMENT - timedelta(minutes=11))]
    return explain(pod("p", node="node-1", statuses=statuses, conditions=conditions), *events)


def rejected(reason: str, message: str, *containers: str) -> Diagnosis:
    specs = [{"name": name, "image": "lab:4"} for name in containers or ("run",)]
    status = {"reason": reason, "message": message}
    return explain(pod("p", node="node-1", phase="Failed", containers=specs, status=status))


def of_services_of_nodes() -> dict[str, Diagnosis]:
    """What a node lacks is the node's fault, whichever step of a start meets it; what no node has is not."""
    socket = 'dial unix /run/containerd-stargz-grpc/containerd-stargz-grpc.sock: connect: connection refused"'
    no_disk = 'failed to write checkpoint file "kubelet_internal": open /var/lib/kubelet/device-plugins/.5: no space left on device'
    cni = 'failed to setup network for sandbox "3f1c": plugin type="{}" failed (add): '
    sandboxes = {
        "Cilium's agent is down": cni.format("cilium-cni")
        + "dial unix /var/run/cilium/cilium.sock: connect: no such file",
        "Azure has no address": cni.format("azure-vnet")
        + "not enough IPs available, waiting on Azure CNS to allocate more",
        "a network that is not there": cni.format("multus")
        + "getKubernetesDelegate: cannot find a network-attachment-definition (rdma) in namespace (lab)",
        "a runtime that is not there": TASK
        + 'runtime "io.containerd.runsc.v1" binary not installed "containerd-shim-runsc-v1": x',
    }
    pulls = {
        "a snapshotter is down": f'failed to pull and unpack image "lab:4": failed to prepare extraction snapshot: {socket}',
        "a layer is damaged": 'failed to pull and unpack image "lab:4": failed to apply layer: archive/tar: invalid tar header: unknown',
        "no cause": "",
    }
    runc = "OCI runtime create failed: runc create failed: unable to start container process: "
    starts = {
        "a device that CDI does not know": "CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=GPU-2f3e",
        "systemd does not answer": f"{runc}unable to apply cgroup configuration: unable to start unit: recipient disconnected",
    }
    return {
        **{
            f"no sandbox: {why}": waiting(
                "ContainerCreating", "", event_saying("FailedCreatePodSandBox", SANDBOX + text) | {"type": "Warning"}
            )
            for why, text in sandboxes.items()
        },
        **{
            f"no image: {why}": waiting("ImagePullBackOff", f'Back-off pulling image "lab:4": ErrImagePull: {text}')
            for why, text in pulls.items()
        },
        **{f"no start: {why}": waiting("CreateContainerError", text) for why, text in starts.items()},
        "rejected: a full disk": rejected("UnexpectedAdmissionError", f"Allocate failed due to {no_disk}, which is unexpected"),
        "rejected: no GPU is registered": rejected(
            "OutOfnvidia.com/gpu", "Node didn't have enough resource: nvidia.com/gpu, requested: 1, used: 0, capacity: 0"
        ),
        "evicted: shared memory of a foreign pod": rejected("Evicted", 'Usage of EmptyDir volume "dshm" exceeds the limit "8Gi". '),
        "evicted: an injected container wrote too much": rejected(
            "Evicted", 'Container proxy exceeded its local ephemeral storage limit "1Gi". ', "run", "proxy"
        ),
        "evicted: a container wrote too much": rejected(
            "Evicted", 'Container run exceeded its local ephemeral storage limit "1Gi". ', "run", "proxy"
        ),
    }  # fmt: skip


def running(name: str = "run", *, ready: bool = True) -> dict[str, Any]:
    return container_status(name, ready=ready, state={"running": {"startedAt": ago(600)}})


def unhealthy(says: str) -> Diagnosis:
    probe = event_saying("Unhealthy", f"Readiness probe {says}")
    return explain(pod("p", node="node-1", phase="Running", statuses=[running(ready=False)]), probe)


def left_on(minutes: float, status: str, message: str) -> Diagnosis:
    """Explain a pod that is being deleted, on a node that has been in that state for that time."""
    since = MOMENT - timedelta(minutes=minutes)
    silent = node(
        "node-1", created=MOMENT - timedelta(days=4), conditions=[condition("Ready", status, "", message, at=since)]
    )
    raw = pod("p", node="node-1", phase="Running", statuses=[container_status(state={"running": {}}, ready=True)])
    deleted = {"deletionTimestamp": stamp(since + timedelta(minutes=5)), "deletionGracePeriodSeconds": 30}
    return explain({**raw, "metadata": metadata("p") | deleted}, node=decode(silent, Node))


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


def failed(why: str, *, zone: str = "eu-1a", seconds: float = 60) -> dict[str, Any]:
    return event_saying("FailedScaleUp", FAILED.format(zone=zone, why=why), seconds=seconds)


def of_scale_ups(*, pool: str = "gpu", knows_nodes: bool = True) -> dict[str, Diagnosis]:
    events = {
        "fails in two zones for two reasons": (
            failed("GCE out of resources", seconds=720),
            failed("GCE quota exceeded", zone="eu-1b"),
        ),
        **{
            f"fails: {why}": (failed(why),)
            for why in ("IP space exhausted", "Service account deleted", "Internal error")
        },
    }
    if knows_nodes:
        started = event_saying("TriggeredScaleUp", TRIGGERED, seconds=1400)
        events["begins, and is then backed off"] = started, event_saying("NotTriggerScaleUp", BACKED_OFF, seconds=120)
    where = f"{f'pool {pool}' if pool else 'no pool'}{'' if knows_nodes else ', the nodes not known'}"
    return {
        f"a scale-up {name} ({where})": waits(*each, pool=pool, knows_nodes=knows_nodes)
        for name, each in events.items()
    }


ERRORS = (
    "SubnetIsFull: Subnet aks has not enough capacity for 12 IP addresses.",
    "InsufficientFreeAddressesInSubnet: There are not enough free addresses in subnet-0ab1.",
    "IP_SPACE_EXHAUSTED: creation failed: IP space of 'gke-pods' is exhausted.",
    "MaxSpotInstanceCountExceeded: Max spot instance count exceeded",
    "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS: not enough resources.",
    "AllocationFailed: We do not have sufficient capacity for the requested VM size.",
    "You are not authorized to use launch template: lt-0ab1",
    "Client.InstanceInitiatedShutdown: shut down",
)


def nominated(*claims: tuple[str, float], times: int = 1) -> list[dict[str, Any]]:
    """Return Karpenter's choices, each so many minutes ago at first; of `times` the last is of now."""
    made = []
    for claim, minutes in claims:
        event = event_saying("Nominated", f"Pod should schedule on: {claim}", seconds=60 * minutes)
        last = {"count": times, "lastTimestamp": stamp(MOMENT)} if times > 1 else {}
        made.append(event | last | {"reportingComponent": "karpenter"})
    return made


def of_karpenter() -> dict[str, Diagnosis]:
    late, early = nominated(("nodeclaim/a", 25), ("nodeclaim/b", 9)), nominated(("nodeclaim/a", 4), ("nodeclaim/b", 1))
    return {
        "Karpenter's second choice in 25 minutes": waits(*late),
        "Karpenter's second choice in 25 minutes, the nodes not known": waits(*late, knows_nodes=False),
        "Karpenter's second choice in 4 minutes": waits(*early),
        "Karpenter's second choice in 4 minutes, the nodes not known": waits(*early, knows_nodes=False),
        "Karpenter's choice of 25 minutes ago, repeated": waits(*nominated(("nodeclaim/a", 25), times=40)),
        "Karpenter's claim has its node": waits(*nominated(("nodeclaim/a", 4), ("nodeclaim/a, node/b", 1))),
        "Karpenter's second node": waits(*nominated(("node/a", 18), ("node/b", 2))),
    }


def with_full_node(key: str, minutes: float, *events: dict[str, Any]) -> Diagnosis:
    new = node("new", created=MOMENT - timedelta(minutes=minutes), taints=[{"key": key, "effect": "NoSchedule"}])
    full = pod("x", node="old", phase="Running", ready=True, requests={"cpu": "3"})
    refused = condition("PodScheduled", "False", "Unschedulable", "0/2 nodes are available: 1 Insufficient cpu.")
    raw = pod("p", conditions=[refused], requests={"cpu": "3"}, created=MOMENT - timedelta(minutes=22))
    old = node("old", created=MOMENT - timedelta(days=4))
    return explain(raw, *events, scheduling=surroundings([new, old], [full]))


def of_startup_taints() -> dict[str, Diagnosis]:
    started = event_saying("TriggeredScaleUp", TRIGGERED, seconds=1300)
    keys = (
        CILIUM, "node.cloudprovider.kubernetes.io/uninitialized", "disk.csi.azure.com/agent-not-ready",
        "karpenter.sh/unregistered",
    )  # fmt: skip
    tainted, created = [{"key": CILIUM, "effect": "NoSchedule"}], MOMENT - timedelta(minutes=20)
    old = node("old", pool="gpu", created=created, taints=tainted, extended={"nvidia.com/gpu": "1"})
    return {
        **{f"a startup taint for 20 minutes: {key}": with_full_node(key, 20) for key in keys},
        **{f"the same after a late scale-up: {key}": with_full_node(key, 20, started) for key in keys},
        "a startup taint for 3 minutes": with_full_node(CILIUM, 3),
        "an old startup taint, and the autoscaler starts a node": waits(group=NodeGroup("gpu", 0, 4, 2), nodes=[old]),
        "an old startup taint, and Karpenter starts a node": with_full_node(CILIUM, 20, *nominated(("nodeclaim/b", 1))),
    }


def gated(*gates: str, **labels: str) -> Diagnosis:
    words = "Scheduling is blocked due to non-empty scheduling gates"
    refused = condition("PodScheduled", "False", "SchedulingGated", words)
    spec = {"schedulingGates": [{"name": name} for name in gates]}
    return explain(pod("p", conditions=[refused], spec=spec, labels=labels))


def situations() -> dict[str, Diagnosis]:
    admission = "kueue.x-k8s.io/admission"
    return {
        **of_evictions(),
        **of_sandboxes(),
        **of_services_of_nodes(),
        "left on a node that is silent": left_on(40, "Unknown", "Kubelet stopped posting node status."),
        "left on a node that is not ready": left_on(40, "False", "container runtime is down"),
        **of_scale_ups(),
        **of_scale_ups(pool=""),
        **of_scale_ups(knows_nodes=False),
        **{f"backed off: {error}": waits(group=NodeGroup("gpu", 0, 5, 0, True, error)) for error in ERRORS},
        **of_karpenter(),
        **of_startup_taints(),
        "in a queue of Kueue": gated(admission, **{"kueue.x-k8s.io/queue-name": "vision"}),
        "in a queue of Kueue with no name": gated(admission, "kueue.x-k8s.io/topology"),
        "in a queue of Kueue, and held by another": gated(admission, "lab.example/hold"),
    }


def test_new_situations_of_nodes_are_told_as_stored() -> None:
    answers = {f"{name}{' (normal)' if answer.is_normal else ''}": answer for name, answer in situations().items()}
    assert_answers_as_stored("words-of-new-situations-of-nodes", answers.items())
