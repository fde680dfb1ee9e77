"""A world whose controllers are killed in the middle of a round: after any number of calls to the cluster or statements to the database.

Its nodes do one thing after another to each pod, but not always at once: they fetch files from Git, end programs, save files and say how
that went, keep to timeouts, and now and then take a pod away. A `Process` is one controller with everything that its loops do; `Replicas`
are those that the lease chooses between, or that do not know of each other.
"""

import asyncio
import contextlib
import json
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from grid.controller.controller import Controller
from grid.controller.downtime import Downtime
from grid.controller.leader import Election
from grid.core.errors import NotFound
from grid.core.labels import KEYS, PROGRAM_ENDED
from grid.database.trouble import TroubleLog
from grid.diagnosis.requests import is_placeholder
from grid.environments.revisionbuilds import RevisionBuilds
from grid.environments.revisions import BuildProgress
from grid.jobs.deadlines import DeadlineWatch
from grid.jobs.scheduler import JobScheduler
from grid.kube.objects import Pod, RawObject
from grid.kube.resources import PODS
from grid.models import EnvironmentRevision
from grid.models.dataplane import LOCAL
from grid.queue import queuewatch
from grid.tiers.placeholders import PlaceholderKeeper
from grid.usage.budgets.keeper import BudgetKeeper
from grid.workspaces.shutdown.records import ShutdownWatch, WatchedRun
from grid.workspaces.shutdown.rules import Look, LookOutcome
from tests.controller.world import Fault, Killed, World
from tests.support.builders import NAMESPACE, condition, container_status, decode, stamp
from tests.support.virtual import loop_time

COMMIT, OTHER = "a" * 40, "b" * 40
SAVED = {"code": 0, "began": COMMIT, "ended": OTHER, "branch": "main"}
NOT_PUSHED = SAVED | {"branch": "", "kept": "repository", "problem": "It could not be pushed: no space"}
_WAITS = {"waiting": {"reason": "PodInitializing"}}
_OF_TRANSACTIONS = ("BEGIN", "SAVEPOINT", "RELEASE", "ROLLBACK")  # of which Django must know the outcome


