"""What a person is told about the pods that were recorded from a real Kubernetes (tests/recordings/describe), all in one file to read."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.pods import explain_pod
from grid.kube.objects import Event, Pod
from tests.diagnosis.situations import as_text
from tests.support.builders import decode
from tests.support.golden import assert_golden

RECORDINGS = Path(__file__).parents[1] / "recordings" / "describe"


def recorded() -> dict[str, Diagnosis]:
    cases = {}
    for path in sorted(RECORDINGS.glob("pod-*.json")):
        recording = json.loads(path.read_text())
        if "object" in recording:
            events = [decode(raw, Event) for raw in events_of(recording)]
            events.sort(key=lambda event: event.last_seen or datetime.min)
            now = datetime.fromisoformat(recording["now_before"])
            cases[path.stem.removeprefix("pod-")] = explain_pod(decode(recording["object"], Pod), events, now=now)
    return cases


def events_of(recording: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        item
        for request in recording["requests"]
        if "/events" in request["path"]
        for item in request["body"].get("items") or ()
    ]


def test_recorded_pods_are_told_as_stored() -> None:
    cases = recorded()
    assert len(cases) > 25
    assert_golden(
        "words-of-recorded-pods", "\n".join(f"# {name}\n{as_text(why)}" for name, why in cases.items()), ending="txt"
    )
