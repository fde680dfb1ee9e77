"""Descriptions are kubectl's own to the letter: each recorded one is made again from what kubectl had been answered."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from grid.core.quantity import parse_quantity
from grid.diagnosis.describe import describe_node, describe_pod
from grid.diagnosis.describe.writing import Amount, human_duration

RECORDINGS = Path(__file__).parents[1] / "recordings" / "describe"


def names(kind: str) -> list[str]:
    return sorted(path.stem for path in RECORDINGS.glob(f"{kind}-*.txt"))


def load(name: str) -> tuple[dict[str, Any], list[datetime], str]:
    recording = json.loads((RECORDINGS / f"{name}.json").read_text())
    before, after = (datetime.fromisoformat(recording[key]) for key in ("now_before", "now_after"))
    # Ages are relative to an unknown moment between the two, so every hundredth of a second may be the right one.
    moments = [
        before + timedelta(milliseconds=10 * step) for step in range((after - before) // timedelta(milliseconds=10))
    ]
    return recording, [*moments, after], (RECORDINGS / f"{name}.txt").read_text()


def answers(recording: dict[str, Any], part: str) -> list[dict[str, Any]]:
    return [request for request in recording["requests"] if part in request["path"]]


def items(recording: dict[str, Any], part: str) -> list[dict[str, Any]]:
    return [item for request in answers(recording, part) for item in request["body"].get("items") or ()]


def test_there_are_recordings_to_compare_with() -> None:
    assert len(names("pod")) > 25
    assert len(names("node")) > 5


@pytest.mark.parametrize("name", [name for name in names("pod") if name != "pod-not-found"])
def test_a_pod_is_described_as_kubectl_does(name: str) -> None:
    recording, moments, expected = load(name)
    events = items(recording, "/events")
    made = [describe_pod(recording["object"], events=events, now=now) for now in moments]
    assert expected in made, made[0]


@pytest.mark.parametrize("name", names("node"))
def test_a_node_is_described_as_kubectl_does(name: str) -> None:
    recording, moments, expected = load(name)
    lease = answers(recording, "/leases/")[0]
    made = [
        describe_node(
            recording["object"],
            pods=items(recording, "/pods"),
            events=items(recording, "/events"),
            lease=lease["body"] if lease["status"] == 200 else None,
            lease_error=lease["body"].get("message", ""),
            now=now,
        )
        for now in moments
    ]
    assert expected in made, made[0]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (119, "119s"),
        (120, "2m"),
        (599, "9m59s"),
        (10860, "3h1m"),
        (2 * 86400, "2d"),
        (8 * 86400, "8d"),
        (3000 * 86400, "8y"),
    ],
)
def test_ages_have_at_most_two_units(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text


@given(st.integers(min_value=1, max_value=2**50), st.booleans())
def test_amount_reads_the_same_when_written(value: int, binary: bool) -> None:
    assert parse_quantity(str(Amount(parse_quantity(value), binary))) == value