@dataclass
class Crash(Fault):
    """Counts each call to the cluster and each statement; a process that was killed does nothing more."""

    is_dead: bool = False

    async def run(self, call: Callable[[], Awaitable[Any]]) -> Any:
        await asyncio.sleep(0)  # another controller may come between two calls
        task = asyncio.current_task()

        def statement(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
            if asyncio.current_task() is not task or sql.startswith(_OF_TRANSACTIONS):
                return execute(sql, params, many, context)
            self._begin()
            result = execute(sql, params, many, context)
            self._end()
            return result

        self._begin()
        with connection.execute_wrapper(statement):
            result = await call()
        self._end()
        return result

    def _begin(self) -> None:
        self.calls += 1
        if self.is_dead or (self.calls == self.at and not self.after):
            self._die()

    def _end(self) -> None:
        if self.is_dead or (self.at and self.calls >= self.at):
            self._die()

    def _die(self) -> None:
        self.is_dead = True
        raise Killed


class Eyes:
    """Sees whether executions are in use: all or none of them."""

    is_busy = False

    async def observe(self, runs: Sequence[WatchedRun], now: datetime) -> Mapping[str, LookOutcome]:
        seen = LookOutcome(Look(is_known=True, is_active=self.is_busy), "1 kernel is busy" if self.is_busy else "idle")
        return {run.id: seen for run in runs}


class SlowBuilder:
    """Has an image ready when it was asked a few times."""

    def __init__(self) -> None:
        self.asked: dict[str, int] = {}

    async def ask(self, revision: EnvironmentRevision) -> BuildProgress:
        times = self.asked[revision.image] = self.asked.get(revision.image, 0) + 1
        return BuildProgress("b1", "ready" if times > 2 else "building", digest="sha256:1" if times > 2 else "")


@dataclass
class KillWorld(World):
    """`bound` has every pod of an execution that got a node: its execution, and when; `reported` what executors reported, by execution."""

    rng: random.Random = field(default_factory=random.Random)
    bound: dict[str, tuple[str, datetime]] = field(default_factory=dict)
    reported: dict[str, dict[str, Any]] = field(default_factory=dict)
    seen_bound: set[str] = field(default_factory=set)
    seen_told: set[str] = field(default_factory=set)
    eyes: Eyes = field(default_factory=Eyes)
    builder: SlowBuilder = field(default_factory=SlowBuilder)
    is_calm: bool = False  # no pod is lost, and no program fails
    lost: set[str] = field(default_factory=set)  # executions of which a pod was taken away

    def has_seen(self) -> None:
        """A controller has looked at everything, and lived."""
        for pod in self.pods():
            if pod["metadata"]["uid"] in self.bound:
                self.seen_bound.add(pod["metadata"]["uid"])
            if self._stage(pod) == "saved":
                self.seen_told.add(_execution(pod))

    def schedule(self, pod: RawObject, node: str = "node-1") -> None:
        super().schedule(pod, node)
        if execution := _execution(pod):
            self.bound[pod["metadata"]["uid"]] = (execution, self.now)

    def finish(self, pod: RawObject, exit_code: int, reason: str = "") -> None:
        """As the usual one, with the times that a kubelet writes."""
        before = pod["status"]
        super().finish(pod, exit_code, reason)
        pod["status"] |= {name: before[name] for name in ("conditions", "startTime") if name in before}
        pod["status"]["containerStatuses"] = [container_status(state=self._ended(exit_code))]
        self.cluster.put(PODS, pod)

    def _walk(self) -> None:
        for pod in self.pods():
            if self.is_calm or self.rng.random() > 0.2:
                with contextlib.suppress(NotFound):  # it has just been deleted with what owned it
                    self.cluster.server.find(PODS, pod["metadata"]["name"], NAMESPACE)
                    self._one_step(pod)

    def _one_step(self, pod: RawObject) -> None:
        phase, stage = pod.get("status", {}).get("phase"), self._stage(pod)
        is_leaving = "deletionTimestamp" in pod["metadata"]
        if not self.is_calm and self.rng.random() < 0.01:
            self.lost.add(_execution(pod))  # with its node
            self._remove(pod)
        elif stage in ("running", "saving") and is_leaving:
            self._save(pod, 0)
        elif is_leaving:
            self._remove(pod)
        elif phase in ("Succeeded", "Failed"):
            return
        elif "nodeName" not in pod["spec"]:
            self.schedule(pod)
        elif _has_executor(pod) and phase != "Running":
            self._prepare(pod, stage)
        elif phase != "Running":
            self.start(pod)
            pod["status"]["startTime"] = stamp(self.now)
            self.cluster.put(PODS, pod)
        elif stage == "saving":
            if not _is_ordinary(pod) or PROGRAM_ENDED in pod["metadata"].get("annotations", {}):
                self._save(pod, self._code_of(pod))
        elif self._is_late(pod):
            pod["status"] |= {"phase": "Failed", "reason": "DeadlineExceeded"}
            self.cluster.put(PODS, pod)
        elif pod["spec"]["restartPolicy"] == "Never" and not is_placeholder(decode(pod, Pod)):
            self._end_program(pod)

    def _remove(self, pod: RawObject) -> None:
        self.cluster.remove(PODS, pod["metadata"]["name"], namespace=NAMESPACE)

    def _is_late(self, pod: RawObject) -> bool:
        limit, started = pod["spec"].get("activeDeadlineSeconds"), pod["status"].get("startTime")
        return bool(limit and started) and datetime.fromisoformat(started) + timedelta(seconds=limit) < self.now

    def _end_program(self, pod: RawObject) -> None:
        code = 0 if self.is_calm else self.rng.choice((0, 0, 7))
        if not _has_executor(pod):
            self.finish(pod, code)
        else:
            self._writes(pod, "Running", executor=self._running, run=self._ended(code))

    def _code_of(self, pod: RawObject) -> int:
        ends = [status for status in pod["status"]["containerStatuses"] if status["name"] == "run"]
        return int(ends[0]["state"]["terminated"]["exitCode"])

    # --- With an executor ---

    @property
    def _running(self) -> RawObject:
        return {"running": {"startedAt": stamp(self.now)}}

    def _ended(self, code: int, message: str = "") -> RawObject:
        ended = {"exitCode": code, "reason": "Error" if code else "Completed", "message": message}
        return {"terminated": ended | {"startedAt": stamp(self.now), "finishedAt": stamp(self.now)}}

    def _stage(self, pod: RawObject) -> str:
        """How far the executor is: "" without one, then before, fetching, running, saving, saved."""
        if not _has_executor(pod):
            return ""
        status = pod.get("status", {})
        states = {
            status["name"]: next(iter(status["state"]))
            for status in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ()))
        }
        if states.get("run") == "terminated":
            return "saved" if states.get("executor") == "terminated" else "saving"
        if states.get("run") == "running":
            return "running"
        return "fetching" if states else "before"

    def _prepare(self, pod: RawObject, stage: str) -> None:
        if stage == "before":
            self._writes(pod, "Pending", executor=_WAITS if _is_ordinary(pod) else self._running, run=_WAITS)
        else:
            self._writes(pod, "Running", executor=self._running, run=self._running)

    def _save(self, pod: RawObject, code: int) -> None:
        report = self.rng.choice((SAVED, NOT_PUSHED))
        self.reported[_execution(pod)] = report
        executor = self._ended(0, json.dumps(report))
        self._writes(pod, "Failed" if code else "Succeeded", executor=executor, run=self._ended(code))

    def _writes(self, pod: RawObject, phase: str, *, executor: RawObject, run: RawObject) -> None:
        is_ready = "running" in run
        status = {
            "phase": phase,
            "startTime": stamp(self.now),
            "conditions": [
                *(before for before in pod.get("status", {}).get("conditions", ()) if before["type"] == "PodScheduled"),
                condition("Ready", str(is_ready)),
            ],
        }
        executor_status = {**container_status("executor", state=executor), "started": phase != "Pending"}
        program = container_status(ready=is_ready, state=run)
        if _is_ordinary(pod):
            fetched = self._running if phase == "Pending" else self._ended(0)
            status["initContainerStatuses"] = [container_status("executor-prepare", state=fetched)]
            status["containerStatuses"] = [{**executor_status, "ready": is_ready}, program]
        else:
            status["initContainerStatuses"] = [{**executor_status, "ready": is_ready}]
            status["containerStatuses"] = [program]
        pod["status"] = status
        self.cluster.put(PODS, pod)


