"""What is said of a cluster while a real HorizontalPodAutoscaler acted on it: read `tests/golden/words-of-recorded-autoscalers.txt`."""

from datetime import datetime
from typing import Any

from grid.diagnosis.autoscalers import loads
from grid.diagnosis.clusters import ClusterSnapshot, Member, explain_cluster, summary
from grid.diagnosis.pods import explain_pod
from grid.kube.objects import Autoscaler, Pod
from tests.clusters.clustering import head_pod, worker_pod
from tests.diagnosis.recorded_timelines import Entry, alike, event_of, item_words, moment, recordings
from tests.diagnosis.situations import as_text
from tests.support.builders import condition, container_status, decode, stamp
from tests.support.golden import assert_golden

HEAD = decode(head_pod("c"), Pod)
# What an autoscaler says while it does what it should; told once, at the first recording.
USUAL = {"ReadyForNewScale", "ValidMetricFound", "DesiredWithinRange", "SucceededGetScale", "SucceededRescale"}


class Replay:
    """The state of one recording's objects, as its timeline goes on; blocks that say nothing new are left out."""

    def __init__(self, recording: Entry, messages: set[str]) -> None:
        self.recording, self.said = recording, messages
        self.pods: dict[str, Entry] = {}
        self.specs: dict[str, Entry] = {}
        self.statuses: dict[str, Entry] = {}
        self.wanted: list[tuple[datetime, int]] = []
        self.told: set[str] = set()
        self.blocks: list[str] = []

    def run(self) -> str:
        for entry in self.recording["timeline"]:
            self.step(entry)
        return f"# {self.recording['scenario']}: {self.recording['what']}\n" + "\n".join(self.blocks)

    def step(self, entry: Entry) -> None:
        kind, name = entry["kind"], entry.get("name", "")
        self.now = moment(self.recording, entry)
        if kind == "pod":
            self.pods[name] = entry
            if entry["type"] == "DELETED":
                del self.pods[name]
        elif kind == "event" and entry["object"].startswith("HorizontalPodAutoscaler/"):
            self.add([f"{entry['reason']}: {entry['message']}"], item_words(event_of(self.recording, entry)))
        elif kind == "hpa":
            self.specs[name] = entry.get("spec", self.specs.get(name, {}))
            self.statuses[name] = entry["status"]
            if entry["status"].get("conditions"):
                self.wanted.append((self.now, entry["status"]["desiredReplicas"]))
                self.add(self.conditions(name), self.answer(name, self.now))

    def conditions(self, name: str) -> list[str]:
        answers = []
        for each in self.statuses[name]["conditions"]:
            words = f"{each['type']} {each['status']}, {each['reason']}: {each['message']}"
            if each["reason"] not in USUAL or alike(words) not in self.said:
                answers.append(words)
        return answers

    def add(self, lines: list[str], answer: str) -> None:
        """Add a block when Kubernetes or we say something that was not said in this recording."""
        key = alike("\n".join([*lines, answer]))
        if key in self.told:
            return
        self.told.add(key)
        self.said.update(map(alike, lines))
        self.blocks.append("\n".join([*(f"> {line}" for line in lines), answer]))

    def answer(self, name: str, now: datetime) -> str:
        raw = {"metadata": {"name": name}, "spec": self.specs[name], "status": self.statuses[name]}
        autoscaler = decode(raw, Autoscaler)
        maximum = autoscaler.spec.max_replicas
        cluster = ClusterSnapshot(
            minimum=autoscaler.spec.min_replicas,
            maximum=maximum,
            autoscales=True,
            head=Member(HEAD, explain_pod(HEAD, [], now=now)),
            workers=tuple(member(pod, now) for pod in self.pods.values()),
            autoscaler=autoscaler,
            ready_nodes=1,
            wanted_before=tuple(self.wanted),
        )
        known = ", ".join(load.words for load in loads(autoscaler, maximum=maximum))
        answers = explain_cluster(cluster, now=now)
        # The conditions are quoted above each answer.
        return "\n".join(
            [f"{summary(cluster)} {known}".strip(), *(without_evidence(as_text(diagnosis)) for diagnosis in answers)]
        )


def member(entry: Entry, now: datetime) -> Member:
    name = entry["name"].rpartition("-")[2]
    is_ready, is_running = entry["ready"] == "True", entry["phase"] == "Running"
    fields: dict[str, Any] = {"phase": entry["phase"], "ready": is_ready}
    if entry["deletionTimestamp"]:
        fields["deletionTimestamp"] = entry["deletionTimestamp"]
    if is_running:
        began = {"running": {"startedAt": entry["startTime"] or stamp(now)}}
        at = datetime.fromisoformat(entry["readyTransition"]) if entry["readyTransition"] else now
        fields["statuses"] = [container_status(ready=is_ready, state=began)]
        fields["conditions"] = [condition("PodScheduled", "True"), condition("Ready", entry["ready"], at=at)]
    pod = decode(worker_pod("c", name, **fields), Pod)
    return Member(pod, explain_pod(pod, [], now=now))


def without_evidence(words: str) -> str:
    return "\n".join(line for line in words.splitlines() if not line.startswith("> "))


def test_recorded_autoscalers_are_told_as_stored() -> None:
    messages: set[str] = set()
    answers = [Replay(recording, messages).run() for _, recording in recordings("hpa")]
    assert len(answers) == 28
    assert_golden("words-of-recorded-autoscalers", "\n".join(answers), ending="txt")
