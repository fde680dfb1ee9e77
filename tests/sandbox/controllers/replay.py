"""Replays what was asked of a real Kubernetes against our controllers, and makes both outcomes comparable.

Names that are drawn at random are replaced by their order (`rs1`, `rs2`); times are left out.
"""

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from grid.sandbox.client import DEPLOYMENTS, EVENTS, PODS, REPLICA_SETS, Api, Mirrors, Object, name_of, namespace_of
from grid.sandbox.controllers.deployment import DeploymentController
from grid.sandbox.controllers.replicaset import ReplicaSetController
from grid.sandbox.controllers.scheduler import Scheduler
from tests.sandbox.support import FakeKubelet, FastClock, Plan, add_namespace, add_node, make_node, running

_RECORDINGS = Path("tests/recordings/controllers")
_POD_NAME = re.compile(r"\bweb-[a-z0-9]{5,10}-[a-z0-9]{5}\b")
_PATIENCE_SECONDS = 60.0
# A Deployment that said nothing new for so long has come to rest, in the recording and so here.
_REST_SECONDS = 0.8


@dataclass(slots=True)
class Outcome:
    """What a scenario led to."""

    set_sizes: list[tuple[str, int]] = field(default_factory=list)
    deployment_events: Counter[str] = field(default_factory=Counter)
    set_events: Counter[str] = field(default_factory=Counter)
    status: dict[str, Any] = field(default_factory=dict)
    conditions: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    reasons_seen: set[tuple[str, str, str]] = field(default_factory=set)


