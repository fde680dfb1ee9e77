"""What the scheduler knows and the objects do not say is never overruled by a sum of CPU and memory."""

from datetime import timedelta
from typing import Any

import pytest

from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.pods import explain_pod
from grid.kube.objects import Pod
from tests.diagnosis.placement.worlds import surroundings
from tests.support.builders import MOMENT, condition, decode, node, pod

ONE_POD = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
EMPTY = [node("n1"), node("n2")]


def explain(message: str, *, knows_nodes: bool, minutes: float = 5, **status: Any) -> Diagnosis:
    """Of a pod for which two empty nodes have room."""
    conditions = [condition("PodScheduled", "False", "Unschedulable", message)] if message else []
    waiting = pod("w", requests={"cpu": "1"}, conditions=conditions, status={"phase": "Pending", **status})
    scheduling = surroundings(EMPTY, ()) if knows_nodes else None
    return explain_pod(decode(waiting, Pod), [], now=MOMENT + timedelta(minutes=minutes), scheduling=scheduling)


@pytest.mark.parametrize("knows_nodes", [True, False])
@pytest.mark.parametrize(
    ("complaint", "code", "severity", "words"),
    [
        (
            "node(s) exceed max volume count",
            "volume_limit",
            "wait",
            "2 nodes have as many volumes attached as they may",
        ),
        (ONE_POD, "one_pod", "wait", "another pod uses its volume, which one pod may use at a time (ReadWriteOncePod)"),
        (
            "cannot allocate all claims",
            "device_claim",
            "problem",
            "2 nodes cannot give it the devices that its claim asks for",
        ),
        (
            "node(s) did not pass Lab's own plugin",
            "unschedulable",
            "problem",
            "2 nodes: node(s) did not pass Lab's own plugin",
        ),
    ],
)
def test_complaint_that_is_not_computed_stands_in_the_sentence(
    complaint: str, code: str, severity: str, words: str, *, knows_nodes: bool
) -> None:
    message = (
        f"0/2 nodes are available: 2 {complaint}. preemption: 0/2 nodes are available: 2 No preemption victims found."
    )
    diagnosis = explain(message, knows_nodes=knows_nodes)
    assert (diagnosis.code, diagnosis.severity) == (code, severity)
    assert diagnosis.sentence == f"The scheduler finds no place for it: {words}."
    assert diagnosis.who
    assert diagnosis.next_step
    assert diagnosis.is_normal is None
    assert all("has room" not in row.what for row in diagnosis.table)


def test_computed_complaint_of_before_does_not_hide_the_other() -> None:
    message = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) exceed max volume count."
    assert explain(message, knows_nodes=True).code == "volume_limit"
    assert explain("0/2 nodes are available: 2 Insufficient cpu.", knows_nodes=True, minutes=0.2).code == "scheduling"


@pytest.mark.parametrize("knows_nodes", [True, False])
def test_nomination_is_a_preemption_only_after_a_refusal(*, knows_nodes: bool) -> None:
    chosen = explain("", knows_nodes=knows_nodes, minutes=0.2, nominatedNodeName="n1")
    assert chosen.sentence == "About to start: node n1 is chosen, and what this needs there is being prepared."
    assert (chosen.severity, chosen.who) == ("wait", "")
    assert explain("", knows_nodes=knows_nodes, nominatedNodeName="n1").who == "operator"
    refused = explain("0/2 nodes are available: 2 Insufficient cpu.", knows_nodes=knows_nodes, nominatedNodeName="n1")
    assert "pods of lower priority end there" in refused.sentence
