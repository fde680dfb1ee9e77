"""Which nodes go: only what nobody needs, never below the minimum, never two that count on each other."""

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from grid.core.labels import SAFE_TO_EVICT, SCALE_DOWN_DISABLED
from grid.sandbox.client import Object, name_of
from grid.sandbox.controllers.autoscaling.scaledown import (
    NodeVerdict,
    Removable,
    plan_scale_down,
    pods_to_move,
    utilization,
)
from grid.sandbox.controllers.podresources import Amounts, add, pod_requests
from grid.sandbox.controllers.scheduling import build_snapshot
from tests.sandbox.support import make_node, make_pod

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}


def pod_on(node: str, name: str, *, cpu: str = "1", owned: bool = True, safe_to_evict: str = "", **spec: Any) -> Object:
    pod = make_pod(name, requests={"cpu": cpu}, nodeName=node, **spec)
    pod["metadata"] |= {"uid": name, "labels": {"app": "web"}}
    pod["metadata"]["ownerReferences"] = [OWNER] if owned else []
    if safe_to_evict:
        pod["metadata"]["annotations"] = {SAFE_TO_EVICT: safe_to_evict}
    return pod


def judge(
    nodes: list[Object],
    pods: list[Object],
    *,
    minimum: int = 0,
    budgets: list[Object] | None = None,
    known: tuple[str, ...] = (),
) -> dict[str, NodeVerdict]:
    verdicts = plan_scale_down(
        build_snapshot(nodes, pods),
        [Removable(name_of(node), "default") for node in nodes],
        spare={"default": len(nodes) - minimum},
        budgets=budgets or [],
        threshold=0.5,
        known=known,
    )
    return {verdict.node: verdict for verdict in verdicts}


def unneeded(verdicts: dict[str, NodeVerdict]) -> set[str]:
    return {name for name, verdict in verdicts.items() if verdict.unneeded}


def two_nodes() -> list[Object]:
    return [make_node("a"), make_node("b")]


def test_empty_nodes_are_unneeded_down_to_pool_minimum() -> None:
    verdicts = judge(two_nodes(), [], minimum=1)
    assert len(unneeded(verdicts)) == 1
    assert {verdict.reason for verdict in verdicts.values()} == {"", "its pool is at its minimum"}


def test_longest_unneeded_node_stays_the_chosen_one() -> None:
    assert unneeded(judge(two_nodes(), [], minimum=1, known=("b",))) == {"b"}
    assert unneeded(judge(two_nodes(), [], minimum=1, known=("a",))) == {"a"}


def test_usage_below_half_lets_a_node_go() -> None:
    below = judge(two_nodes(), [pod_on("a", "p", cpu="3999m")], known=("a",))
    assert unneeded(below) == {"a"}
    assert [name_of(pod) for pod in below["a"].moving] == ["p"]


def pod_asking_for_memory() -> Object:
    pod = pod_on("a", "p", cpu="100m")
    pod["spec"]["containers"][0]["resources"]["requests"]["memory"] = "20Gi"
    return pod


def ending_pod() -> Object:
    pod = pod_on("a", "p")
    pod["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    return pod


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        (pod_on("a", "p", cpu="4"), "its requests are 50% of what it offers"),
        (pod_asking_for_memory(), "its requests are 62% of what it offers"),
        (pod_on("a", "p", owned=False), "pod p has no controller that would make it again"),
        (pod_on("a", "p", safe_to_evict="false"), "pod p is annotated as not safe to evict"),
        (ending_pod(), "pod p is still ending"),
        (pod_on("a", "p", cpu="3", nodeSelector={"disk": "tape"}), "its pods fit nowhere else"),
    ],
)
def test_pod_keeps_its_node(pod: Object, reason: str) -> None:
    verdicts = judge(two_nodes(), [pod], known=("a",))
    assert unneeded(verdicts) == {"b"}
    assert verdicts["a"].reason == reason


def test_pod_without_controller_may_be_marked_movable() -> None:
    annotated = pod_on("a", "p", owned=False, safe_to_evict="true")
    assert unneeded(judge(two_nodes(), [annotated], known=("a",))) == {"a"}


@pytest.mark.parametrize(("text", "stays"), [("true", True), ("false", False)])
def test_removal_can_be_disabled_by_annotation(text: str, stays: bool) -> None:
    nodes = two_nodes()
    nodes[0]["metadata"]["annotations"] = {SCALE_DOWN_DISABLED: text}
    verdicts = judge(nodes, [])
    assert verdicts["a"].reason == ("its removal is disabled by an annotation" if stays else "")
    assert unneeded(verdicts) == ({"b"} if stays else {"a", "b"})


