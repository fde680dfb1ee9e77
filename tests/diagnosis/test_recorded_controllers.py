"""What is said of recorded controllers, autoscalers and pods: read `tests/golden/words-of-recorded-*.txt`."""

import json
from datetime import datetime, timedelta
from typing import Any

from dashboard.shell.viewmodels.events import headline_of
from grid.core.labels import SAFE_TO_EVICT
from grid.diagnosis.autoscalers import loads
from grid.diagnosis.clusters import ClusterSnapshot, Member, explain_cluster, summary
from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.pods import explain_pod
from grid.diagnosis.refusals import explain_refusal
from grid.kube.objects import Autoscaler, ConfigMap, Event, Metadata, Node, Pod
from grid.kube.pools import NodeGroup, node_groups
from grid.nodes.scaledown import ScaleDown, ScaleDownRules, scale_down
from tests.clusters.clustering import head_pod, worker_pod
from tests.diagnosis.recorded_timelines import FOLDER, Entry, alike, event_of, item_words, moment, recordings
from tests.diagnosis.situations import as_text
from tests.support import builders
from tests.support.builders import condition, container_status, decode, stamp
from tests.support.golden import assert_golden

# StatefulSets are recorded, but nothing here makes any: their recordings are not in tests/recordings.
COUNT = 20


def messages(recording: Entry) -> dict[tuple[str, str], Entry]:
    """Return the events of the recording, each kind of message once, in their order."""
    by_reason: dict[tuple[str, str], Entry] = {}
    for entry in recording["timeline"]:
        if entry["kind"] == "event":
            kind = entry["object"].split("/")[0]
            by_reason.setdefault((f"{kind} {entry['reason']}", alike(entry["message"])), entry)
    return by_reason


def answer(recording: Entry, entry: Entry) -> str:
    lines = [f"> {entry['object'].split('/')[0]} {entry['reason']}: {entry['message']}"]
    lines.append(item_words(event_of(recording, entry)))
    refusal = explain_refusal(entry["message"]) if entry["eventType"] == "Warning" else None
    if refusal is not None:
        lines.append(f"{refusal.code}: {refusal.sentence} {refusal.next_step}")
    return "\n".join(lines)


def test_events_of_recorded_controllers_are_told_as_stored() -> None:
    seen: set[tuple[str, str]] = set()
    blocks, count = [], 0
    for name, recording in recordings("controllers"):
        new = {key: entry for key, entry in messages(recording).items() if key not in seen}
        seen |= new.keys()
        count += 1
        words = [answer(recording, entry) for entry in new.values()] or ["(nothing that is not above)"]
        blocks += [f"# {name}: {recording['what']}", *words]
    assert count == COUNT
    assert_golden("words-of-recorded-controllers", "\n".join(blocks), ending="txt")


def test_conditions_of_recorded_controllers_are_those_that_are_known() -> None:
    """Nothing is told of conditions but of the refusals in them: `ReplicaFailure` has the message of the event."""
    for name, recording in recordings("controllers"):
        for entry in recording["timeline"]:
            status = entry.get("status") or {}
            for each in status.get("conditions", ()) if isinstance(status, dict) else ():
                refusal = explain_refusal(each.get("message", ""))
                assert (refusal is not None) == (each["type"] == "ReplicaFailure"), (name, each)


HEAD = decode(head_pod("c"), Pod)
# What an autoscaler says while it does what it should; told once, at the first recording.
USUAL = {"ReadyForNewScale", "ValidMetricFound", "DesiredWithinRange", "SucceededGetScale", "SucceededRescale"}


class AutoscalerReplay:
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
    answers = [AutoscalerReplay(recording, messages).run() for _, recording in recordings("hpa")]
    assert len(answers) == 28
    assert_golden("words-of-recorded-autoscalers", "\n".join(answers), ending="txt")


RUN = json.loads((FOLDER / "autoscaler" / "run.json").read_text())
RULES = ScaleDownRules(
    threshold_percent=50, unneeded_seconds=10
)  # as the run's flags say, shorter than usual on purpose
SIZES = {
    name: (cpu, f"{memory}Gi")
    for name, cpu, memory in (("small", "4", "16"), ("big", "16", "64"), ("gpu", "32", "256"))
}
GPUS = {"nvidia.com/gpu": "8"}


