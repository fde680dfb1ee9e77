"""Whether and when the autoscaler would remove a node, as the seed document states the rule."""

from datetime import UTC, datetime
from typing import Any

import pytest

from grid.diagnosis.requests import Amounts
from grid.kube.objects import Node, Pod
from grid.kube.pools import NodeGroup
from grid.nodes.scaledown import ScaleDown, ScaleDownRules, busiest, scale_down
from tests.support import builders

RULES = ScaleDownRules(threshold_percent=50, unneeded_seconds=600)
GROUP = NodeGroup("default", minimum=1, maximum=5, target=3)
REPLICATED: dict[str, Any] = {
    "owner": {"kind": "ReplicaSet", "metadata": {"name": "set", "uid": "1"}, "apiVersion": "apps/v1"}
}


def node(**arguments: Any) -> Node:
    return builders.decode(builders.node("n", cpu="4", memory="16Gi", **arguments), Node)


def pod(name: str = "p", **arguments: Any) -> Pod:
    return builders.decode(builders.pod(name, node="n", phase="Running", **{**REPLICATED, **arguments}), Pod)


def answer(on: Node, *pods: Pod, group: NodeGroup | None = GROUP, group_size: int = 3) -> ScaleDown:
    return scale_down(on, pods, group=group, group_size=group_size, rules=RULES)


def mark(value: str) -> list[dict[str, str]]:
    return [{"key": "DeletionCandidateOfClusterAutoscaler", "value": value, "effect": "PreferNoSchedule"}]


def test_marked_node_goes_after_unneeded_time() -> None:
    verdict = answer(node(taints=mark("1795236601")))
    assert (verdict.verdict, verdict.at) == ("marked", datetime(2026, 11, 21, 5, 0, 1, tzinfo=UTC))


REMOVED = [{"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"}]
NEW = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
UNREADY = "Kept for now: it is not ready, so the autoscaler waits before it decides."
IDLE = ScaleDown("unneeded", "Lightly used; the autoscaler has not marked it yet.")


@pytest.mark.parametrize(
    ("judged", "more", "expected"),
    [
        ({"taints": REMOVED}, {"group": None}, ScaleDown("removing", "The autoscaler is removing it now.")),
        ({}, {"group": None}, ScaleDown("unmanaged", "Kept: fixed size.")),
        ({}, {}, IDLE),
        *(
            ({"taints": mark(value)}, {}, ScaleDown("marked", "Unneeded; it can be removed", None))
            for value in ("", "soon", "99999999999999999999")
        ),
        (
            {"annotations": {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}},
            {},
            ScaleDown("kept", "Kept: its annotation scale-down-disabled forbids its removal."),
        ),
        (
            {"taints": mark("1795236601")},
            {"group_size": 1},
            ScaleDown("kept", "Kept: the pool is at its minimum of 1."),
        ),
        ({"ready": False}, {}, ScaleDown("kept", UNREADY)),
        ({"taints": [NEW]}, {}, ScaleDown("kept", UNREADY)),
        ({"taints": [{**NEW, "key": "nvidia.com/gpu"}]}, {}, IDLE),
    ],
)
def test_empty_node_goes_unless_kept(judged: dict[str, Any], more: dict[str, Any], expected: ScaleDown) -> None:
    assert answer(node(**judged), **more) == expected


def test_requests_at_the_threshold_keep_a_node() -> None:
    half = pod(requests={"cpu": "2", "memory": "1Gi"})
    less = pod(requests={"cpu": "1900m", "memory": "1Gi"})
    assert answer(node(), half) == ScaleDown("kept", "Kept: 50 % of CPU requested; removable below 50 %.")
    assert answer(node(), less).verdict == "unneeded"


def test_memory_counts_as_cpu_does() -> None:
    assert answer(node(), pod(requests={"cpu": "1", "memory": "12Gi"})).sentence.startswith("Kept: 75 % of memory")


def test_on_a_node_with_gpus_only_gpus_count() -> None:
    gpu = node(extended={"nvidia.com/gpu": "1"})
    assert answer(gpu, pod(requests={"cpu": "4", "memory": "16Gi"})).verdict == "unneeded"
    assert answer(gpu, pod(requests={"nvidia.com/gpu": "1"})).sentence.startswith("Kept: 100 % of GPUs")


@pytest.mark.parametrize(
    ("requested", "allocatable", "expected"),
    [
        (Amounts(1900, 2**30), Amounts(4000, 2**34), ("CPU", 47.5)),
        (Amounts(1000, 2**33), Amounts(4000, 2**34), ("memory", 50.0)),
        (Amounts(2000, 2**33), Amounts(4000, 2**34), ("CPU", 50.0)),
        (Amounts(4000, 2**34, 1), Amounts(4000, 2**34, 4), ("GPUs", 25.0)),
        (Amounts(1000, 2**30), Amounts(), ("CPU", 0.0)),
        (Amounts(1000, 2**30), Amounts(memory=2**34), ("memory", 6.25)),
        (Amounts(1000, 2**30), Amounts(cpu=4000), ("CPU", 25.0)),
    ],
)
def test_busiest_resource_has_its_share(requested: Amounts, allocatable: Amounts, expected: tuple[str, float]) -> None:
    assert busiest(requested, allocatable) == expected


SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ({"owner": None}, "no controller would create it again elsewhere"),
        (
            {"owner": {"kind": "ConfigMap", "metadata": {"name": "c", "uid": "1"}}},
            "no controller would create it again elsewhere",
        ),
        ({"annotations": {SAFE: "false"}}, "its annotation safe-to-evict is false"),
        ({"namespace": "kube-system"}, "it is a pod of kube-system"),
    ],
)
def test_a_pod_that_cannot_be_moved_keeps_its_node(case: dict[str, Any], reason: str) -> None:
    assert answer(node(), pod("stuck", **case)).sentence == f"Kept: pod stuck cannot be moved: {reason}."


@pytest.mark.parametrize(
    "case",
    [
        {"owner": {"kind": "DaemonSet", "metadata": {"name": "d", "uid": "1"}}, "namespace": "kube-system"},
        {"owner": None, "annotations": {SAFE: "true"}},
        {"owner": None, "annotations": {"kubernetes.io/config.mirror": "x"}},
        {"owner": None, "phase": "Succeeded"},
    ],
)
def test_pods_that_do_not_matter_keep_nothing(case: dict[str, Any]) -> None:
    harmless = builders.decode(builders.pod("p", node="n", **{"phase": "Running", **REPLICATED, **case}), Pod)
    assert answer(node(), harmless).verdict == "unneeded"
