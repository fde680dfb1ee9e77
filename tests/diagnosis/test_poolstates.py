"""Pools as a launch sees them, from nodes and pods as the cluster has them."""

from collections.abc import Mapping, Sequence

from grid.diagnosis.launchfit import LaunchFacts, LaunchPool, PodPlan, fit
from grid.diagnosis.launchplaces import RoomTally
from grid.diagnosis.nodeshapes import TemplateTally
from grid.kube.objects import Node, Pod
from grid.kube.pools import NodeGroup
from tests.support import builders
from tests.support.builders import decode, room_of

DAEMON = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent", "uid": "d"}}
CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
JOB = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "job", "uid": "j"}}


def node(name: str, **more: object) -> Node:
    return decode(builders.node(name, cpu="8", memory="32Gi", **more), Node)  # type: ignore[arg-type]


def pod(name: str, cpu: str, owner: Mapping[str, object], node: str = "a") -> Pod:
    return decode(builders.pod(name, node=node, requests={"cpu": cpu, "memory": "1Gi"}, owner=dict(owner)), Pod)


def state_of(nodes: Sequence[Node], held: Mapping[str, Sequence[Pod]], group: NodeGroup | None = None) -> LaunchPool:
    tally = RoomTally(room_of(each_pod for pods in held.values() for each_pod in pods))
    for each_node in nodes:
        tally.count(each_node)
    return tally.state("default", group)


def answer(nodes: Sequence[Node], held: Mapping[str, Sequence[Pod]], cores: float, maximum: int = 0) -> str:
    state = state_of(nodes, held, NodeGroup("default", 0, maximum, 0) if maximum else None)
    verdict = fit([PodPlan("T", "default", {"cpu": round(cores * 1000), "pods": 1})], LaunchFacts({"default": state}))
    return verdict.code if not verdict.free_places else f"{verdict.free_places} free"


def test_failed_delivery_of_the_cloud_is_told() -> None:
    for is_backed_off in (True, False, None):
        group = NodeGroup("default", 0, 3, 1, is_backed_off)
        assert state_of([node("a")], {}, group).is_backed_off is bool(is_backed_off)


def test_free_is_what_no_pod_has_requested() -> None:
    held = {"a": [pod("p", "3", JOB)]}
    assert answer([node("a"), node("b")], held, 4) == "3 free"
    assert answer([node("a")], held, 5.5) == "waits_for_room"
    assert answer([node("a")], held, 5.5, maximum=2) == "needs_nodes"


def test_empty_node_offers_all_but_the_daemons() -> None:
    held = {"a": [pod("p", "500m", DAEMON)], "b": [pod("p", "500m", DAEMON, "b"), pod("q", "7", JOB, "b")]}
    assert answer([node("a"), node("b")], held, 7.5) == "1 free"
    assert answer([node("a"), node("b")], held, 7.6) == "never_fits"
    assert answer([node("b")], held, 7.5) == "waits_for_room"


def test_daemon_on_some_nodes_only_makes_nothing_too_large() -> None:
    held = {"a": [pod("p", "500m", DAEMON)], "b": [pod("q", "1", JOB, "b")]}
    assert answer([node("a"), node("b")], held, 7.8) == "waits_for_room"


def test_cordoned_unready_and_tainted_nodes_have_no_free_place() -> None:
    cordoned = node("a", unschedulable=True, taints=[CORDON])
    assert answer([cordoned, node("b", ready=False)], {}, 1) == "waits_for_room"
    taint = {"key": "team", "value": "x", "effect": "NoSchedule"}
    assert answer([node("a", taints=[taint])], {}, 1) == "no_nodes"
    assert answer([node("a", taints=[taint]), node("b")], {}, 8) == "1 free"


def test_gpus_are_counted_by_the_name_on_the_node() -> None:
    holder = decode(builders.pod("p", node="a", requests={"nvidia.com/gpu": "1"}), Pod)
    facts = LaunchFacts({"gpu": state_of([node("a", extended={"nvidia.com/gpu": "2"})], {"a": [holder]})})
    assert fit([PodPlan("T", "gpu", {"nvidia.com/gpu": 1})], facts).free_places == 1
    assert fit([PodPlan("T", "gpu", {"nvidia.com/gpu": 2})], facts).code == "waits_for_room"
    assert fit([PodPlan("T", "gpu", {"amd.com/gpu": 1})], facts).code == "never_fits"


def test_empty_pool_offers_its_template_beside_its_own_pods() -> None:
    tally = TemplateTally()
    taint = {"key": "team", "value": "x", "effect": "NoSchedule"}
    tally.count(node("gone", taints=[taint]), {"cpu": 500, "pods": 3})
    template = tally.template(builders.MOMENT)
    state = RoomTally(room_of(())).state("default", NodeGroup("default", 0, 2, 0), template)
    assert (state.nodes, state.maximum, state.seen) == ((), 2, template.seen if template else "")
    assert state.remembered is not None
    assert (state.remembered.empty["cpu"], state.remembered.empty["pods"]) == (7500, 107)
    assert (state.remembered.free, [taint.key for taint in state.remembered.taints]) == (
        state.remembered.empty,
        ["team"],
    )
    tally_of_now = RoomTally(room_of(()))
    tally_of_now.count(node("a"))
    assert tally_of_now.state("default", None, template).remembered is None, "the nodes of now decide"
