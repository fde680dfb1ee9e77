"""Takes a recorded HorizontalPodAutoscaler through its life again, sync by sync, on the recording's own time.

Each sync of the real controller is found by what it left behind: requests for metrics, status changes, events. Ours gets
what the real one saw at that moment; its status and memory are its own from the sync before.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from grid.sandbox.client import parse_time
from grid.sandbox.controllers.scaling.model import Memory, NamespaceUsage, PodState, ScalingSettings
from grid.sandbox.controllers.scaling.reading import read_pod, read_usage
from grid.sandbox.controllers.scaling.sync import Scale, Situation, conclude, decide, reads_metrics, without_scale

RECORDINGS = Path("tests/recordings/hpa")
_ONE_SYNC_SECONDS = 1.0
# Between the first effect of a sync without metrics and the moment when it read its input.
_EFFECT_SECONDS = 0.015
_SETTINGS = ScalingSettings(
    sync_seconds=5, down_seconds=30, cpu_initialisation_seconds=20, initial_readiness_seconds=10
)

Entry = dict[str, Any]


@dataclass(slots=True)
class Sync:
    """One sync of the real controller: what it asked and did, and when."""

    name: str
    at: float
    first: int
    answers: list[Entry] = field(default_factory=list)
    events: list[tuple[str, str, str]] = field(default_factory=list)
    status: Entry = field(default_factory=dict)


@dataclass(slots=True)
class Seen:
    """What ours did at the same moment."""

    status: Entry
    events: list[tuple[str, str, str]]
    asked: bool


def recording(name: str) -> Entry:
    loaded: Entry = json.loads((RECORDINGS / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


def syncs_of(record: Entry) -> list[Sync]:
    """In the order in which they happened; statuses are carried on where a sync changed nothing."""
    syncs: list[Sync] = []
    latest: dict[str, Sync] = {}
    names = [item["metadata"]["name"] for item in record["hpa_created"]]
    for index, entry in enumerate(record["timeline"]):
        name = _cause(entry, names)
        if not name:
            continue
        sync = latest.get(name)
        if sync is None or entry["t"] - sync.at > _ONE_SYNC_SECONDS:
            status = sync.status if sync else {}
            sync = latest[name] = Sync(name, entry["t"], index, status=status)
            syncs.append(sync)
        _note(sync, entry)
    return syncs


def _cause(entry: Entry, names: Sequence[str]) -> str:
    """The autoscaler that was looked at when this happened; requests for metrics are always the first one's."""
    kind = entry["kind"]
    if kind == "metrics_request":
        return names[0]
    if kind == "event" and entry["object"].startswith("HorizontalPodAutoscaler/"):
        return str(entry["object"]).partition("/")[2]
    if kind == "hpa" and entry["type"] == "MODIFIED" and "spec" not in entry:
        return str(entry["name"])
    return ""


def _note(sync: Sync, entry: Entry) -> None:
    match entry["kind"]:
        case "metrics_request":
            sync.answers.append(entry)
        case "event":
            sync.events.append((entry["eventType"], entry["reason"], plain(entry["message"])))
        case "hpa":
            sync.status = entry["status"]


def plain(text: str) -> str:
    """Without what the real one leaves to chance: the order of a set, and which of several pods is named."""
    text = re.compile(r"\[(.*)\]").sub(lambda match: "[" + " ".join(sorted(match.group(1).split())) + "]", text)
    return re.compile(r"of Pod \S+").sub("of Pod POD", text)


class Replay:
    def __init__(self, record: Entry) -> None:
        self._record = record
        self._began = parse_time(record["t0"]) or datetime.min
        self._memories: dict[str, Memory] = {}
        self._statuses: dict[str, Entry] = {}
        self._known: set[str] = set()

    def see(self, sync: Sync) -> Seen:
        now = self._began + timedelta(seconds=sync.at)
        before = [
            entry
            for index, entry in enumerate(self._record["timeline"])
            if (index < sync.first if sync.answers else entry["t"] < sync.at - _EFFECT_SECONDS)
        ]
        spec = [entry for entry in before if entry["kind"] == "hpa" and entry["name"] == sync.name and "spec" in entry]
        autoscaler = {"spec": spec[-1]["spec"], "status": self._statuses.get(sync.name, {}), "metadata": {}}
        target = [
            entry
            for entry in before
            if entry["kind"] == "target" and entry["name"] == autoscaler["spec"]["scaleTargetRef"]["name"]
        ]
        if not target:
            name = autoscaler["spec"]["scaleTargetRef"]["name"]
            status, warning = without_scale(autoscaler, f'deployments.apps "{name}" not found', now)
            self._statuses[sync.name] = dict(status)
            event: tuple[str, str, str] = (warning.type, warning.reason, warning.message)
            return Seen(dict(status), [event], asked=False)
        return self._decide(sync, autoscaler, target[-1]["specReplicas"], self._pods(before), now)

    def _decide(self, sync: Sync, autoscaler: Entry, replicas: int, pods: list[PodState], now: datetime) -> Seen:
        self._known.add(sync.name)
        labels = self._record["target"]["spec"]["selector"]["matchLabels"]
        scale = Scale(replicas, ",".join(f"{key}={value}" for key, value in labels.items()))
        rivals = tuple(f"{self._record['namespace']}/{name}" for name in sorted(self._known)) if pods else ()
        situation = Situation(autoscaler, scale, pods, self._usage(sync), rivals)
        decision = decide(situation, self._memories.get(sync.name, Memory()), _SETTINGS, now)
        outcome = conclude(situation, decision, _SETTINGS, now)
        self._memories[sync.name] = outcome.memory
        self._statuses[sync.name] = dict(outcome.status)
        events: list[tuple[str, str, str]] = [(item.type, item.reason, plain(item.message)) for item in outcome.events]
        asked = reads_metrics(autoscaler["spec"], scale) and len(rivals) < 2
        return Seen(dict(outcome.status), events, asked)

    def _pods(self, before: Sequence[Entry]) -> list[PodState]:
        states: dict[str, PodState] = {}
        for entry in before:
            if entry["kind"] == "pod" and entry["type"] == "DELETED":
                states.pop(entry["name"], None)
            elif entry["kind"] == "pod":
                states[entry["name"]] = read_pod(self._pod(entry))
        return list(states.values())

    def _pod(self, entry: Entry) -> Entry:
        ready = {"type": "Ready", "status": entry["ready"], "lastTransitionTime": entry["readyTransition"]}
        return {
            "metadata": {"name": entry["name"], "deletionTimestamp": entry["deletionTimestamp"]},
            "spec": self._record["target"]["spec"]["template"]["spec"],
            "status": {
                "phase": entry["phase"],
                "startTime": entry["startTime"],
                "conditions": [ready] if entry["ready"] else [],
            },
        }

    def _usage(self, sync: Sync) -> NamespaceUsage:
        if not sync.answers:
            return NamespaceUsage()
        answer = sync.answers[0]
        if answer["status"] != 200:
            return NamespaceUsage(problem="unable to fetch metrics from resource metrics API: metrics are down")
        usage = answer["usage"]
        if isinstance(usage, str):
            usage = next(
                entry["usage"]
                for entry in reversed(self._record["timeline"][: sync.first])
                if entry["kind"] == "metrics_request" and isinstance(entry.get("usage"), dict)
            )
        items = [
            {
                "metadata": {"name": pod},
                "timestamp": answer["timestamp"],
                "window": answer["window"],
                "containers": [{"name": name, "usage": used} for name, used in containers.items()],
            }
            for pod, containers in usage.items()
        ]
        return read_usage(self._record["namespace"], items)
