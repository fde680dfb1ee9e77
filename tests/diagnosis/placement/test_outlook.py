"""Whether a pod without a node may hope for room on nodes that are there, for a node that is started, or for neither."""

from datetime import timedelta
from typing import Any

import pytest

from grid.core.labels import NODE_POOL
from grid.diagnosis.placement import Outlook, outlook_of
from grid.kube.objects import Event, Pod
from grid.kube.pools import NodeGroup
from tests.diagnosis.placement.worlds import surroundings
from tests.diagnosis.situations import event_saying
from tests.support.builders import MOMENT, condition, decode, node, pod

FULL = [node("n1", pool="p"), node("n2", pool="p"), node("other", pool="q")]
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
    assert outlook(FULL, group=group, events=events) == expected


def test_closed_small_and_foreign_nodes_give_no_room() -> None:
    nodes = [node("n1", pool="p", unschedulable=True), node("n2", pool="p", cpu="2"), node("other", pool="q", cpu="9")]
    assert outlook(nodes) == NOTHING
    assert outlook([*nodes, node("n4", pool="p")]) == Outlook(nodes=frozenset({"n4"}))


def test_gated_pod_waits_for_no_room() -> None:
    assert outlook(FULL, spec={"schedulingGates": [{"name": "team/approval"}]}) == NOTHING


def test_node_that_karpenter_starts_is_hoped_for() -> None:
    nominated = {
        **event_saying("Nominated", "Pod should schedule on: nodeclaim/p-x7k2p"),
        "reportingComponent": "karpenter",
    }
    assert outlook(FULL, events=[nominated]) == STARTS
    assert outlook(FULL, events=[{**nominated, "reportingComponent": "other", "source": {}}]) != STARTS
