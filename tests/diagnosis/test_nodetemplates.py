"""What a pool's next node will look like, from its nodes as they were; and that it comes back from the database as it went."""

import json
from typing import Any

import pytest

from grid.diagnosis.nodeshapes import NodeTemplate, TemplateTally, as_stored, from_stored
from grid.kube.objects import Node, is_ready
from tests.support.builders import MOMENT, decode, node

ZONE = "topology.kubernetes.io/zone"
CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
GPU = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


def template(*nodes: dict[str, Any], own: dict[str, int] | None = None) -> NodeTemplate | None:
    tally = TemplateTally()
    for place, more in enumerate(nodes):
        tally.count(decode(node(f"n{place}", **more), Node), own or {})
    return tally.template(MOMENT)


def known(*nodes: dict[str, Any], **more: Any) -> NodeTemplate:
    made = template(*nodes, **more)
    assert made is not None
    return made


def test_most_frequent_shape_of_usable_nodes_becomes_template() -> None:
    large: dict[str, Any] = {"cpu": "64"}
    away: list[dict[str, Any]] = [
        {**large, "ready": False},
        {**large, "unschedulable": True},
        {**large, "taints": [CORDON]},
    ]
    assert known(large, {"cpu": "8"}, {"cpu": "8"}, *away).shape.allocatable["cpu"] == 8000
    assert template(*away) is None
    assert template() is None


def test_template_does_not_depend_on_order_of_equals() -> None:
    kinds: list[dict[str, Any]] = [{"cpu": "8"}, {"cpu": "4"}, {"cpu": "8", "taints": [GPU]}]
    assert known(*kinds) == known(*kinds[::-1])


def test_template_labels_are_common_ones_without_the_host_name() -> None:
    first: dict[str, Any] = {"labels": {"kubernetes.io/hostname": "n0", ZONE: "a", "disk": "ssd"}}
    other: dict[str, Any] = {"labels": {"kubernetes.io/hostname": "n1", ZONE: "b", "disk": "ssd", "rack": "1"}}
    alone, both = known(first).node.metadata.labels, known(first, other).node.metadata.labels
    assert (alone[ZONE], alone["disk"], "kubernetes.io/hostname" in alone) == ("a", "ssd", False)
    assert (both.get(ZONE), both["disk"], both.get("rack")) == (None, "ssd", None)


def test_template_is_ready_with_lasting_taints_and_daemon_room() -> None:
    made = known({"cpu": "7920m", "memory": "32Gi", "taints": [GPU]}, own={"cpu": 420, "pods": 2})
    assert is_ready(made.node)
    assert [(taint.key, taint.value, taint.effect) for taint in made.shape.taints] == [tuple(GPU.values())]
    assert (made.shape.free["cpu"], made.shape.nodes, made.shape.away) == (7500, 0, 0)
    assert made.seen == f"{MOMENT:%-d %B %Y}"


def test_template_survives_storing() -> None:
    made = known({"cpu": "7920m", "taints": [GPU], "extended": {"nvidia.com/gpu": "2"}}, own={"cpu": 420})
    raw, own = json.loads(json.dumps(as_stored(made)))
    assert (raw, own) == as_stored(made)
    assert from_stored(raw, own, MOMENT) == made


@pytest.mark.parametrize(
    ("raw", "own"),
    [(None, {}), ([], {}), ({"labels": {}}, {}), ({"labels": {}, "taints": [], "allocatable": {"cpu": 8}}, {}),
     ({"labels": {}, "taints": [{}], "allocatable": {}}, {}), ({"labels": {}, "taints": [], "allocatable": {}}, {"cpu": "many"})],
)  # fmt: skip
def test_template_stored_by_another_version_is_not_read(raw: object, own: object) -> None:
    with pytest.raises(ValueError, match=r"Expected|missing"):
        from_stored(raw, own, MOMENT)
