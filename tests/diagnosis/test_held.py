"""What a person is told about a pod without a node for which its scheduler's own words matter more than what is written on it."""

from typing import Any

import pytest

from tests.diagnosis.situations import Case, ago
from tests.support.builders import condition, pod

TRIED = "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod."
HELPLESS = "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
CLEARING = "0/3 nodes are available: 3 Insufficient cpu. preemption: not eligible due to a terminating pod on the nominated node."


def waiting(message: str, *, seconds: float = 90, nominated: str = "", scheduler: str = "") -> dict[str, Any]:
    scheduled = condition("PodScheduled", "False", "Unschedulable", message)
    return pod(
        "p", conditions=[scheduled], creationTimestamp=ago(seconds), status={"nominatedNodeName": nominated},
        spec={"schedulerName": scheduler} if scheduler else None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("waiting", "code", "words"),
    [
        (waiting(CLEARING, nominated="n1"), "about_to_start", "node n1 is being cleared for it"),
        (waiting(TRIED, nominated="n1"), "busy", "too little left: CPU on 3 nodes"),
        (waiting(HELPLESS, nominated="n1"), "too_large", "CPU on 3 nodes"),
        (waiting("", scheduler="mine"), "other_scheduler", "Waits for the scheduler mine to choose a node."),
        (waiting(TRIED, scheduler="mine"), "busy", "too little left: CPU on 3 nodes"),
        (
            waiting("pod group is not ready,\n 1 Pending.", scheduler="mine"),
            "other_scheduler",
            "The scheduler mine has not chosen a node: pod group is not ready, 1 Pending.",
        ),
    ],
)
def test_the_schedulers_own_words_win(waiting: dict[str, Any], code: str, words: str) -> None:
    diagnosis = Case("", waiting).explain()
    assert diagnosis.code == code
    assert words in diagnosis.sentence


@pytest.mark.parametrize(
    ("message", "seconds", "severity", "step"),
    [
        ("", 59, "wait", ""),
        ("", 60, "problem", "Ask an operator whether the scheduler mine runs."),
        ("not ready", 59, "wait", ""),
        ("not ready", 60, "problem", "Ask an operator what the scheduler mine waits for."),
    ],
)
def test_another_scheduler_is_given_a_minute(message: str, seconds: float, severity: str, step: str) -> None:
    diagnosis = Case("", waiting(message, seconds=seconds, scheduler="mine")).explain()
    assert (diagnosis.severity, diagnosis.next_step) == (severity, step)
