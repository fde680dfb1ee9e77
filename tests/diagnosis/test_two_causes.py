"""What is said where two things go wrong at once, or where the reason of an end misleads.

The texts are those of Karpenter, the kubelet, Istio and NVIDIA's container tools. Read `tests/golden/words-of-two-causes.txt`.
"""

from datetime import timedelta
from typing import Any

from grid.core.labels import APP_COMPONENT, KEYS, WORKER
from grid.diagnosis.diagnosis import Diagnosis
from tests.diagnosis.placement.worlds import surroundings
from tests.diagnosis.situations import assert_answers_as_stored, ended, event_saying, explain
from tests.support.builders import MOMENT, condition, container_status, metadata, node, pod

LIMITED = (
    "Failed to schedule pod, all available instance types exceed limits for nodepool (NodePool=gpu); incompatible with nodepool "
    '(NodePool=shared-gpu), daemonset overhead={"cpu":"180m"}, did not tolerate taint (taint=team=vision:NoSchedule)'
)
MISMATCH = (
    "failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during "
    "container init: error running prestart hook #0: exit status 1, stdout: , stderr: Auto-detected mode as 'legacy'\n"
    "nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown"
)
NO_NAT_TABLE = "iptables-restore v1.8.11 (nf_tables): unable to initialize table 'nat'"


def unplaced(message: str, **spec: Any) -> dict[str, Any]:
    refused = condition("PodScheduled", "False", "Unschedulable", message)
    requests = {"cpu": "2", "memory": "8Gi", "nvidia.com/gpu": "1"}
    return pod("p", conditions=[refused], requests=requests, spec=spec, created=MOMENT - timedelta(minutes=20))


def limited_by_karpenter() -> Diagnosis:
    raw = unplaced("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")
    limited = event_saying("FailedScheduling", LIMITED) | {"reportingComponent": "karpenter"}
    return explain(raw, limited, scheduling=surroundings([node("node-1")], [raw]))


def volume_of_another_zone() -> Diagnosis:
    zones = [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["eu-1a"]}]
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": zones}]}}
    volume = {"kind": "PersistentVolume", "metadata": metadata("v"), "spec": {"nodeAffinity": affinity}}
    claim = {"kind": "PersistentVolumeClaim", "metadata": metadata("data"), "spec": {"volumeName": "v"}}
    raw = unplaced(
        "0/2 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity, 1 Insufficient nvidia.com/gpu.",
        volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    )
    nodes = [
        node("near", labels={"topology.kubernetes.io/zone": "eu-1a"}),
        node("far", labels={"topology.kubernetes.io/zone": "eu-1b"}, extended={"nvidia.com/gpu": "1"}),
    ]
    bound = claim | {"status": {"phase": "Bound"}}
    context = surroundings(nodes, [raw], [volume, bound], namespace=raw["metadata"]["namespace"])
    return explain(raw, scheduling=context)


def over(container: dict[str, Any], **more: Any) -> Diagnosis:
    return explain(pod("p", node="node-1", phase="Failed", statuses=[container], **more))


def failing_mesh() -> Diagnosis:
    again, last = {"waiting": {"reason": "CrashLoopBackOff"}}, ended(255, message=NO_NAT_TABLE)
    setup = container_status("istio-init", restarts=6, state=again, lastState=last)
    raw = pod(
        "p",
        node="node-1",
        spec={"initContainers": [{"name": "istio-init", "image": "istio/proxyv2:1.29.0"}]},
        statuses=[container_status(state={"waiting": {"reason": "PodInitializing"}})],
        status={"initContainerStatuses": [setup]},
    )
    return explain(raw)


NOT_REGISTERED = (
    'MountVolume.SetUp failed for volume "kube-api-access-x" : object "grid"/"kube-root-ca.crt" not registered'
)
NO_MDS = (
    'MountVolume.MountDevice failed for volume "pvc-1" : rpc error: code = Internal desc = an error (exit status 32) occurred '
    "while running mount args: [-t ceph 10.0.9.1:6789:/volumes] stderr: mount error: no mds (Metadata Server) is up."
)
IN_USE = 'Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) cluster-abc-head-7d9f'


def without_volume(*warnings: tuple[str, str], **labels: str) -> Diagnosis:
    raw = pod(
        "p",
        node="node-1",
        labels=labels,
        statuses=[container_status(state={"waiting": {"reason": "ContainerCreating"}})],
    )
    return explain(raw, *(event_saying(*each, seconds=60 - at) for at, each in enumerate(warnings)))


def removed_by_autoscaler() -> Diagnosis:
    evicted = condition("DisruptionTarget", "True", "EvictionByEvictionAPI", "Eviction API: evicting")
    raw = pod("p", node="node-1", phase="Failed", conditions=[evicted], statuses=[container_status(state=ended(137))])
    return explain(raw, event_saying("ScaleDown", "deleting pod for node scale down"))


def complete_with_companion() -> Diagnosis:
    containers = [{"name": "run", "image": "lab:4"}, {"name": "istio-proxy", "image": "istio/proxyv2:1.29.0"}]
    statuses = [container_status(state=ended(0, "Completed")), container_status("istio-proxy", ready=True)]
    return explain(pod("p", node="node-1", phase="Running", containers=containers, statuses=statuses))


def test_two_causes_are_told_as_stored() -> None:
    preempted = {"reason": "Preempting", "message": "Preempted in order to admit critical pod"}
    answers = {
        "Karpenter has reached the limits of one pool, and another has a taint": limited_by_karpenter(),
        "the volume is in a zone without GPUs": volume_of_another_zone(),
        "ended for a critical pod, with the exit code of a lack of memory": over(
            container_status(state=ended(137)), status=preempted
        ),
        "the node's GPU driver is another than its libraries": over(
            container_status(state=ended(128, "StartError", message=MISMATCH))
        ),
        "the setup of the mesh keeps failing": failing_mesh(),
        "the program is complete, and its companion runs": complete_with_companion(),
        "storage fails, and after it the kubelet has not read the cluster's certificate": without_volume(
            ("FailedMount", NO_MDS), ("FailedMount", NOT_REGISTERED)
        ),
        "a cluster's head has the volume that its worker on another node needs": without_volume(
            ("FailedAttachVolume", IN_USE), **{KEYS.execution: "abc", APP_COMPONENT: WORKER}
        ),
        "the autoscaler removed the node, and the exit code is that of a lack of memory": removed_by_autoscaler(),
        "the cluster has no node": explain(
            unplaced("no nodes available to schedule pods"), scheduling=surroundings([], [])
        ),
    }
    assert_answers_as_stored("words-of-two-causes", answers.items())
