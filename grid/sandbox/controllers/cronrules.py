"""When a CronJob starts Jobs, under which names, and which finished ones it keeps. All pure."""

import copy
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from grid.core.cron import CronSchedule, find_zone, parse_schedule
from grid.sandbox.client import Object, name_of, namespace_of, parse_time
from grid.sandbox.controllers.jobrules import finished_condition

SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_MANY_MISSED = 100
# A Job is looked for a moment after its time, so that clocks that differ a little do not make it early.
_MARGIN_SECONDS = 0.1


class Timetable:
    """The schedule of one CronJob."""

    def __init__(self, cron_job: Mapping[str, Any]) -> None:
        self._cron_job = cron_job
        self._spec = cron_job["spec"]
        self._schedule: CronSchedule = parse_schedule(self._spec["schedule"])
        self._zone: tzinfo = find_zone(self._spec["timeZone"]) if self._spec.get("timeZone") else UTC

    def due(self, now: datetime) -> tuple[datetime | None, bool]:
        """Return the latest time that has come and was not served, and whether more than a hundred were missed."""
        earliest = self._since()
        deadline = self._spec.get("startingDeadlineSeconds")
        if deadline is not None:
            earliest = max(earliest, now - timedelta(seconds=deadline))
        latest, missed = self._latest(earliest, now)
        return latest, missed > _MANY_MISSED

    def seconds_until_next(self, now: datetime) -> float | None:
        """Return the seconds until the next look, or None when the schedule never comes again."""
        latest, missed = self._latest(self._since(), now)
        following = self._next(latest or (now if missed else self._since()))
        return None if following is None else (following - now).total_seconds() + _MARGIN_SECONDS

    def is_too_late(self, scheduled: datetime, now: datetime) -> bool:
        deadline = self._spec.get("startingDeadlineSeconds")
        return deadline is not None and scheduled + timedelta(seconds=deadline) < now

    def make_job(self, scheduled: datetime) -> Object:
        """Return the Job of one time, without its owner."""
        template = copy.deepcopy(self._spec["jobTemplate"])
        given = template.get("metadata") or {}
        zone = self._zone if self._spec.get("timeZone") else UTC
        stamp = scheduled.astimezone(zone).isoformat().replace("+00:00", "Z")
        metadata: Object = {
            "name": job_name(self._cron_job, scheduled),
            "namespace": namespace_of(self._cron_job),
            "annotations": {**(given.get("annotations") or {}), SCHEDULED_AT: stamp},
        }
        if given.get("labels"):
            metadata["labels"] = given["labels"]
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": template["spec"]}

    def _since(self) -> datetime:
        last = (self._cron_job.get("status") or {}).get("lastScheduleTime")
        since = parse_time(last or self._cron_job["metadata"]["creationTimestamp"])
        assert since is not None
        return since

    def _next(self, after: datetime) -> datetime | None:
        return self._schedule.next(after, self._zone)

    def _latest(self, earliest: datetime, now: datetime) -> tuple[datetime | None, int]:
        """Return the latest time in between, and about how many there were."""
        first = self._next(earliest)
        if first is None or first > now:
            return None, 0
        second = self._next(first)
        if second is None or second > now:
            return first, 1
        between = second - first
        missed = int((now - first) / between) + 1
        latest, following = None, self._next(first + (missed - 2) * between)
        while following is not None and following <= now:
            latest, following = following, self._next(following)
        return latest, missed


def job_name(cron_job: Mapping[str, Any], scheduled: datetime) -> str:
    return f"{name_of(cron_job)}-{int(scheduled.timestamp()) // 60}"


def superfluous(cron_job: Mapping[str, Any], jobs: Iterable[Object]) -> list[Object]:
    """Return the finished Jobs beyond the CronJob's limits, oldest first."""
    spec, ends = cron_job["spec"], [(job, finished_condition(job)) for job in jobs]
    chosen: list[Object] = []
    for kind, limit in (("Complete", "successfulJobsHistoryLimit"), ("Failed", "failedJobsHistoryLimit")):
        finished = [job for job, end in ends if end is not None and end["type"] == kind]
        if spec.get(limit) is not None:
            chosen += _oldest(finished, len(finished) - spec[limit])
    return chosen


def _oldest(jobs: Sequence[Object], count: int) -> list[Object]:
    ordered = sorted(jobs, key=lambda job: (job["status"].get("startTime", ""), name_of(job)))
    return ordered[: max(0, count)]