class Replay:
    """The state of the recorded objects as the run goes on; what was said already is left out."""

    def __init__(self) -> None:
        self.pods: dict[str, Entry] = {}
        self.nodes: dict[str, Entry] = {}
        self.groups: dict[str, NodeGroup] = {}
        self.told: set[str] = set()
        self.blocks: list[str] = []
        self.verdicts: list[tuple[str, str]] = []

    def run(self) -> str:
        for entry in RUN["timeline"]:
            getattr(self, entry["kind"])(entry)
        return "\n".join(self.blocks)

    def step(self, entry: Entry) -> None:
        more = f", {entry['replicas']} replicas" if "replicas" in entry else ""
        self.blocks.append(f"# {entry['what']}{more}")

    def status_configmap(self, entry: Entry) -> None:
        status = ConfigMap(metadata=Metadata(name="cluster-autoscaler-status"), data={"status": entry["status"]})
        self.groups = node_groups([status])
        words = [f"{group.name} {group.target} of {group.minimum} to {group.maximum}" for group in self.groups.values()]
        self.blocks.append(f"## status {entry['why']}\nnodes wanted: {', '.join(words)}")
        for node in self.nodes.values():
            self.verdict(node, moment(RUN, entry))
            self.verdicts.append((node["name"], self.scale_down(node).verdict))

    def pod(self, entry: Entry) -> None:
        self.pods[entry["name"]] = entry
        if entry["type"] == "DELETED":
            del self.pods[entry["name"]]

    def event(self, entry: Entry) -> None:
        kind, name = entry["object"].split("/")
        event = event_of(RUN, entry)
        words = headline_of(event) or "(shown as it is)"
        if kind == "Pod":
            words = f"{words}\n{self.why(name, entry, event)}"
        self.add(f"{kind} {entry['reason']}: {entry['message']}", words)

    def node(self, entry: Entry) -> None:
        if entry["type"] == "DELETED":
            del self.nodes[entry["name"]]
            return
        before = self.nodes.get(entry["name"], entry)
        self.nodes[entry["name"]] = entry
        if before["taints"] != entry["taints"] or before["annotations"] != entry["annotations"]:
            self.verdict(entry, moment(RUN, entry))

    def verdict(self, entry: Entry, now: datetime) -> None:
        """Say whether the autoscaler would remove the node, as the page says it."""
        verdict = self.scale_down(entry)
        again = f" in {(verdict.at - now).total_seconds():.0f} s" if verdict.at else ""
        taints = ", ".join(taint["key"] for taint in entry["taints"]) or "none"
        self.add(f"Node {entry['name']}, taints: {taints}", f"{verdict.verdict}: {verdict.sentence}{again}")

    def scale_down(self, entry: Entry) -> ScaleDown:
        pool = entry["name"].partition("-")[0]
        cpu, memory = SIZES[pool]
        raw = builders.node(
            entry["name"], cpu=cpu, memory=memory, taints=entry["taints"], annotations=entry["annotations"],
            conditions=[condition("Ready", entry["ready"])], extended=GPUS if pool == "gpu" else None,
        )  # fmt: skip
        on_it = [pod_of(raw) for raw in self.pods.values() if raw["node"] == entry["name"]]
        size = sum(name.startswith(f"{pool}-") for name in self.nodes)
        return scale_down(decode(raw, Node), on_it, group=self.groups.get(pool), group_size=size, rules=RULES)

    def why(self, name: str, entry: Entry, event: Event) -> str:
        """Explain the pod by the autoscaler's event alone: what the scheduler said and asks for was not recorded."""
        raw = builders.pod(name, created=moment(RUN, entry) - timedelta(minutes=1), conditions=[])
        assert event.last_seen is not None
        return without_evidence(as_text(explain_pod(decode(raw, Pod), [event], now=event.last_seen)))

    def add(self, moment: str, words: str) -> None:
        key = alike(moment) + words
        if key not in self.told:
            self.told.add(key)
            self.blocks.append(f"> {moment}\n{words}")


def pod_of(entry: Entry) -> Pod:
    """Return the pod as the run's steps made it: pods were recorded without their specs. A name without a hash is one of no controller."""
    name = entry["name"]
    owner = {"kind": "ReplicaSet", "apiVersion": "apps/v1", "metadata": {"name": name.rpartition("-")[0], "uid": "1"}}
    requests = {"cpu": "3"} if name.startswith("burst") else GPUS if name.startswith("gpu") else {"cpu": "100m"}
    fields: dict[str, Any] = {
        "requests": requests,
        "annotations": {SAFE_TO_EVICT: "false"} if name.startswith("pinned") else {},
        **({"owner": owner} if name.count("-") > 1 and not name.startswith("gpu") else {}),
    }
    return decode(builders.pod(name, node=entry["node"], phase=entry["phase"], **fields), Pod)


def test_the_recorded_node_autoscaler_is_told_as_stored() -> None:
    assert_golden("words-of-recorded-node-autoscaler", Replay().run(), ending="txt")


def test_each_event_of_the_recorded_node_autoscaler_has_words() -> None:
    events = [entry for entry in RUN["timeline"] if entry["kind"] == "event"]
    assert len(events) > 50
    assert all(headline_of(event_of(RUN, entry)) for entry in events)


def test_recorded_autoscaler_marked_only_nodes_not_called_kept() -> None:
    replay = Replay()
    replay.run()
    marked = {
        entry["name"]
        for entry in RUN["timeline"]
        if entry["kind"] == "node"
        for taint in entry["taints"]
        if "DeletionCandidate" in taint["key"]
    }
    assert {name for name, verdict in replay.verdicts if verdict in ("marked", "removing")} <= marked
    # The pods of one that is never marked keep it for the whole run; the last status is from when they are deleted.
    assert {verdict for name, verdict in replay.verdicts[:-1] if name not in marked} == {"kept"}


def recorded() -> dict[str, Diagnosis]:
    cases = {}
    for path in sorted((FOLDER / "describe").glob("pod-*.json")):
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
