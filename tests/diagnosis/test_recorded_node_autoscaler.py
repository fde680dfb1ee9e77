"""What is said of a real cluster autoscaler's run, step by step: read `tests/golden/words-of-recorded-node-autoscaler.txt`."""

import json
from datetime import datetime, timedelta
from typing import Any

from dashboard.shell.viewmodels.events import headline_of
from grid.core.labels import SAFE_TO_EVICT
from grid.diagnosis.pods import explain_pod
from grid.kube.objects import ConfigMap, Event, Metadata, Node, Pod
from grid.kube.pools import NodeGroup, node_groups
from grid.nodes.scaledown import ScaleDown, ScaleDownRules, scale_down
from tests.diagnosis.recorded_timelines import FOLDER, Entry, alike, event_of, moment
from tests.diagnosis.situations import as_text
from tests.support import builders
from tests.support.builders import condition, decode
from tests.support.golden import assert_golden

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
        at = moment(RUN, entry)
        raw = builders.pod(name, created=at - timedelta(minutes=1), conditions=[])
        return told_without_evidence(decode(raw, Pod), event)

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


def told_without_evidence(pod: Pod, event: Event) -> str:
    at = event.last_seen
    assert at is not None
    words = as_text(explain_pod(pod, [event], now=at))
    return "\n".join(line for line in words.splitlines() if not line.startswith("> "))


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
