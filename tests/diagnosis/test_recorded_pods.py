"""What a person is told about the pods that were recorded from a real Kubernetes (tests/recordings/describe), all in one file to read."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.pods import explain_pod
from grid.kube.objects import Event, Pod
from tests.diagnosis.situations import told
from tests.support.builders import decode
from tests.support.golden import assert_golden

RECORDINGS = Path(__file__).parents[1] / "recordings" / "describe"


def recorded() -> dict[str, Diagnosis]:
    found = {}
    for path in sorted(RECORDINGS.glob("pod-*.json")):
        recording = json.loads(path.read_text())
        if "object" in recording:
            events = [decode(one, Event) for one in events_of(recording)]
            events.sort(key=lambda one: one.last_seen or datetime.min)
            now = datetime.fromisoformat(recording["now_before"])
            found[path.stem.removeprefix("pod-")] = explain_pod(decode(recording["object"], Pod), events, now=now)
    return found


def events_of(recording: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        item for one in recording["requests"] if "/events" in one["path"] for item in one["body"].get("items") or ()
    ]


def test_recorded_pods_are_told_as_stored() -> None:
    found = recorded()
    assert len(found) > 25
    assert_golden(
        "words-of-recorded-pods", "\n".join(f"# {name}\n{told(why)}" for name, why in found.items()), ending="txt"
    )
