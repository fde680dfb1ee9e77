"""The timelines recorded from a real Kubernetes, and what an execution's timeline says of their events."""

import json
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from dashboard.executions.viewmodels.timeline import TimelineItem, timeline
from grid.kube.objects import Event
from tests.executions.executing import RECORD
from tests.support import builders
from tests.support.builders import decode

FOLDER = Path(__file__).parents[1] / "recordings"
Entry = dict[str, Any]


def recordings(kind: str) -> Iterator[tuple[str, Entry]]:
    for path in sorted((FOLDER / kind).glob("*.json")):
        yield path.stem, json.loads(path.read_text())


def moment(recording: Entry, entry: Entry) -> datetime:
    return datetime.fromisoformat(recording["t0"]) + timedelta(seconds=entry["t"])


def event_of(recording: Entry, entry: Entry) -> Event:
    kind, name = entry["object"].split("/")
    about = {"kind": kind, "metadata": {"name": name, "namespace": entry.get("namespace", recording["namespace"])}}
    at = moment(recording, entry)
    return decode(
        builders.event(
            "e", about=about, reason=entry["reason"], message=entry["message"], kind=entry["eventType"], at=at
        ),
        Event,
    )


def item_of(event: Event) -> TimelineItem:
    (fragment,) = timeline(RECORD, [event], [], assigned_node="")
    assert isinstance(fragment.context, TimelineItem)
    return fragment.context


def item_words(event: Event) -> str:
    """What the timeline says in our words; Kubernetes' own where there are none."""
    item = item_of(event)
    mark = f"[{item.mark}] " if item.mark else ""
    own = f": {item.message}" if item.message != event.message.strip() else ""
    unknown = " (shown as it is)" if item.headline == event.reason else ""
    return f"{mark}{item.headline}{own}{unknown}"


def alike(message: str) -> str:
    """The message without the names and numbers that differ between repetitions."""
    return re.sub(r"\d+", "0", re.sub(r"-[0-9a-f]{8,10}(?:-\w{5})?\b|-[b-z0-9]{5}\b", "-x", message))
