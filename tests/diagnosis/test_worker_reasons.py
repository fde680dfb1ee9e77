"""Which workers of a cluster are told together, and what a cluster's diagnosis keeps of that of its pods."""

from dataclasses import replace

import pytest

from grid.diagnosis.clusters import Member, explain_cluster
from grid.diagnosis.diagnosis import Diagnosis, EvidenceRow, Severity
from tests.clusters.clustering import head_pod, waiting_worker
from tests.diagnosis.snapshots import NOW, member, snapshot

ROW = EvidenceRow(2, ("n1", "n2"), "full", "for_now")
WHY = Diagnosis("busy", "Busy.", "wait", "you", "Wait.", ("said",), (ROW,), "executions", True)


def waiting(name: str, sentence: str, severity: Severity = "wait") -> Member:
    return replace(member(waiting_worker("c", name)), diagnosis=replace(WHY, sentence=sentence, severity=severity))


def sentences(*workers: Member) -> list[str]:
    return [diagnosis.sentence for diagnosis in explain_cluster(snapshot(workers), now=NOW)]


def test_waiting_worker_is_told_with_its_table_and_link() -> None:
    diagnoses = explain_cluster(snapshot([waiting("a", "Busy.")]), now=NOW)
    assert diagnoses == (replace(WHY, code="workers_pending", sentence="1 worker: Busy."),)


def test_waiting_head_is_told_with_its_table_and_link() -> None:
    head = replace(member(head_pod("c", node="", phase="Pending", ready=False)), diagnosis=WHY)
    diagnoses = explain_cluster(snapshot([], head=head), now=NOW)
    assert diagnoses == (replace(WHY, code="head_down", sentence="The head is not up: Busy."),)


def test_workers_are_grouped_by_reason_with_most_first() -> None:
    pools = [waiting("a", "Pool x is full."), waiting("b", "Pool y is full."), waiting("d", "Pool y is full.")]
    assert sentences(*pools) == ["2 workers: Pool y is full.", "1 worker: Pool x is full."]


@pytest.mark.parametrize(
    ("first", "second", "sentence"),
    [
        ("Busy for 5 minutes.", "Busy for 1 minute.", "Busy for 5 minutes."),
        ("It ends (2 restarts): 1.", "It ends (1 restart): 1.", "It ends: 1."),
        ("Grows (from 1 to 2 of at most 5).", "Grows (from 1 to 3 of at most 5).", "Grows."),
        ("Grows (from 1 to 2 of at most 5).", "Grows (from 1 to 2 of at most 5).", "Grows (from 1 to 2 of at most 5)."),
    ],
)
def test_how_long_and_how_often_make_no_other_reason(first: str, second: str, sentence: str) -> None:
    assert sentences(waiting("a", first), waiting("b", second)) == [f"2 workers: {sentence}"]


def test_a_workers_own_name_makes_no_other_reason() -> None:
    own = [waiting(name, f"No claim cluster-c-worker-6468bd54f7-{name}-tmp.") for name in "ab"]
    assert sentences(*own) == ["2 workers: No claim cluster-c-worker-6468bd54f7-a-tmp."]


def test_the_rarest_of_many_reasons_are_counted() -> None:
    six = [waiting(str(number), f"Reason {number}.") for number in range(6)]
    assert len(sentences(*six)) == 6
    more = [*six, waiting("twice", "Reason 5."), waiting("last", "Reason 6.", "problem")]
    diagnoses = explain_cluster(snapshot(more), now=NOW)
    assert [diagnosis.sentence for diagnosis in diagnoses] == [
        "2 other workers: 2 other reasons, each on its pod's page.",
        "2 workers: Reason 5.",
        *(f"1 worker: Reason {number}." for number in range(4)),
    ]
    assert (diagnoses[0].code, diagnoses[0].severity, diagnoses[0].who) == ("workers_pending", "problem", "you")
