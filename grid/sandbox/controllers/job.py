"""The Job controller: makes a Job's pods, counts how they end, and says when the Job is finished.

`jobrules` decides; this reads mirrors and carries out. Changes of pods are looked at a second after the first of them, so that many
pods that end together are counted together. A finished Job with `ttlSecondsAfterFinished` is deleted when that time is over.
"""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from datetime import timedelta

from grid.core.errors import Conflict, GridError, NotFound
from grid.sandbox.client import (
    JOBS,
    PODS,
    Object,
    answer_of,
    controller_of,
    is_terminating,
    key_of,
    name_of,
    namespace_of,
    parse_time,
    reference_to,
    uid_of,
)
from grid.sandbox.controllers.controller import QueueController
from grid.sandbox.controllers.jobpods import TRACKING, is_tracked, make_pod
from grid.sandbox.controllers.jobrules import (
    Decision,
    Failures,
    JobView,
    announcements,
    counted,
    decide,
    ended,
    finished_condition,
    is_finished_job,
    ready_count,
    settled,
    started,
)
from grid.sandbox.controllers.owned import Expectations, PodsByOwner, namespace_is_ending
from grid.sandbox.controllers.workoff import AlreadyReported

logger = logging.getLogger(__name__)

_BATCH_SECONDS = 1.0
_EXPECTATION_CHECK_SECONDS = 5.0
_POD_KEY = "pod:"  # of a pod whose finalizer nobody needs any more
_OURSELVES = (None, "kubernetes.io/job-controller")


