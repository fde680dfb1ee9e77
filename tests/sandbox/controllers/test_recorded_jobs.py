"""Our Job controller, shown what a real one saw, decides and writes the same, status by status; and comes to the same end on its own."""

import copy
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from grid.core.errors import GridError
from grid.sandbox.client import (
    EVENTS,
    JOBS,
    PODS,
    Client,
    Object,
    format_time,
    is_terminating,
    key_of,
    name_of,
    namespace_of,
    uid_of,
)
from grid.sandbox.controllers.job import JobController
from grid.sandbox.controllers.jobpods import INDEX, TRACKING
from grid.sandbox.controllers.jobrules import (
    Decision,
    Failures,
    JobView,
    announcements,
    counted,
    decide,
    ended,
    is_finished_job,
    ready_count,
    settled,
    started,
)
from grid.sandbox.controllers.scheduler import Scheduler
from tests.sandbox.controllers.replay import recording
from tests.sandbox.support import FakeKubelet, FastClock, Plan, add_namespace, add_node, api_server, make_node, running
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

_SCENARIOS = ("job-done", "job-indexed", "job-backoff-limit", "job-fails-once", "job-deadline-suspend")
# How long after a change the recorded controller saw it, and how early it wrote before that was recorded.
_LAG = 0.02


@dataclass(slots=True)
class Seen:
    """What the recorded controller saw at some time: the pods, by name, and the Job."""

    record: dict[str, Any]
    pods: dict[str, Object] = field(default_factory=dict)
    job: Object = field(default_factory=dict)
    failures: Failures = field(default_factory=Failures)
    released: set[str] = field(default_factory=set)

    def at(self, seconds: float) -> datetime:
        return datetime.fromisoformat(self.record["t0"]) + timedelta(seconds=seconds)

    def note(self, entry: dict[str, Any]) -> None:
        """One line of the timeline about a pod, as the Job's controller sees it."""
        name = entry["metadata"]["name"]
        if entry["type"] == "DELETED":
            self.pods.pop(name, None)
            return
        pod = self.pods.setdefault(name, {"metadata": copy.deepcopy(entry["metadata"]), "spec": {}, "status": {}})
        pod["metadata"] |= {"uid": name, "namespace": self.record["namespace"]}
        stamp = format_time(self.at(entry["t"]))
        if entry["terminating"]:
            pod["metadata"]["deletionTimestamp"] = stamp
        if entry["phase"] in ("Failed", "Succeeded") and pod["status"].get("phase") != entry["phase"]:
            code = self.record["kubelet_plan"]["codes"][0] if entry["phase"] == "Failed" else 0
            state = {"terminated": {"exitCode": code, "finishedAt": stamp}}
            pod["status"]["containerStatuses"] = [{"name": "app", "state": state}]
        pod["status"]["phase"] = entry["phase"]
        pod["status"]["conditions"] = [
            {"type": "Ready", "status": entry["ready"] or "False", "lastTransitionTime": stamp}
        ]


def by_name(status: Object, names: dict[str, str]) -> Object:
    """A recorded status, with the names of pods for their uids, which the recording tells nowhere else."""
    status = copy.deepcopy(status)
    for which, uids in status.get("uncountedTerminatedPods", {}).items():
        status["uncountedTerminatedPods"][which] = sorted(names.get(uid, uid) for uid in uids)
    return status


def look(seen: Seen, now: datetime) -> tuple[Decision, list[Object]]:
    """One look of ours: the decision, and the statuses that it writes, one after the other."""
    pods = list(seen.pods.values())
    view = JobView(seen.job, pods, frozenset(seen.released), seen.failures)
    plan = decide(view, now, settled=True)
    left = [pod for pod in plan.active if pod not in plan.delete]
    status = started(
        view,
        plan,
        now,
        active=len(left) + plan.create,
        ready=ready_count(left),
        terminating=plan.terminating + len(plan.delete),
    )
    first, release = counted(view, plan.end, status)
    seen.released |= {uid_of(pod) for pod in release}
    seen.failures = plan.failures
    second = ended(settled(first, ()), plan.end, now)
    before = seen.job["status"]
    return plan, [*([first] if first != before else []), *([second] if second != first else [])]


def sorted_uids(status: Object) -> Object:
    uncounted = {which: sorted(uids) for which, uids in status.get("uncountedTerminatedPods", {}).items()}
    return {**status, "uncountedTerminatedPods": uncounted}