def test_accelerators_count_like_cpu_and_absent_resources_do_not() -> None:
    node = make_node("a")
    node["status"]["allocatable"] = {
        "cpu": "8",
        "memory": "32Gi",
        "nvidia.com/gpu": "4",
        "example.com/none": "0",
        "pods": "2",
    }
    pods = [pod_on("a", f"p{number}", cpu="100m") for number in range(2)]
    pods[0]["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] = "3"
    assert utilization(build_snapshot([node], pods).nodes["a"]) == 0.75
    assert utilization(build_snapshot([node], []).nodes["a"]) == 0
    node_of_nothing = make_node("a")
    node_of_nothing["status"]["allocatable"] = {"pods": "2", "cpu": "0"}
    assert utilization(build_snapshot([node_of_nothing], []).nodes["a"]) == 0
    verdict = judge([node, make_node("b")], pods)["a"]
    assert (verdict.node, verdict.pool, verdict.utilization) == ("a", "default", 0.75)
    assert verdict.reason == "its requests are 75% of what it offers"


def test_emptier_node_goes_first_and_then_by_name() -> None:
    pods = [pod_on("a", "p", cpu="1"), pod_on("b", "q", cpu="500m")]
    assert unneeded(judge(two_nodes(), pods, minimum=1)) == {"b"}
    assert unneeded(judge(two_nodes(), [], minimum=1)) == {"a"}


def test_a_node_that_took_another_ones_pods_says_so() -> None:
    verdicts = judge(two_nodes(), [pod_on("a", "p")], known=("a",))
    assert unneeded(verdicts) == {"a"}
    assert verdicts["b"].reason == "it takes pods of a node that is to be removed"


def test_node_outside_the_snapshot_has_no_verdict() -> None:
    snapshot = build_snapshot([make_node("a")], [])
    removable = [Removable("gone", "default"), Removable("a", "elsewhere")]
    (verdict,) = plan_scale_down(snapshot, removable, spare={"default": 1}, budgets=[], threshold=0.5)
    assert (verdict.node, verdict.reason) == ("a", "its pool is at its minimum"), "of that pool nothing may go"


def test_budget_is_spent_per_node_and_own_pods_only() -> None:
    def budget(namespace: str, allowed: int) -> Object:
        selector = {"matchLabels": {"app": "web"}}
        meta = {"name": "web", "namespace": namespace}
        return {"metadata": meta, "spec": {"selector": selector}, "status": {"disruptionsAllowed": allowed}}

    nodes = [make_node(name) for name in ("a", "b", "c")]
    pods = [pod_on("a", "a1"), pod_on("a", "a2"), pod_on("b", "b1")]
    verdicts = judge(nodes, pods, budgets=[budget("default", 2), budget("other", 0)], known=("a", "b"))
    assert verdicts["a"].unneeded
    assert verdicts["b"].reason == "the disruption budget web allows 0 more"
    assert not judge(nodes, pods[:1], budgets=[budget("default", 0)], known=("a",))["a"].unneeded


def test_node_with_unplaceable_pod_reserves_no_space_elsewhere() -> None:
    """What was tried for the first node must not stand in the way of the second."""
    nodes = [make_node("a"), make_node("b"), make_node("c")]
    pods = [
        pod_on("a", "a1", cpu="2"),
        pod_on("a", "a2", cpu="1500m", nodeSelector={"disk": "tape"}),
        pod_on("b", "b1", cpu="3"),
        pod_on("c", "c1", cpu="5", owned=False),
    ]
    verdicts = judge(nodes, pods, known=("a", "b"))
    assert verdicts["a"].reason == "its pods fit nowhere else"
    assert verdicts["b"].unneeded


def test_moving_pods_are_listed_once_without_staying_ones() -> None:
    daemon = pod_on("a", "daemon")
    daemon["metadata"]["ownerReferences"] = [OWNER | {"kind": "DaemonSet"}]
    moving = pods_to_move([pod_on("a", "p"), daemon, pod_on("a", "q"), pod_on("a", "p")])
    assert [name_of(pod) for pod in moving] == ["p", "q"]


def test_daemon_and_static_pods_go_with_their_node() -> None:
    daemon = pod_on("a", "daemon", owned=False)
    daemon["metadata"]["ownerReferences"] = [OWNER | {"kind": "DaemonSet"}]
    static = pod_on("a", "static", owned=False)
    static["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    verdict = judge(two_nodes(), [daemon, static], known=("a",))["a"]
    assert verdict.unneeded
    assert not verdict.moving


def test_mutually_dependent_nodes_are_not_both_removed() -> None:
    assert len(unneeded(judge(two_nodes(), [pod_on("a", "p"), pod_on("b", "q")]))) == 1


placements = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 8), st.booleans()), min_size=0, max_size=20)


@given(placed=placements, minimum=st.integers(0, 6))
@settings(max_examples=200, deadline=None)
def test_plan_leaves_all_pods_placed_and_pool_minimum(placed: list[tuple[int, int, bool]], minimum: int) -> None:
    nodes = [make_node(f"n{index}") for index in range(6)]
    room = dict.fromkeys(range(6), 8)
    pods = []
    for index, (node, cpu, owned) in enumerate(placed):
        if room[node] >= cpu:
            room[node] -= cpu
            pods.append(pod_on(f"n{node}", f"p{index}", cpu=str(cpu), owned=owned))
    verdicts = judge(nodes, pods, minimum=minimum)
    going = unneeded(verdicts)
    assert len(nodes) - len(going) >= min(minimum, len(nodes))
    moving = [pod for name in going for pod in verdicts[name].moving]
    assert all(pod["metadata"]["ownerReferences"] for pod in moving)
    for name in going:
        on_node = {name_of(pod) for pod in pods if pod["spec"]["nodeName"] == name}
        assert on_node == {name_of(pod) for pod in verdicts[name].moving}
    needed: Amounts = {}
    for pod in pods:
        add(needed, pod_requests(pod))
    assert needed.get("cpu", 0) <= (len(nodes) - len(going)) * 8000
