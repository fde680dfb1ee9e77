"""The CronJob controller: starts a Job when its time has come, follows it, and deletes finished ones beyond the limits.

`cronrules` decides when. Each look reads the CronJob itself from the server, because its status says which times have been served.
"""

import contextlib
from datetime import UTC, datetime

from grid.core.errors import Conflict, GridError, NotFound
from grid.sandbox.client import (
    CRON_JOBS,
    JOBS,
    Object,
    answer_of,
    controller_of,
    format_time,
    is_terminating,
    key_of,
    name_of,
    namespace_of,
    reference_to,
    uid_of,
)
from grid.sandbox.controllers.controller import QueueController
from grid.sandbox.controllers.cronrules import Timetable, superfluous
from grid.sandbox.controllers.jobrules import finished_condition, is_finished_job
from grid.sandbox.controllers.owned import PodsByOwner, namespace_is_ending
from grid.sandbox.controllers.workoff import AlreadyReported

_TOO_MANY_MISSED = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
_STILL_ACTIVE = "Not starting job because prior execution is running and concurrency policy is Forbid"


class CronJobController(QueueController):
    """The controller that starts Jobs on schedule."""

    component = "cronjob-controller"
    name = "cronjob"

    def _begin(self) -> None:
        self._cron_jobs = self._mirrors.of(CRON_JOBS)
        self._jobs = PodsByOwner()  # it indexes objects of any kind
        self._cron_jobs.subscribe(self._cron_job_changed)
        self._mirrors.of(JOBS).subscribe(self._job_changed)

    def _cron_job_changed(self, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self._queue.add(key_of(new))

    def _job_changed(self, old: Object | None, new: Object | None) -> None:
        self._jobs.changed(old, new)
        owner = controller_of(new or old or {})
        if owner is not None and owner.get("kind") == CRON_JOBS.kind:
            self._queue.add(f"{namespace_of(new or old or {})}/{owner['name']}")

    async def _reconcile(self, key: str) -> float | None:
        if self._cron_jobs.get(key) is None:
            return None
        namespace, _, name = key.partition("/")
        try:
            cron_job = await self._client.get(CRON_JOBS.path(namespace, name))
        except NotFound:
            return None
        before = dict(cron_job.get("status") or {})
        cron_job["status"] = dict(before)
        jobs = self._jobs.of(uid_of(cron_job))
        await self._follow(cron_job, jobs)
        again = None
        try:
            if not is_terminating(cron_job):
                again = await self._start(cron_job)
                for job in superfluous(cron_job, jobs):
                    await self._delete(cron_job, job)
        finally:
            if cron_job["status"] != before:
                await self._client.update(CRON_JOBS.path(namespace, name, "status"), cron_job)
        return again

    async def _follow(self, cron_job: Object, jobs: list[Object]) -> None:
        """Take Jobs that have finished, or are gone, from the active ones, and note the latest success."""
        status = cron_job["status"]
        active = {item["uid"]: item for item in status.get("active") or ()}
        for job in jobs:
            end = finished_condition(job)
            if end is None:
                if uid_of(job) not in active and not is_terminating(job):
                    message = f"Saw a job that the controller did not create or forgot: {name_of(job)}"
                    await self._events.record(_about(cron_job), "UnexpectedJob", message, type="Warning")
                continue
            if active.pop(uid_of(job), None) is not None:
                message = f"Saw completed job: {name_of(job)}, condition: {end['type']}"
                await self._events.record(_about(cron_job), "SawCompletedJob", message)
            completed = job["status"].get("completionTime") if end["type"] == "Complete" else None
            if completed and completed > status.get("lastSuccessfulTime", ""):
                status["lastSuccessfulTime"] = completed
        known = {uid_of(job) for job in jobs}
        for uid, item in list(active.items()):
            if uid not in known and not await self._exists(item):
                del active[uid]
                message = f"Active job went missing: {item['name']}"
                await self._events.record(_about(cron_job), "MissingJob", message)
        _set_active(status, list(active.values()))

    async def _exists(self, item: Object) -> bool:
        with contextlib.suppress(NotFound):
            return uid_of(await self._client.get(JOBS.path(item["namespace"], item["name"]))) == str(item["uid"])
        return False

    async def _start(self, cron_job: Object) -> float | None:
        """Start the Job whose time has come; return the seconds until the next."""
        spec, status, now = cron_job["spec"], cron_job["status"], self._clock.now()
        if spec.get("suspend"):
            return None
        timetable = Timetable(cron_job)
        again = timetable.seconds_until_next(now)
        scheduled, many = timetable.due(now)
        if many:
            await self._events.record(_about(cron_job), "TooManyMissedTimes", _TOO_MANY_MISSED, type="Warning")
        if scheduled is None or status.get("lastScheduleTime") == format_time(scheduled):
            return again
        if timetable.is_too_late(scheduled, now):
            message = f"Missed scheduled time to start a job: {_long_time(scheduled)}"
            await self._events.record(_about(cron_job), "MissSchedule", message, type="Warning")
            return again
        active = status.get("active") or []
        if spec["concurrencyPolicy"] == "Forbid" and active:
            await self._events.record(_about(cron_job), "JobAlreadyActive", _STILL_ACTIVE)
            return again
        if spec["concurrencyPolicy"] == "Replace":
            for item in active:
                metadata = {"name": item["name"], "namespace": item["namespace"], "uid": item["uid"]}
                await self._delete(cron_job, {"metadata": metadata})
        job = await self._create(cron_job, timetable.make_job(scheduled))
        if job is not None:
            if not is_finished_job(job):
                _set_active(status, [*(status.get("active") or ()), _about_job(job)])
            status["lastScheduleTime"] = format_time(scheduled)
        return Timetable(cron_job).seconds_until_next(now)

    async def _create(self, cron_job: Object, job: Object) -> Object | None:
        """Create a Job, or return the one that an earlier look has created; None when it is somebody else's."""
        owner: Object = {"apiVersion": CRON_JOBS.api_version, "kind": CRON_JOBS.kind, "name": name_of(cron_job)}
        owner |= {"uid": uid_of(cron_job), "controller": True, "blockOwnerDeletion": True}
        job["metadata"]["ownerReferences"] = [owner]
        path = JOBS.path(namespace_of(cron_job))
        try:
            created = await self._client.create(path, job)
        except Conflict:
            found = await self._client.get(JOBS.path(namespace_of(cron_job), name_of(job)))
            return found if (controller_of(found) or {}).get("uid") == uid_of(cron_job) else None
        except GridError as error:
            if not namespace_is_ending(error):
                message = f"Error creating job: {answer_of(error).message}"
                await self._events.record(_about(cron_job), "FailedCreate", message, type="Warning")
            raise AlreadyReported(answer_of(error).message) from error
        await self._events.record(_about(cron_job), "SuccessfulCreate", f"Created job {name_of(created)}")
        return created

    async def _delete(self, cron_job: Object, job: Object) -> None:
        path = JOBS.path(namespace_of(job), name_of(job))
        with contextlib.suppress(NotFound, Conflict):
            await self._client.delete(path, uid=uid_of(job), propagation="Background")
        active = [item for item in cron_job["status"].get("active") or () if item["uid"] != uid_of(job)]
        _set_active(cron_job["status"], active)
        await self._events.record(_about(cron_job), "SuccessfulDelete", f"Deleted job {name_of(job)}")


def _set_active(status: Object, active: list[Object]) -> None:
    status.pop("active", None)
    if active:
        status["active"] = active


def _about_job(job: Object) -> Object:
    return reference_to(job, kind=JOBS.kind, api_version=JOBS.api_version)


def _about(cron_job: Object) -> Object:
    return reference_to(cron_job, kind=CRON_JOBS.kind, api_version=CRON_JOBS.api_version)


def _long_time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%a, %d %b %Y %H:%M:%S UTC")