@pytest.mark.parametrize("name", _SCENARIOS)
def test_each_look_of_the_recorded_controller_is_decided_alike(name: str) -> None:
    record = recording(name)
    timeline = record["timeline"]
    seen = Seen(record)
    seen.job = copy.deepcopy(next(entry for entry in timeline if entry["kind"] == "job"))
    seen.job["spec"] = {**record["timeline"][0]["request"]["body"]["spec"], **seen.job["spec"]}
    seen.job["metadata"]["namespace"] = record["namespace"]
    written = [entry for entry in timeline if entry["kind"] == "job" and entry["type"] == "MODIFIED"]
    written = [entry for entry in written if "spec" not in entry]  # what others write
    events = [entry for entry in timeline if entry["kind"] == "event" and entry["object"] == "Job/task"]
    told: list[tuple[str, str, str]] = []
    names: dict[str, str] = {}
    position, last = 0, -1.0
    while not is_finished_job(seen.job):
        moment = written[position]["t"]
        born = [entry for entry in timeline if entry["kind"] == "pod" and last < entry["t"] <= moment]
        born = [entry for entry in born if entry["type"] == "ADDED"]
        made_now = {entry["metadata"]["name"] for entry in born}
        for entry in timeline:
            is_pod = entry["kind"] == "pod" and entry["metadata"]["name"] not in made_now
            if is_pod and last - _LAG < entry["t"] < moment - _LAG:
                seen.note(entry)
            elif entry["kind"] == "job" and entry["type"] == "MODIFIED" and last < entry["t"] < moment:
                seen.job["spec"] = {**seen.job["spec"], **entry.get("spec", {})}
        plan, ours = look(seen, seen.at(moment))
        assert ours, f"nothing is written at {moment}"
        for mine, theirs in zip(ours, written[position:], strict=False):
            learn(names, theirs["status"], mine)
            assert sorted_uids(mine) == by_name(theirs["status"], names), f"at {theirs['t']}"
        assert (plan.create, [str(index) for index in plan.indexes]) == (
            len(born),
            sorted(entry["metadata"]["annotations"][INDEX] for entry in born if "annotations" in entry["metadata"]),
        )
        told += [("Normal", reason, message) for reason, message in plan.events]
        told += [("Normal", "SuccessfulCreate", f"Created pod: {name}") for name in made_now]
        told += [("Normal", "SuccessfulDelete", f"Deleted pod: {name_of(pod)}") for pod in plan.delete]
        position += len(ours)
        seen.job["status"] = ours[-1]
        told += announcements(seen.job)
        for entry in born:
            seen.note(entry)
        last = moment
    assert all(entry["status"] == written[position - 1]["status"] for entry in written[position:])  # the deletion
    assert Counter(told) == Counter((entry["eventType"], entry["reason"], entry["message"]) for entry in events)


def learn(names: dict[str, str], theirs: Object, ours: Object) -> None:
    for which, uids in theirs.get("uncountedTerminatedPods", {}).items():
        for uid, name in zip(uids, sorted(ours["uncountedTerminatedPods"].get(which, ())), strict=True):
            names.setdefault(uid, name)


@dataclass(slots=True)
class EndingKubelet(FakeKubelet):
    """Ends each pod as the recorded one of the same order of birth ended."""

    ends: list[tuple[str, float]] = field(default_factory=list)
    born: list[str] = field(default_factory=list)

    async def _start(self, pod: Object) -> None:
        self.born.append(uid_of(pod))
        phase, after = self.ends[len(self.born) - 1]
        await FakeKubelet._start(self, pod)
        if phase not in ("Succeeded", "Failed"):
            return
        await self.clock.sleep(after)
        code = 42 if phase == "Failed" else 0
        state = {"terminated": {"exitCode": code, "finishedAt": format_time(self.clock.now())}}
        container = {"name": "app", "ready": False, "restartCount": 0, "image": "a", "imageID": "", "state": state}
        status = {
            "phase": phase,
            "containerStatuses": [container],
            "conditions": [{"type": "Ready", "status": "False"}],
        }
        with suppress(GridError):
            current = self.mirrors.of(PODS).get(key_of(pod))
            if current is not None and not is_terminating(current):
                path = PODS.path(namespace_of(pod), name_of(pod), "status")
                await self.client.patch(path, {"status": status}, kind="strategic")


def without_times(status: Object) -> Object:
    kept = {key: value for key, value in status.items() if key not in ("startTime", "completionTime", "conditions")}
    said = [(item["type"], item["status"], item["reason"]) for item in status.get("conditions") or ()]
    return {**kept, "conditions": said}


@pytest.mark.parametrize("name", _SCENARIOS)
async def test_a_recorded_job_comes_to_the_same_end(name: str, tmp_path: Path) -> None:
    record = recording(name)
    timeline, namespace = record["timeline"], record["namespace"]
    clock = FastClock(speed=4)
    last = [entry for entry in timeline if entry["kind"] == "job"][-1]
    phases = {entry["metadata"]["name"]: entry["phase"] for entry in timeline if entry["kind"] == "pod"}
    events = [entry for entry in timeline if entry["kind"] == "event" and entry["object"].startswith("Job/")]
    async with api_server(tmp_path, clock) as client:
        await add_namespace(client, namespace)
        await add_node(client, make_node("node-0", now=clock.now()))
        kubelet = EndingKubelet(client, clock, Plan(ready=0.3), ends=[(phase, 1.0) for phase in phases.values()])
        async with running(JobController(client, clock=clock), Scheduler(client, clock=clock), kubelet):
            began = clock.monotonic()
            for step in [entry for entry in timeline if entry["kind"] == "step"]:
                await clock.sleep(max(0.0, began + step["t"] - clock.monotonic()))
                await ask(client, step["request"])
            conditions = len(last["status"]["conditions"])
            job = await eventually(
                lambda: client.get(JOBS.path(namespace, "task")),
                holds=lambda job: len(job["status"].get("conditions") or ()) == conditions,
            )
            assert without_times(job["status"]) == without_times(last["status"])
            await eventually(
                lambda: client.list(PODS.path(namespace)),
                "the pods to lose their finalizer",
                holds=lambda pods: not any(TRACKING in (pod["metadata"].get("finalizers") or ()) for pod in pods),
            )
            if last["type"] == "DELETED":
                await eventually(lambda: client.list(JOBS.path(namespace)), holds=lambda jobs: not jobs)
        told = Counter(item["reason"] for item in await client.list(EVENTS.path(namespace)) if of_job(item))
    assert told == Counter(entry["reason"] for entry in events)


def of_job(event: Object) -> bool:
    return bool(event["involvedObject"]["kind"] == "Job")


async def ask(client: Client, request: dict[str, Any]) -> None:
    if request["method"] == "POST":
        await client.create(request["path"], request["body"])
    else:
        await client.patch(request["path"], request["body"], kind="strategic")