def _execution(pod: RawObject) -> str:
    return str((pod["metadata"].get("labels") or {}).get(KEYS.execution, ""))


def _has_executor(pod: RawObject) -> bool:
    return any(init["name"].startswith("executor") for init in pod["spec"].get("initContainers", ()))


def _is_ordinary(pod: RawObject) -> bool:
    return any(init["name"] == "executor-prepare" for init in pod["spec"].get("initContainers", ()))


class Process:
    """A controller; a round is what its loops do in turn."""

    def __init__(self, world: KillWorld, crash: Crash, away: Downtime | None) -> None:
        self.world, self.crash = world, crash
        self.controller: Controller = world.controller(crash, monotonic=loop_time, away=away)
        context, troubles = self.controller._context, TroubleLog(loop_time)
        database, clock = context.database, context.clock
        self._looks: tuple[Callable[[], Awaitable[object]], ...] = (
            JobScheduler(database, clock).run_once,
            RevisionBuilds(context, troubles, world.builder).run_once,
            ShutdownWatch(LOCAL, database, clock, world.eyes).run_once,
            BudgetKeeper(database, clock).run_once,
            DeadlineWatch(self.controller.pods.values, database, clock).run_once,
            queuewatch.periodic(context).run_once,
            PlaceholderKeeper(context).run_once,
            self.controller.audit,
        )
        self._is_new = True

    async def round(self, *, all_of_it: bool = False) -> None:
        """The executions, on caches that may be old, and then some of the rest, or all."""
        rng = self.world.rng
        is_fresh = self._is_new or all_of_it or rng.random() < 0.9
        await self.world.step(self.controller, fresh=is_fresh)
        self._is_new = False
        for run_once in self._looks if all_of_it else rng.sample(self._looks, 3):
            await run_once()
        await self.world.step(self.controller, fresh=False)
        if is_fresh:
            self.world.has_seen()


class Replicas:
    """One controller or two. With `leases` they elect a leader; without, both work at once, each as if it were alone."""

    def __init__(self, world: KillWorld, count: int, *, leases: bool) -> None:
        self._world, self._leases = world, leases
        self._names = [f"controller-{number}" for number in range(count)]
        self._elections: dict[str, Election] = {}
        self._processes: dict[str, Process] = {}
        self._looked_at = world.now
        self.kills = 0
        self.kill_within = 0  # calls; 0: nobody is killed

    async def round(self, *, all_of_it: bool = False) -> None:
        working = [name for name in self._names if not self._leases or await self._is_leader(name)]
        for name in self._names:
            if name not in working:
                self._processes.pop(name, None)
        results = await asyncio.gather(*(self._work(name, all_of_it) for name in working), return_exceptions=True)
        for name, result in zip(working, results, strict=True):
            if isinstance(result, Killed):
                self._processes.pop(name)
                self._elections.pop(name, None)
                self.kills += 1
            elif result is not None:
                raise result
            else:
                self._looked_at = self._world.now

    async def _is_leader(self, name: str) -> bool:
        if name not in self._elections:
            self._elections[name] = Election(
                self._world.cluster,
                name="controller",
                namespace=NAMESPACE,
                identity=f"{name}-{self.kills}",
                monotonic=loop_time,
                clock=lambda: self._world.now,
            )
        return await self._elections[name].attempt()

    async def _work(self, name: str, all_of_it: bool) -> None:
        rng, world = self._world.rng, self._world
        process = self._processes.get(name)
        if process is None:
            away = Downtime("controller", self._looked_at, world.now)
            process = self._processes[name] = Process(world, Crash(), away)
        if self.kill_within:
            crash = process.crash
            crash.at, crash.after = crash.calls + rng.randint(1, self.kill_within), rng.random() < 0.5
        else:
            process.crash.at = 0
        await process.round(all_of_it=all_of_it)
