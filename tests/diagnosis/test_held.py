"""What a person is told about a pod without a node for which its scheduler's own words matter more than what is written on it."""

from typing import Any

import pytest

from tests.diagnosis.situations import Case, ago, assert_explained
from tests.support.builders import condition, pod

TRIED = "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod."
HELPLESS = "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
CLEARING = "0/3 nodes are available: 3 Insufficient cpu. preemption: not eligible due to a terminating pod on the nominated node."


def waiting(said: str, *, seconds: float = 90, nominated: str = "", scheduler: str = "") -> dict[str, Any]:
    scheduled = condition("PodScheduled", "False", "Unschedulable", said)
    return pod(
        "p", conditions=[scheduled], creationTimestamp=ago(seconds), status={"nominatedNodeName": nominated},
        spec={"schedulerName": scheduler} if scheduler else None,
    )  # fmt: skip


CASES = [
    Case("nominated", waiting(CLEARING, nominated="n1"), "about_to_start", "node n1 is being cleared for it"),
    Case("nominated before", waiting(TRIED, nominated="n1"), "busy", "too little left: CPU on 3 nodes"),
    Case("nominated in vain", waiting(HELPLESS, nominated="n1"), "too_large", "CPU on 3 nodes"),
    Case("another scheduler", waiting("", scheduler="mine"), "other_scheduler", "Waits for the scheduler mine to choose a node."),
    Case("another scheduler found no room", waiting(TRIED, scheduler="mine"), "busy", "too little left: CPU on 3 nodes"),
    Case(
        "another scheduler speaks of something else",
        waiting("pod group is not ready,\n 1 Pending.", scheduler="mine"),
        "other_scheduler",
        "The scheduler mine has not chosen a node: pod group is not ready, 1 Pending.",
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_schedulers_own_words_win(case: Case) -> None:
    assert_explained(case)


@pytest.mark.parametrize(
    ("said", "seconds", "severity", "step"),
    [
        ("", 59, "wait", ""),
        ("", 60, "problem", "Ask an operator whether the scheduler mine runs."),
        ("not ready", 59, "wait", ""),
        ("not ready", 60, "problem", "Ask an operator what the scheduler mine waits for."),
    ],
)
def test_another_scheduler_is_given_a_minute(said: str, seconds: float, severity: str, step: str) -> None:
    found = Case("", waiting(said, seconds=seconds, scheduler="mine"), "", "").explain()
    assert (found.severity, found.next_step) == (severity, step)
