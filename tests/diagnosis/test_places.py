"""Nodes that take new pods, and tolerations of taints."""

from typing import Any

import pytest

from grid.diagnosis.places import lasting_taints, taint_text, takes_pods, tolerates, untolerated
from grid.kube.objects import Node, Taint, Toleration
from tests.support.builders import decode, node

GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


def a_node(**more: Any) -> Node:
    return decode(node("n1", cpu="8", memory="16Gi", **more), Node)


LEAVING = {"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"}
UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}


@pytest.mark.parametrize(
    "more", [{"unschedulable": True}, {"ready": False}, {"taints": [LEAVING]}, {"taints": [UNREACHABLE]}]
)
def test_cordoned_unready_or_leaving_node_takes_no_pods(more: dict[str, Any]) -> None:
    assert takes_pods(a_node())
    assert not takes_pods(a_node(**more))
    assert lasting_taints(a_node(**more)) == ()


def test_lasting_taint_keeps_off_pods_without_toleration() -> None:
    tainted = a_node(taints=[GPU_TAINT, {**GPU_TAINT, "effect": "PreferNoSchedule"}])
    assert takes_pods(tainted)
    (taint,) = untolerated(lasting_taints(tainted), [])
    assert taint_text(taint) == "nvidia.com/gpu=present:NoSchedule"
    assert not untolerated(tainted.spec.taints, [Toleration(key="nvidia.com/gpu", operator="Exists")])


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration(operator="Exists"), True),
        (Toleration(key="", value="v"), False),
        (Toleration(key="k", value="v"), True),
        (Toleration(key="k", value="v", effect="NoExecute"), False),
        (Toleration(key="k", value="w"), False),
        (Toleration(key="k", operator="Exists"), True),
    ],
)
def test_tolerations_match_as_in_kubernetes(toleration: Toleration, expected: bool) -> None:
    assert tolerates([toleration], Taint(key="k", value="v", effect="NoSchedule")) is expected
