"""Whether and when the autoscaler would remove a node, as the seed document states the rule."""

from datetime import UTC, datetime
from typing import Any

import pytest

from grid.diagnosis.requests import Amounts
from grid.kube.objects import Node, Pod
from grid.kube.pools import NodeGroup
from grid.nodes.scaledown import ScaleDown, ScaleDownRules, busiest, scale_down
from tests.support import builders
from tests.support.golden import assert_golden

RULES = ScaleDownRules(threshold_percent=50, unneeded_seconds=600)
GROUP = NodeGroup("default", minimum=1, maximum=5, target=3)
REPLICATED: dict[str, Any] = {
    "owner": {"kind": "ReplicaSet", "metadata": {"name": "set", "uid": "1"}, "apiVersion": "apps/v1"}
}


def node(**arguments: Any) -> Node:
    return builders.decode(builders.node("n", cpu="4", memory="16Gi", **arguments), Node)


def pod(name: str = "p", **arguments: Any) -> Pod:
    return builders.decode(builders.pod(name, node="n", **{"phase": "Running", **REPLICATED, **arguments}), Pod)


def answer(on: Node, *pods: Pod, group: NodeGroup | None = GROUP, group_size: int = 3) -> ScaleDown:
    return scale_down(on, pods, group=group, group_size=group_size, rules=RULES)


def mark(value: str) -> list[dict[str, str]]:
    return [{"key": "DeletionCandidateOfClusterAutoscaler", "value": value, "effect": "PreferNoSchedule"}]


def test_marked_node_goes_after_unneeded_time() -> None:
    verdict = answer(node(taints=mark("1795236601")))
    assert (verdict.verdict, verdict.at) == ("marked", datetime(2026, 11, 21, 5, 0, 1, tzinfo=UTC))


SAFE, DISABLED = (f"cluster-autoscaler.kubernetes.io/{name}" for name in ("safe-to-evict", "scale-down-disabled"))
REMOVED = [{"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"}]
NEW = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
GPU = "nvidia.com/gpu"


def of_empty_nodes() -> dict[str, ScaleDown]:
    return {
        "being removed, in a group that is not known": answer(node(taints=REMOVED), group=None),
        "in a group that is not known": answer(node(), group=None),
        "empty": answer(node()),
        **{f"marked at “{at}”": answer(node(taints=mark(at))) for at in ("", "soon", "99999999999999999999")},
        "its removal forbidden": answer(node(annotations={DISABLED: "true"})),
        "marked, in a pool at its minimum": answer(node(taints=mark("1795236601")), group_size=1),
        "not ready": answer(node(ready=False)),
        "with the taint of a node that is not ready": answer(node(taints=[NEW])),
        "with the taint of GPUs": answer(node(taints=[{**NEW, "key": GPU}])),
    }


def of_pods() -> dict[str, ScaleDown]:
    gpus, config_map = node(extended={GPU: "1"}), {"kind": "ConfigMap", "metadata": {"name": "c", "uid": "1"}}
    daemon = {"kind": "DaemonSet", "metadata": {"name": "d", "uid": "1"}}
    return {
        "half of its CPU requested": answer(node(), pod(requests={"cpu": "2", "memory": "1Gi"})),
        "less than half of its CPU requested": answer(node(), pod(requests={"cpu": "1900m", "memory": "1Gi"})),
        "more than half of its memory requested": answer(node(), pod(requests={"cpu": "1", "memory": "12Gi"})),
        "GPUs, and all CPU and memory requested": answer(gpus, pod(requests={"cpu": "4", "memory": "16Gi"})),
        "GPUs, and all of them requested": answer(gpus, pod(requests={GPU: "1"})),
        "a pod of nobody": answer(node(), pod("stuck", owner=None)),
        "a pod of a ConfigMap": answer(node(), pod("stuck", owner=config_map)),
        "a pod that is not safe to evict": answer(node(), pod("stuck", annotations={SAFE: "false"})),
        "a pod of the system": answer(node(), pod("stuck", namespace="kube-system")),
        "a pod of a DaemonSet of the system": answer(node(), pod(owner=daemon, namespace="kube-system")),
        "a pod of nobody that is safe to evict": answer(node(), pod(owner=None, annotations={SAFE: "true"})),
        "a pod of the node's own files": answer(
            node(), pod(owner=None, annotations={"kubernetes.io/config.mirror": "x"})
        ),
        "a pod that has ended": answer(node(), pod(owner=None, phase="Succeeded")),
    }


def test_verdicts_on_nodes_are_as_stored() -> None:
    verdicts = of_empty_nodes() | of_pods()
    assert all(verdict.at is None for verdict in verdicts.values())
    blocks = [f"# {name}\n{verdict.verdict}: {verdict.sentence}" for name, verdict in verdicts.items()]
    assert_golden("words-of-scale-down", "\n".join(blocks), ending="txt")


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
