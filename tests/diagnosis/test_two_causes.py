"""What is said where two things go wrong at once, or where the reason of an end misleads.

The texts are those of Karpenter, Gatekeeper, GKE's Warden, Sigstore's policy controller, the kubelet, Istio and NVIDIA's container tools.
"""

from datetime import timedelta
from typing import Any

import pytest

from grid.diagnosis.clusters import explain_cluster
from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.pods import explain_pod
from grid.diagnosis.refusals import explain_refusal
from grid.kube.objects import Event, Pod
from tests.clusters.clustering import waiting_worker, worker_pod
from tests.diagnosis.placement.worlds import surroundings
from tests.diagnosis.situations import ended, event_saying
from tests.diagnosis.snapshots import NOW, event, member, ready, snapshot
from tests.support.builders import MOMENT, condition, container_status, decode, metadata, node, pod

FULL = "0/6 nodes are available: 6 Insufficient cpu."
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
GATEKEEPER = (
    'admission webhook "validation.gatekeeper.sh" denied the request: [allowed-repos] container <run> has an invalid image repo '
    "<docker.io/alice/exp:3>\n[container-limits] container <run> memory limit <512Gi> is higher than the maximum allowed of <256Gi>"
)
POD_SECURITY = (
    'pods "p" is forbidden: violates PodSecurity "baseline:v1.36": non-default capabilities (container "fuse" must not include '
    '"SYS_ADMIN" in securityContext.capabilities.add), hostPath volumes (volume "dev-fuse")'
)
WARDEN = (
    'admission webhook "warden-validating.common-webhooks.networking.gke.io" denied the request: GKE Warden rejected the request '
    'because it violates one or more constraints.\nViolations details: {"[denied by autogke-no-write-mode-hostpath]":["hostPath '
    'volume shm used in container run uses path /dev/shm which is not allowed in Autopilot."]}'
)
SIGSTORE = (
    'admission webhook "policy.sigstore.dev" denied the request: validation failed: failed policy: signed-by-ci: '
    "spec.containers[0].image\nlab@sha256:9f2c signature key validation failed for authority authority-0"
)
FULL_DISK = 'Container run exceeded its local ephemeral storage limit "20Gi". '


def explain(raw: dict[str, Any], *events: dict[str, Any], **more: Any) -> Diagnosis:
    return explain_pod(decode(raw, Pod), [decode(each, Event) for each in events], now=MOMENT, **more)


def assert_says(diagnosis: Diagnosis, severity: str, who: str, *words: str) -> None:
    assert (diagnosis.severity, diagnosis.who) == (severity, who), diagnosis
    text = f"{diagnosis.sentence} {diagnosis.next_step}"
    assert [each for each in words if each not in text] == [], text


def unplaced(message: str, **spec: Any) -> dict[str, Any]:
    refused = condition("PodScheduled", "False", "Unschedulable", message)
    requests = {"cpu": "2", "memory": "8Gi", "nvidia.com/gpu": "1"}
    return pod("p", conditions=[refused], requests=requests, spec=spec, created=MOMENT - timedelta(minutes=20))


def test_karpenter_names_what_keeps_each_pool() -> None:
    raw = unplaced("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")
    limited = event_saying("FailedScheduling", LIMITED) | {"reportingComponent": "karpenter"}
    answer = explain(raw, limited, scheduling=surroundings([node("node-1")], [raw]))
    assert_says(
        answer, "problem", "admin", "gpu: a new node would exceed its limits", "shared-gpu: its nodes have a taint"
    )


def test_volume_of_a_zone_without_gpus_names_both() -> None:
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
    answer = explain(raw, scheduling=context)
    assert_says(answer, "problem", "admin", "1 node can reach the volume claim data (zone eu-1a)", "this needs 1 GPU")


def test_cluster_names_eviction_and_full_pool() -> None:
    evicted = worker_pod("c", "e", ready=False, phase="Failed", status={"reason": "Evicted", "message": FULL_DISK})
    full = condition("PodScheduled", "False", "Unschedulable", FULL)
    waiting = waiting_worker("c", "w", conditions=[full])
    not_scaled = event(waiting, "NotTriggerScaleUp", "pod didn't trigger scale-up: 2 max node group size reached")
    seen = snapshot([*ready(2), member(evicted), member(waiting, not_scaled)], desired=4)
    failing, pending = explain_cluster(seen, now=NOW)
    assert_says(failing, "problem", "you", "1 worker:", "wrote more to its node's disk than its tier allows")
    assert_says(pending, "wait", "admin", "1 worker:", "as many nodes as it may have")


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            GATEKEEPER,
            ("validation.gatekeeper.sh", "invalid image repo <docker.io/alice/exp:3>", "memory limit <512Gi> is"),
        ),
        (POD_SECURITY, ("baseline:v1.36", "SYS_ADMIN", 'hostPath volumes (volume "dev-fuse")')),
        (WARDEN, ("autogke-no-write-mode-hostpath", "/dev/shm which is not allowed in Autopilot")),
        (SIGSTORE, ("policy.sigstore.dev", "failed policy: signed-by-ci", "signature key validation failed")),
    ],
)
def test_refusal_quotes_each_rule_it_violates(message: str, words: tuple[str, ...]) -> None:
    reason = explain_refusal(message)
    assert reason is not None
    assert [each for each in words if each not in reason.sentence] == [], reason.sentence
    assert reason.for_good
    assert "admin" in reason.next_step


def test_pod_ended_for_critical_pod_blames_no_memory() -> None:
    message = "Preempted in order to admit critical pod"
    status = {"reason": "Preempting", "message": message}
    raw = pod("p", node="node-1", phase="Failed", statuses=[container_status(state=ended(137))], status=status)
    answer = explain(raw)
    assert_says(answer, "problem", "operator", "make room for a critical pod", "Launch it again")
    assert "memory" not in f"{answer.sentence} {answer.next_step}"


def test_driver_mismatch_blames_node_not_image() -> None:
    state = ended(128, "StartError", message=MISMATCH)
    answer = explain(pod("p", node="node-1", phase="Failed", statuses=[container_status(state=state)]))
    assert_says(answer, "problem", "operator", "the node's GPU driver does not answer", "may get another one")


def test_failing_mesh_setup_blames_no_program() -> None:
    setup = container_status(
        "istio-init",
        restarts=6,
        state={"waiting": {"reason": "CrashLoopBackOff"}},
        lastState=ended(255, message=NO_NAT_TABLE),
    )
    raw = pod(
        "p",
        node="node-1",
        spec={"initContainers": [{"name": "istio-init", "image": "istio/proxyv2:1.29.0"}]},
        statuses=[container_status(state={"waiting": {"reason": "PodInitializing"}})],
        status={"initContainerStatuses": [setup]},
    )
    answer = explain(raw)
    assert_says(answer, "problem", "admin", "Setup step istio-init keeps failing (6 restarts)", "container istio-init")
    assert NO_NAT_TABLE in answer.evidence


def test_program_is_complete_though_its_companion_runs() -> None:
    proxy = container_status("istio-proxy", ready=True)
    raw = pod(
        "p",
        node="node-1",
        phase="Running",
        containers=[{"name": "run", "image": "lab:4"}, {"name": "istio-proxy", "image": "istio/proxyv2:1.29.0"}],
        statuses=[container_status(state=ended(0, "Completed")), proxy],
    )
    assert_says(explain(raw), "ok", "", "The program ended by itself, without an error.")
