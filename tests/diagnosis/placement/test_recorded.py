"""Every situation recorded from a real scheduler, explained from its objects: read `tests/golden/words-of-placements.txt`."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from grid.diagnosis.pods import explain_pod
from grid.kube.objects import Event, Pod
from tests.diagnosis.placement.worlds import as_read, surroundings
from tests.support.builders import decode, stamp
from tests.support.golden import assert_golden

CASES = [json.loads(line) for line in Path("tests/recordings/scheduling/cases.jsonl").read_text().splitlines()]
WAITING = [case for case in CASES if not case["nodeName"]]


def explained(case: dict[str, Any], *, minutes: float = 5) -> str:
    pod = decode(case["pod"], Pod)
    assert pod.metadata.creation_timestamp is not None
    now = pod.metadata.creation_timestamp + timedelta(minutes=minutes)
    events = [decode({"metadata": {"name": "e", "creationTimestamp": stamp(now)}, **event}, Event) for event in case["events"]]  # fmt: skip
    scheduling = surroundings(
        case["nodes"], case["other_pods"], case["other_objects"],
        namespace=pod.metadata.namespace, holder=lambda other: f"pod {other.metadata.name}",
    )  # fmt: skip
    return as_read(explain_pod(pod, events, now=now, scheduling=scheduling))


def test_the_words_of_all_recorded_situations_are_as_stored() -> None:
    each = (f"# {case['case']}\n> {case['message'] or '(nothing said)'}\n{explained(case)}\n" for case in WAITING)
    assert_golden("words-of-placements", "\n".join(each), ending="txt")


def test_no_recorded_situation_is_left_out() -> None:
    assert len(CASES) == 66
    assert {case["case"] for case in CASES if case not in WAITING} == {"fits", "prefer-no-schedule-is-no-obstacle"}


@pytest.mark.parametrize("case", [case for case in WAITING if case["message"]], ids=lambda case: case["case"])
def test_no_node_that_the_scheduler_refused_is_called_free(case: dict[str, Any]) -> None:
    assert "has room for this" not in explained(case)