class JobController(QueueController):
    """The controller that runs each Job's pods to their end."""

    component = "job-controller"
    name = "job"

    def _begin(self) -> None:
        self._jobs = self._mirrors.of(JOBS)
        self._all_pods = self._mirrors.of(PODS)
        self._pods = PodsByOwner()
        self._expectations = Expectations(self._clock)
        self._failures: dict[str, Failures] = {}
        self._released: dict[str, set[str]] = {}  # by Job: pods that the mirror still shows with their finalizer
        self._replaced: dict[str, set[str]] = {}  # by Job: versions that our own writes have replaced
        self._jobs.subscribe(self._job_changed)
        self._all_pods.subscribe(self._pod_changed)

    def _job_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            uid = uid_of(old or {})
            self._expectations.forget(uid)
            for memory in (self._failures, self._released, self._replaced):
                memory.pop(uid, None)
            for pod in self._pods.of(uid):
                self._wake_for_pod(pod)
        elif old is None or old["metadata"].get("generation") != new["metadata"].get("generation"):
            self._queue.add(key_of(new))
        else:
            self._queue.add_later(key_of(new), _BATCH_SECONDS)

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        self._pods.changed(old, new)
        if old is not None and (new is None or controller_of(new) != controller_of(old)):
            self._expectations.left(uid_of(old))
        for pod in (old, new):
            owner = controller_of(pod) if pod is not None else None
            if pod is None or owner is None or owner.get("kind") != JOBS.kind:
                continue
            if new is None or not is_tracked(new):
                self._released.get(owner["uid"], set()).discard(uid_of(pod))
            job = self._jobs.get(f"{namespace_of(pod)}/{owner['name']}")
            if job is None or uid_of(job) != owner["uid"] or is_finished_job(job):
                self._wake_for_pod(pod)
            else:
                self._queue.add_later(key_of(job), _BATCH_SECONDS)
        if new is not None and controller_of(new) is None:
            self._wake_for_pod(new)

    def _wake_for_pod(self, pod: Object) -> None:
        if is_tracked(pod):
            self._queue.add(_POD_KEY + key_of(pod))

    async def _reconcile(self, key: str) -> float | None:
        if key.startswith(_POD_KEY):
            await self._let_go(key.removeprefix(_POD_KEY))
            return None
        job = self._jobs.get(key)
        if job is None or job["spec"].get("managedBy") not in _OURSELVES:
            return None
        if job["metadata"]["resourceVersion"] in self._replaced.get(uid_of(job), ()):
            return None  # the mirror is about to show what we have written
        self._replaced.pop(uid_of(job), None)
        if is_finished_job(job):
            return await self._outlive(job)
        return await self._sync(job)

    async def _let_go(self, key: str) -> None:
        """Take the finalizer from a pod whose Job is gone or finished, once the server confirms that."""
        pod = self._all_pods.get(key)
        if pod is None or not is_tracked(pod):
            return
        owner = controller_of(pod)
        if owner is not None:
            with contextlib.suppress(NotFound):
                job = await self._client.get(JOBS.path(namespace_of(pod), owner["name"]))
                if uid_of(job) == owner["uid"] and not is_finished_job(job):
                    return
        await self._release(pod)

    async def _outlive(self, job: Object) -> float | None:
        for pod in self._pods.of(uid_of(job)):
            self._wake_for_pod(pod)
        self._failures.pop(uid_of(job), None)
        lifetime, end = job["spec"].get("ttlSecondsAfterFinished"), finished_condition(job)
        finished = parse_time(end["lastTransitionTime"]) if end else None
        if lifetime is None or finished is None or is_terminating(job):
            return None
        rest = (finished + timedelta(seconds=lifetime) - self._clock.now()).total_seconds()
        if rest > 0:
            return rest
        with contextlib.suppress(NotFound, Conflict):
            path = JOBS.path(namespace_of(job), name_of(job))
            await self._client.delete(path, uid=uid_of(job), propagation="Foreground")
        return None

    async def _sync(self, job: Object) -> float | None:
        uid, now = uid_of(job), self._clock.now()
        pods = self._pods.of(uid)
        is_settled = self._expectations.settle(uid, pods)
        view = JobView(job, pods, frozenset(self._released.get(uid, ())), self._failures.get(uid, Failures()))
        plan = decide(view, now, settled=is_settled)
        gone, problem = await self._delete(view, plan)
        made = 0
        if problem is None and plan.create:
            made, problem = await self._create(job, plan)
        for reason, message in plan.events:
            await self._events.record(_about(job), reason, message)
        end = plan.end if len(gone) == len(plan.delete) else None
        left = [pod for pod in plan.active if uid_of(pod) not in gone]
        status = started(
            view,
            plan,
            now,
            active=len(left) + made,
            ready=ready_count(left),
            terminating=plan.terminating + len(gone),
        )
        await self._finish(view, plan, end, status)
        if problem is not None:
            raise AlreadyReported(answer_of(problem).message) from problem
        waits = (plan.again, None if is_settled else _EXPECTATION_CHECK_SECONDS)
        return min((wait for wait in waits if wait is not None), default=None)

    async def _finish(self, view: JobView, plan: Decision, end: Object | None, status: Object) -> None:
        """Count the pods that have ended, release them, and announce the end."""
        uid, now = uid_of(view.job), self._clock.now()
        status, release = counted(view, end, status)
        job = await self._write(view.job, status)
        self._failures[uid] = plan.failures
        problems = await asyncio.gather(*(self._release(pod) for pod in release), return_exceptions=True)
        freed = {uid_of(pod) for pod, problem in zip(release, problems, strict=True) if problem is None}
        held = {uid_of(pod) for pod in view.pods if view.holds(pod)} - freed
        status = ended(settled(status, held), None if held else end, now)
        job = await self._write(job, status)
        for problem in problems:
            if isinstance(problem, BaseException):
                raise problem
        for kind, reason, message in announcements(job):
            await self._events.record(_about(job), reason, message, type=kind)

    async def _write(self, job: Object, status: Object) -> Object:
        if job.get("status") == status:
            return job
        body = {**job, "apiVersion": JOBS.api_version, "kind": JOBS.kind, "status": status}
        path = JOBS.path(namespace_of(job), name_of(job), "status")
        written = await self._client.update(path, body)
        self._replaced.setdefault(uid_of(job), set()).add(job["metadata"]["resourceVersion"])
        return written

    async def _release(self, pod: Object) -> None:
        owner = controller_of(pod)
        if owner is not None:
            self._released.setdefault(owner["uid"], set()).add(uid_of(pod))
        patch = {"metadata": {"uid": uid_of(pod), "$deleteFromPrimitiveList/finalizers": [TRACKING]}}
        try:
            await self._client.patch(PODS.path(namespace_of(pod), name_of(pod)), patch, kind="strategic")
        except (NotFound, Conflict):
            pass
        except GridError:
            if owner is not None:
                self._released[owner["uid"]].discard(uid_of(pod))
            raise

    async def _delete(self, view: JobView, plan: Decision) -> tuple[set[str], GridError | None]:
        """Delete the pods of the plan; return those that go, and the first refusal."""
        job, release_first = view.job, plan.release_first
        problems = await asyncio.gather(*(self._delete_one(job, pod, release_first) for pod in plan.delete))
        gone = {uid_of(pod) for pod, problem in zip(plan.delete, problems, strict=True) if problem is None}
        return gone, next((problem for problem in problems if problem is not None), None)

    async def _delete_one(self, job: Object, pod: Object, release_first: bool) -> GridError | None:
        try:
            if release_first and is_tracked(pod):
                await self._release(pod)
            await self._client.delete(PODS.path(namespace_of(pod), name_of(pod)), uid=uid_of(pod))
        except (NotFound, Conflict):
            return None
        except GridError as error:
            message = f"Error deleting: {answer_of(error).message}"
            await self._events.record(_about(job), "FailedDelete", message, type="Warning")
            return error
        self._expectations.deleted(uid_of(job), uid_of(pod))
        await self._events.record(_about(job), "SuccessfulDelete", f"Deleted pod: {name_of(pod)}")
        return None

    async def _create(self, job: Object, plan: Decision) -> tuple[int, GridError | None]:
        """Create pods in batches that double, until one is refused; return how many there are now, and the refusal."""
        todo: Sequence[int | None] = plan.indexes or [None] * plan.create
        made, batch = 0, 1
        while todo:
            problems = await asyncio.gather(*(self._create_one(job, index) for index in todo[:batch]))
            refused = [problem for problem in problems if problem is not None]
            made += len(problems) - len(refused)
            if refused:
                return made, refused[0]
            todo, batch = todo[batch:], batch * 2
        return made, None

    async def _create_one(self, job: Object, index: int | None) -> GridError | None:
        pod = make_pod(job, index)
        owner = {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "name": name_of(job), "uid": uid_of(job)}
        pod["metadata"]["ownerReferences"] = [{**owner, "controller": True, "blockOwnerDeletion": True}]
        try:
            created = await self._client.create(PODS.path(namespace_of(job)), pod)
        except GridError as error:
            if not namespace_is_ending(error):
                message = f"Error creating: {answer_of(error).message}"
                await self._events.record(_about(job), "FailedCreate", message, type="Warning")
            return error
        self._expectations.created(uid_of(job), uid_of(created))
        await self._events.record(_about(job), "SuccessfulCreate", f"Created pod: {name_of(created)}")
        return None


def _about(job: Object) -> Object:
    return reference_to(job, kind=JOBS.kind, api_version=JOBS.api_version)