class Names:
    """ReplicaSets by the order in which they appeared."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, name: str) -> str:
        return self._known.setdefault(name, f"rs{len(self._known) + 1}")

    def plain(self, text: str) -> str:
        text = _POD_NAME.sub("POD", text.removeprefix("(combined from similar events): "))
        return re.compile(r"\bweb-[a-z0-9]{5,10}\b(?!-)").sub(lambda match: self.of(match.group()), text)


def recording(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((_RECORDINGS / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


def recorded_outcome(record: dict[str, Any]) -> Outcome:
    outcome, names = Outcome(), Names()
    for entry in record["timeline"]:
        match entry["kind"]:
            case "replicaset" if entry["type"] != "DELETED":
                _note_set(outcome, names, entry["metadata"]["name"], entry.get("spec"))
            case "deployment":
                _note_status(outcome, names, entry.get("status") or {})
            case "event":
                _note_event(outcome, names, entry["object"].split("/")[0], entry)
    return outcome


def rest_before(record: dict[str, Any], step: dict[str, Any]) -> dict[str, Any] | None:
    """The status in which the recorded Deployment had come to rest before a step; None where it had not."""
    entries = [entry for entry in record["timeline"] if entry["kind"] == "deployment" and entry["t"] < step["t"]]
    if not entries or step["t"] - entries[-1]["t"] < _REST_SECONDS:
        return None
    return {key: value for key, value in (entries[-1].get("status") or {}).items() if key != "conditions"}


def _note_set(outcome: Outcome, names: Names, name: str, spec: Object | None) -> None:
    if spec is not None and "replicas" in spec:
        change = (names.of(name), spec["replicas"])
        latest = [size for size in outcome.set_sizes if size[0] == change[0]]
        if not latest or latest[-1] != change:
            outcome.set_sizes.append(change)


def _note_status(outcome: Outcome, names: Names, status: Object) -> None:
    conditions = status.get("conditions") or []
    outcome.status = {key: value for key, value in status.items() if key != "conditions"}
    outcome.conditions = {
        item["type"]: (item["status"], item["reason"], names.plain(item["message"])) for item in conditions
    }
    outcome.reasons_seen |= {(item["type"], item["status"], item["reason"]) for item in conditions}


def _note_event(outcome: Outcome, names: Names, kind: str, event: Object) -> None:
    text = f"{event['reason']}: {names.plain(event['message'])}"
    if kind == "Deployment":
        outcome.deployment_events[text] += 1
    elif kind == "ReplicaSet":
        outcome.set_events[text] += 1


class Replay:
    """Our controllers at work on a recorded scenario's requests, at the recorded moments."""

    def __init__(self, client: Api, clock: FastClock, record: dict[str, Any]) -> None:
        self._client = client
        self._clock = clock
        self._record = record
        self._names = Names()
        self.outcome = Outcome()
        self._pod_names: list[str] = []
        self._set_names: list[str] = []
        plan = record["kubelet_plan"]
        self._kubelet = FakeKubelet(
            client,
            clock,
            Plan(
                start=plan["start_s"],
                ready=plan.get("ready", plan["ready_s"]),
                stop=plan.get("stop", plan["stop_s"]),
                never_ready_images=tuple(plan.get("never_ready_images", ())),
            ),
        )
        self._watched = Mirrors(client, clock=clock)
        self._watched.of(REPLICA_SETS).subscribe(self._set_changed)
        self._watched.of(PODS).subscribe(self._pod_changed)
        self._watched.of(DEPLOYMENTS).subscribe(self._deployment_changed)
        self._watched.of(EVENTS).subscribe(self._event_changed)

    async def run(self, until: Callable[[Outcome], bool]) -> Outcome:
        """The whole scenario, and then until the end is as wished or sixty recorded seconds have passed.

        A request that was made of a Deployment at rest waits until ours has come to the same rest: on a busy machine the
        clock alone would ask too early, and nothing that is deleted then can catch up.
        """
        await add_namespace(self._client, self._record["namespace"])
        for index in range(4):
            await add_node(self._client, make_node(f"node-{index}", now=self._clock.now()))
        parts = (
            Scheduler(self._client, clock=self._clock),
            DeploymentController(self._client, clock=self._clock),
            ReplicaSetController(self._client, clock=self._clock),
            self._kubelet,
        )
        steps = [entry for entry in self._record["timeline"] if entry["kind"] == "step"]
        end = self._record["timeline"][-1]["t"]
        async with self._watched.running(), running(*parts):
            began = self._clock.monotonic()
            for step in steps:
                await self._clock.sleep(max(0.0, began + step["t"] - self._clock.monotonic()))
                rest = rest_before(self._record, step)
                if rest is not None:
                    began += await self._wait_for(partial(self._is_at, rest))
                await self._ask(step["request"])
            await self._clock.sleep(max(0.0, began + end - self._clock.monotonic()))
            await self._wait_for(lambda: until(self.outcome))
        return self.outcome

    def _is_at(self, status: dict[str, Any]) -> bool:
        return self.outcome.status == status

    async def _wait_for(self, reached: Callable[[], bool]) -> float:
        """How many recorded seconds it took; not more than sixty."""
        asked = self._clock.monotonic()
        while not reached() and self._clock.monotonic() < asked + _PATIENCE_SECONDS:
            await self._clock.sleep(0.1)
        return self._clock.monotonic() - asked

    async def _ask(self, request: dict[str, Any]) -> None:
        path, body = self._translated(request["path"]), request["body"]
        match request["method"]:
            case "POST":
                await self._client.create(path, body)
            case "PATCH":
                await self._client.patch(path, body, kind="strategic")
            case "DELETE":
                await self._client.delete(path)

    def _translated(self, path: str) -> str:
        """Recorded names of sets and pods, replaced by the names that ours of the same order of birth have."""
        for kind, own in (("pod", self._pod_names), ("replicaset", self._set_names)):
            recorded: list[str] = []
            for entry in self._record["timeline"]:
                if entry["kind"] == kind and entry["metadata"]["name"] not in recorded:
                    recorded.append(entry["metadata"]["name"])
            for theirs, ours in zip(recorded, own, strict=False):
                path = path.replace(theirs, ours)
        return path

    def _is_ours(self, item: Object | None) -> bool:
        return item is not None and namespace_of(item) == self._record["namespace"]

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        if old is None and new is not None and self._is_ours(new):
            self._pod_names.append(name_of(new))

    def _set_changed(self, old: Object | None, new: Object | None) -> None:
        if new is not None and self._is_ours(new):
            if name_of(new) not in self._set_names:
                self._set_names.append(name_of(new))
            _note_set(self.outcome, self._names, name_of(new), new["spec"])

    def _deployment_changed(self, old: Object | None, new: Object | None) -> None:
        if new is not None and self._is_ours(new):
            _note_status(self.outcome, self._names, new.get("status") or {})

    def _event_changed(self, old: Object | None, new: Object | None) -> None:
        if new is not None and self._is_ours(new):
            _note_event(self.outcome, self._names, new["involvedObject"]["kind"], new)
