"""Numbers in sentences hold for all of the nodes that they speak of; and whether a pod may hope for room."""

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
from tests.diagnosis.placement.worlds import surroundings
from tests.diagnosis.situations import event_saying
from tests.support.builders import MOMENT, condition, decode, node, pod

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


def reasons(diagnosis: Diagnosis) -> str:
    return diagnosis.sentence.partition(" for it: ")[2]


def zoned(name: str, zone: str, **more: Any) -> dict[str, Any]:
    return node(name, labels={ZONE: zone}, **more)


NODES = [node("n1"), node("n2"), node("n3")]


@pytest.mark.parametrize(
    ("running", "full", "words"),
    [
        ("n1 n2 n3", "", "each already runs app=db, which this must be apart from."),
        ("n1 n2", "n3", "2 already run app=db, which this must be apart from; the third is full."),
        ("n1", "n2 n3", "1 already runs app=db, which this must be apart from; the other 2 are full."),
        ("n1 n2 n3", "n3", "each already runs app=db, which this must be apart from; 1 is full."),
    ],
)
def test_mixed_conflicts_are_counted_by_kind(running: str, full: str, words: str) -> None:
    pods = [pod(f"db-{name}", node=name, **DB) for name in running.split()]
    pods += [
        pod(f"x-{name}", node=name, phase="Running", requests={"cpu": "3" if name in running else "4"})
        for name in full.split()
    ]
    assert reasons(explain(NODES, pods, rule("podAntiAffinity", term()))) == words


def test_pods_of_a_zone_are_not_said_of_each_node() -> None:
    nodes = [zoned("a1", "a"), zoned("a2", "a")]
    spec = rule("podAntiAffinity", term(ZONE))
    diagnosis = explain(nodes, [pod("db", node="a1", **DB)], spec)
    assert reasons(diagnosis) == "both are in a zone that already runs app=db, which this must be apart from."
    assert diagnosis.table[0].what == "in a zone that runs app=db, which this must be apart from"


def test_company_that_all_terms_must_select_is_named_whole() -> None:
    spec = rule("podAffinity", term(app="cache"), term(app="web"))
    company = [pod(app, node="n1", phase="Running", labels={"app": app}) for app in ("cache", "web")]
    diagnosis = explain(NODES[:2], company, spec)
    assert reasons(diagnosis) == "neither runs app=cache and app=web, which it must be beside."


def test_ports_taken_on_other_nodes_are_all_named() -> None:
    def listening(name: str, port: int, on: str = "") -> dict[str, Any]:
        item = pod(name, node=on, phase="Running") if on else pod(name)
        item["spec"]["containers"][0]["ports"] = [{"containerPort": port, "hostPort": port}]
        return item

    ports = [{"containerPort": 80, "hostPort": 80}, {"containerPort": 443, "hostPort": 443}]
    container = {**pod("w", requests={"cpu": "1"})["spec"]["containers"][0], "ports": ports}
    pods = [listening("a", 80, "n1"), listening("b", 443, "n2")]
    assert reasons(explain(NODES[:2], pods, {"containers": [container]})) == "port 80 or 443 is taken there."
    pods.append(pod("full", node="n3", **FULL))
    assert reasons(explain(NODES, pods, {"containers": [container]})) == (
        "port 80 or 443 is taken on 2; the third is full."
    )


def spread(key: str = ZONE, **more: Any) -> dict[str, Any]:
    constraint = {**term(key), "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **more}
    return {"topologySpreadConstraints": [constraint]}


def test_spread_says_each_zone_and_what_fills_the_emptiest() -> None:
    nodes = [zoned("a1", "a"), zoned("c1", "c")]
    pods = [pod("db", node="a1", **DB), pod("x", node="c1", **FULL)]
    assert reasons(explain(nodes, pods, spread())) == (
        "1 has its share of an even spread; the other is full; zone a has 1, zone c has 0; they may differ by 1; "
        "zone c's only node is full."
    )


def test_cordoned_node_counts_in_spread_unless_taints_are_honored() -> None:
    cordon = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    nodes = [zoned("a1", "a"), zoned("c1", "c", unschedulable=True, taints=cordon)]
    pods = [pod("db", node="a1", **DB)]
    diagnosis = explain(nodes, pods, spread())
    assert reasons(diagnosis) == (
        "it must be spread evenly; zone a has 1, zone c has 0; they may differ by 1; "
        "zone c's only node is cordoned, but counted."
    )
    assert diagnosis.next_step == (
        "Ask an operator when node c1 takes work again, or about the topology spread constraint."
    )
    assert "has room" in explain(nodes, pods, spread(nodeTaintsPolicy="Honor")).sentence


def test_spread_over_more_zones_than_there_are_says_so() -> None:
    nodes = [zoned("a1", "a"), zoned("b1", "b")]
    pods = [pod("db-a", node="a1", **DB), pod("db-b", node="b1", **DB)]
    assert reasons(explain(nodes, pods, spread(minDomains=3))) == (
        "it must be spread evenly; zones a and b have 1 each; none may have more than 1 until there are 3 zones (now 2)."
    )


def test_nodes_of_one_number_are_one_row_of_a_spread() -> None:
    nodes = [*NODES, node("n4", unschedulable=True)]
    pods = [pod(f"db-{name}", node=name, **DB) for name in ("n1", "n2", "n3")]
    diagnosis = explain(nodes, pods, spread(HOST))
    assert reasons(diagnosis) == (
        "it must be spread evenly; nodes n1, n2 and 1 more have 1 each, node n4 has 0; they may differ by 1; "
        "node n4 is cordoned, but counted."
    )
    assert [(row.nodes, row.what) for row in diagnosis.table] == [
        (3, "has its share already of an even spread (it has 1, node n4 has 0; they may differ by 1)"),
        (1, "cordoned"),
    ]


def test_nodes_of_the_emptiest_zone_are_counted_by_state() -> None:
    nodes = [zoned("a1", "a"), zoned("c1", "c", unschedulable=True), zoned("c2", "c"), zoned("c3", "c")]
    pods = [pod("db", node="a1", **DB), *(pod(f"x{name}", node=name, **FULL) for name in ("c2", "c3"))]
    assert explain(nodes, pods, spread()).sentence.endswith(
        "of the 3 nodes in zone c, 2 are full and 1 is cordoned, but counted."
    )


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
