"""What Karpenter's events say of a pod that has no node."""

from datetime import timedelta
from typing import Any

import pytest

from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.held import scheduler_message
from grid.diagnosis.pods import explain_pod
from grid.kube.objects import Event, Pod
from tests.diagnosis.placement.worlds import surroundings
from tests.diagnosis.situations import event_saying
from tests.support.builders import MOMENT, condition, decode, node, pod

NO_ROOM = "0/1 nodes are available: 1 Insufficient cpu."
LIMITS = 'all available instance types exceed limits for nodepool "graviton"'
TAINTED = 'incompatible with nodepool "ci", daemonset overhead={"cpu":"1"}, did not tolerate workload=ci:NoSchedule'
LARGE = (
    'incompatible with nodepool "default", daemonset overhead={"cpu":"150m","pods":"4"}, no instance type satisfied resources '
    '{"cpu":"100","pods":"5"} and requirements kubernetes.io/arch In [amd64] (no instance type has enough resources)'
)


def of_karpenter(reason: str, message: str, *, reporter: str = "karpenter") -> Event:
    return decode(
        {**event_saying(reason, message), "reportingComponent": reporter, "source": {"component": reporter}}, Event
    )


def explain(*events: Event, knows_nodes: bool = True, minutes: float = 5, message: str = NO_ROOM) -> Diagnosis:
    conditions: list[Any] = [condition("PodScheduled", "False", "Unschedulable", message)] if message else []
    waits = decode(pod("w", requests={"cpu": "8"}, conditions=conditions), Pod)
    scheduling = surroundings([node("n1")]) if knows_nodes else None
    return explain_pod(waits, list(events), now=MOMENT + timedelta(minutes=minutes), scheduling=scheduling)


@pytest.mark.parametrize("knows_nodes", [True, False])
@pytest.mark.parametrize("reporter", ["karpenter", "eks-auto-mode/compute"])
def test_node_that_karpenter_starts_is_named(reporter: str, knows_nodes: bool) -> None:
    event = of_karpenter("Nominated", "Pod should schedule on: nodeclaim/default-x7k2p", reporter=reporter)
    waits = explain(event, knows_nodes=knows_nodes)
    assert (waits.code, waits.severity, waits.is_normal) == ("scale_up", "wait", True)
    assert waits.sentence.startswith("Karpenter is starting a node for this (the NodeClaim default-x7k2p)")
    late = explain(event, knows_nodes=knows_nodes, minutes=16)
    assert (late.code, late.severity, late.who) == ("scale_up_slow", "problem", "operator")
    assert "the NodeClaim default-x7k2p for this 16 minutes ago" in late.sentence


def test_nomination_by_anybody_else_is_none_of_karpenter() -> None:
    event = of_karpenter("Nominated", "Pod should schedule on: nodeclaim/x", reporter="other")
    assert explain(event) == explain()


@pytest.mark.parametrize("knows_nodes", [True, False])
@pytest.mark.parametrize(
    ("message", "words"),
    [
        (LIMITS, "NodePool graviton: a new node would exceed its limits."),
        ("all available instance types exceed limits for nodepool (NodePool=a)", "NodePool a: a new node would exceed its limits."),
        (LARGE, "NodePool default: none of its instance types fits what this asks for."),
        (
            f"{TAINTED}; {LIMITS}",
            "NodePool ci: its nodes have a taint that keeps this off; NodePool graviton: a new node would exceed its limits.",
        ),
        ("no nodepools found", "no nodepools found."),
    ],
)  # fmt: skip
def test_refusal_of_karpenter_names_each_nodepool(message: str, words: str, knows_nodes: bool) -> None:
    refused = explain(of_karpenter("FailedScheduling", f"Failed to schedule pod, {message}"), knows_nodes=knows_nodes)
    assert refused.sentence == f"{explain(knows_nodes=knows_nodes).sentence} Karpenter starts no node for this: {words}"
    assert refused.evidence[-1].endswith(message)


def test_schedulers_words_are_not_taken_from_karpenter() -> None:
    waits = decode(pod("w"), Pod)
    ours = of_karpenter("FailedScheduling", NO_ROOM, reporter="default-scheduler")
    theirs = of_karpenter("FailedScheduling", f"Failed to schedule pod, {LIMITS}")
    assert scheduler_message(waits, [ours, theirs]) == NO_ROOM
    assert scheduler_message(waits, [theirs]) == ""


def test_newest_word_of_karpenter_counts() -> None:
    chosen = of_karpenter("Nominated", "Pod should schedule on: nodeclaim/a, node/b")
    refused = of_karpenter("FailedScheduling", f"Failed to schedule pod, {LIMITS}")
    assert "graviton" in explain(chosen, refused).sentence
    assert explain(refused, chosen).sentence == "Karpenter has chosen the NodeClaim a for this."
