"""Numbers in sentences hold for all of the nodes that they speak of; and whether a pod may hope for room.

Read `tests/golden/words-of-counts.txt`.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from grid.core.labels import NODE_POOL
from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.placement import Outlook, outlook_of
from grid.diagnosis.pods import explain_pod
from grid.kube.objects import Event, Pod
from grid.kube.pools import NodeGroup
from tests.diagnosis.placement.worlds import as_read, surroundings
from tests.diagnosis.situations import event_saying
from tests.support.builders import MOMENT, condition, decode, node, pod
from tests.support.golden import assert_golden

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REFUSED = condition("PodScheduled", "False", "Unschedulable", "0/3 nodes are available: 3 Insufficient cpu.")
DB: dict[str, Any] = {"labels": {"app": "db"}, "phase": "Running", "requests": {"cpu": "1"}}
FULL: dict[str, Any] = {"phase": "Running", "requests": {"cpu": "4"}}


def explain(
    nodes: Sequence[dict[str, Any]], pods: Sequence[dict[str, Any]], spec: dict[str, Any], cpu: str = "1"
) -> Diagnosis:
    waiting = pod("w", requests={"cpu": cpu}, labels={"app": "db"}, conditions=[REFUSED])
    waiting["spec"].update(spec)
    now = MOMENT + timedelta(minutes=5)
    return explain_pod(decode(waiting, Pod), [], now=now, scheduling=surroundings(nodes, pods))


def term(key: str = HOST, app: str = "db") -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}


def rule(kind: str, *terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}}


def zoned(name: str, zone: str, **more: Any) -> dict[str, Any]:
    return node(name, labels={ZONE: zone}, **more)


def spread(key: str = ZONE, **more: Any) -> dict[str, Any]:
    constraint = {**term(key), "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **more}
    return {"topologySpreadConstraints": [constraint]}


def listening(name: str, port: int, on: str) -> dict[str, Any]:
    item = pod(name, node=on, phase="Running")
    item["spec"]["containers"][0]["ports"] = [{"containerPort": port, "hostPort": port}]
    return item


def apart(running: str, full: str = "") -> Diagnosis:
    """Pods of db run on some nodes, and some nodes are full; this must be apart from db."""
    pods = [pod(f"db-{name}", node=name, **DB) for name in running.split()]
    pods += [
        pod(f"x-{name}", node=name, phase="Running", requests={"cpu": "3" if name in running else "4"})
        for name in full.split()
    ]
    return explain(NODES, pods, rule("podAntiAffinity", term()))


NODES = [node("n1"), node("n2"), node("n3")]


def of_conflicts() -> dict[str, Diagnosis]:
    company = [pod(app, node="n1", phase="Running", labels={"app": app}) for app in ("cache", "web")]
    ports = [{"containerPort": 80, "hostPort": 80}, {"containerPort": 443, "hostPort": 443}]
    asks = {"containers": [{**pod("w", requests={"cpu": "1"})["spec"]["containers"][0], "ports": ports}]}
    taken = [listening("a", 80, "n1"), listening("b", 443, "n2")]
    zone = [zoned("a1", "a"), zoned("a2", "a")]
    return {
        "each runs it": apart("n1 n2 n3"),
        "two run it, one is full": apart("n1 n2", "n3"),
        "one runs it, two are full": apart("n1", "n2 n3"),
        "each runs it, one is full": apart("n1 n2 n3", "n3"),
        "both are in a zone that runs it": explain(
            zone, [pod("db", node="a1", **DB)], rule("podAntiAffinity", term(ZONE))
        ),
        "company of two terms": explain(NODES[:2], company, rule("podAffinity", term(app="cache"), term(app="web"))),
        "ports taken on other nodes": explain(NODES[:2], taken, asks),
        "ports taken on two nodes, the third is full": explain(NODES, [*taken, pod("full", node="n3", **FULL)], asks),
    }


def of_spreads() -> dict[str, Diagnosis]:
    cordon = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    running = [pod("db", node="a1", **DB)]
    cordoned = [zoned("a1", "a"), zoned("c1", "c", unschedulable=True, taints=cordon)]
    each_zone = [pod("db-a", node="a1", **DB), pod("db-b", node="b1", **DB)]
    each_node = [pod(f"db-{name}", node=name, **DB) for name in ("n1", "n2", "n3")]
    emptiest = [zoned("a1", "a"), zoned("c1", "c", unschedulable=True), zoned("c2", "c"), zoned("c3", "c")]
    fillers = [pod(f"x{name}", node=name, **FULL) for name in ("c1", "c2", "c3")]
    return {
        "the emptiest zone is full": explain([zoned("a1", "a"), zoned("c1", "c")], [*running, fillers[0]], spread()),
        "the emptiest zone is cordoned": explain(cordoned, running, spread()),
        "the emptiest zone is cordoned, and taints are honored": explain(
            cordoned, running, spread(nodeTaintsPolicy="Honor")
        ),
        "more zones than there are": explain([zoned("a1", "a"), zoned("b1", "b")], each_zone, spread(minDomains=3)),
        "nodes of equal numbers": explain([*NODES, node("n4", unschedulable=True)], each_node, spread(HOST)),
        "nodes of the emptiest zone in several states": explain(emptiest, [*running, *fillers[1:]], spread()),
    }


def test_numbers_of_nodes_are_told_as_stored() -> None:
    situations = of_conflicts() | of_spreads()
    blocks = [f"# {name}\n{as_read(why)}" for name, why in situations.items()]
    assert_golden("words-of-counts", "\n".join(blocks), ending="txt")


FULL_POOL = [node("n1", pool="p"), node("n2", pool="p"), node("other", pool="q")]
TAKERS = [pod(f"on-{name}", node=name, phase="Running", requests={"cpu": "2"}) for name in ("n1", "n2")]
STARTS = Outlook(needs_node=True)
NOTHING = Outlook()


def outlook(
    nodes: list[Any],
    *,
    group: tuple[int, int] | None = None,
    events: list[Any] | None = None,
    cpu: str = "3",
    spec: dict[str, Any] | None = None,
) -> Outlook:
    """`group` is the target and the maximum of the pool's node group."""
    refused = condition("PodScheduled", "False", "Unschedulable", "0/3 nodes are available: 3 of some reason.")
    waiting = pod("w", requests={"cpu": cpu}, conditions=[refused], spec={"nodeSelector": {NODE_POOL: "p"}, **(spec or {})})  # fmt: skip
    groups = {"p": NodeGroup("p", 0, group[1], group[0])} if group else None
    decoded = [decode(event, Event) for event in events or ()]
    scheduling = surroundings(nodes, TAKERS, groups=groups)
    return outlook_of(decode(waiting, Pod), decoded, scheduling, now=MOMENT + timedelta(minutes=5))


@pytest.mark.parametrize(
    ("group", "events", "expected"),
    [
        (None, [], Outlook(nodes=frozenset({"n1", "n2"}))),
        ((2, 2), [], Outlook(nodes=frozenset({"n1", "n2"}))),
        ((2, 5), [], STARTS),
        ((3, 5), [], STARTS),
        (None, [event_saying("TriggeredScaleUp", "pod triggered scale-up: [{p 2->3 (max: 5)}]")], STARTS),
        (
            (2, 5),
            [event_saying("NotTriggerScaleUp", "pod didn't trigger scale-up: 1 in backoff after failed scale-up")],
            Outlook(nodes=frozenset({"n1", "n2"})),
        ),
    ],
)
def test_pod_waits_for_room_only_without_a_starting_node(
    group: tuple[int, int] | None, events: list[Any], expected: Outlook
) -> None:
    assert outlook(FULL_POOL, group=group, events=events) == expected


def test_closed_small_and_foreign_nodes_give_no_room() -> None:
    nodes = [node("n1", pool="p", unschedulable=True), node("n2", pool="p", cpu="2"), node("other", pool="q", cpu="9")]
    assert outlook(nodes) == NOTHING
    assert outlook([*nodes, node("n4", pool="p")]) == Outlook(nodes=frozenset({"n4"}))


def test_gated_pod_waits_for_no_room() -> None:
    assert outlook(FULL_POOL, spec={"schedulingGates": [{"name": "team/approval"}]}) == NOTHING


def test_node_that_karpenter_starts_is_hoped_for() -> None:
    nominated = {
        **event_saying("Nominated", "Pod should schedule on: nodeclaim/p-x7k2p"),
        "reportingComponent": "karpenter",
    }
    assert outlook(FULL_POOL, events=[nominated]) == STARTS
    assert outlook(FULL_POOL, events=[{**nominated, "reportingComponent": "other", "source": {}}]) != STARTS
