"""Creates, edits, pauses, resumes and deletes the schedules of jobs, each in a transaction that locks the job; `scheduler` runs them."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from grid.configuration import SCHEDULES_PER_PERSON, SCHEDULES_PER_PROJECT, value_of
from grid.core.errors import Problem, Rejected
from grid.core.reasons import Reader, Reason, sentence_of
from grid.core.translation import gettext as _
from grid.executions.request import validate
from grid.jobs.jobrows import record_of
from grid.jobs.jobruns import end_run, launch_request
from grid.jobs.jobs import locked
from grid.jobs.runsteps import EndStep
from grid.jobs.schedulehistory import noted
from grid.jobs.scheduletimes import CronTimetable, read_timetable
from grid.models import Execution, Job, JobRun, Schedule
from grid.notifications import outbox
from grid.projects.departures import has_access

MAXIMUM_SCHEDULES = 10  # of a job
GONE = "gone"
# The project and the account let the owner launch.
MAY_RUN = Q(job__project__is_archived=False) & has_access("job__")


class ScheduleSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What its owner typed."""

    cron: str
    time_zone: str = "UTC"
    overlap: str = Schedule.Overlap.SKIP
    missed: str = Schedule.Missed.ONCE


def timetable_of(schedule: Schedule, now: datetime) -> CronTimetable:
    """Return the times of a stored schedule. Raise Rejected when it can no longer be read, or is never due again."""
    return read_timetable(schedule.cron, schedule.time_zone, now)


def create(job_id: str, settings: ScheduleSettings, *, now: datetime) -> Schedule:
    """Store a schedule; it is due for the first time after now. Raise Rejected with all problems."""
    with transaction.atomic():
        job = locked(job_id)
        if Schedule.objects.filter(job=job, cron=settings.cron.strip(), time_zone=settings.time_zone).exists():
            # Also what a form that is sent twice asks for.
            raise Rejected([Problem("cron", _("The job has a schedule with these times already."), "exists")])
        if Schedule.objects.filter(job=job).count() >= MAXIMUM_SCHEDULES:
            sentence = _("A job has at most {most} schedules. Edit or delete one of them.", most=MAXIMUM_SCHEDULES)
            raise Rejected([Problem("", sentence, "too_many")])
        if problems := list(_too_many(job)):
            raise Rejected(problems)
        schedule = Schedule(job=job, created_at=now)
        _set(schedule, settings, now)
        _start(schedule, job, now)
    return schedule


def edit(schedule_id: int, settings: ScheduleSettings, *, now: datetime) -> Schedule:
    """Change a schedule; a paused one stays paused. Raise Rejected with all problems."""
    with transaction.atomic():
        schedule, job = lock_schedule(schedule_id)
        _set(schedule, settings, now)
        if schedule.paused_at is None:
            _start(schedule, job, now)
        else:
            schedule.save()
    return schedule


def pause(schedule_id: int, *, by: str, now: datetime) -> None:
    """Ask for no more runs; those that were asked for go on."""
    with transaction.atomic():
        schedule, _ = lock_schedule(schedule_id)
        if schedule.paused_at is None:
            write_pause(schedule, now, {"by": by})


def resume(schedule_id: int, *, by: str, now: datetime) -> None:
    """Go on from now; what was due meanwhile is not made up for. Raise Rejected when its job could not be launched."""
    with transaction.atomic():
        schedule, job = lock_schedule(schedule_id)
        if schedule.paused_at is None:
            return
        schedule.history = noted(schedule.history, now, Reason("ScheduleResumed", {"by": by}))
        schedule.paused_at, schedule.set_at = None, now
        _start(schedule, job, now)


def delete(schedule_id: int, *, by: str, now: datetime) -> None:
    """Delete a schedule. Its runs that wait for an earlier one end; deleting it twice changes nothing."""
    with transaction.atomic():
        try:
            schedule, job = lock_schedule(schedule_id)
        except Rejected:
            return
        has_attempt = Exists(Execution.objects.filter(run=OuterRef("pk")))
        for run in JobRun.objects.filter(~has_attempt, job=job, schedule=schedule, outcome=""):
            end_run(run, EndStep(JobRun.Outcome.STOPPED, "schedule_deleted", {"by": by}), now, by=by)
        schedule.delete()


def lock_schedule(schedule_id: int) -> tuple[Schedule, Job]:
    """Return a schedule and its job, which is locked until the transaction ends. Raise Rejected when either is gone."""
    job_id = Schedule.objects.filter(pk=schedule_id).values_list("job_id", flat=True).first()
    job = locked(job_id) if job_id is not None else None
    # Read again: whoever had the lock may have changed it.
    if job is not None and (schedule := Schedule.objects.filter(pk=schedule_id).first()) is not None:
        return schedule, job
    raise Rejected([Problem("", _("This schedule was deleted."), GONE)])


def may_not_run() -> QuerySet[Schedule]:
    """Return the schedules that go on although their owner may not launch in their project."""
    return Schedule.objects.filter(next_at__isnull=False).exclude(MAY_RUN).order_by("next_at", "pk")  # as its index is


def write_pause(schedule: Schedule, now: datetime, why: Mapping[str, Any]) -> None:
    """Pause a schedule: `by` somebody, or for a stored `cause`, of which the latest entry of its history then tells."""
    schedule.paused_at, schedule.next_at = now, None
    schedule.history = noted(schedule.history, now, reason := Reason("SchedulePaused", why))
    schedule.save()
    owner = schedule.job.owner.get_username()
    if why.get("by") != owner:
        outbox.tell_of_pause(schedule.job, sentence_of(reason, Reader(owner, is_owner=True)), now=now)


def _set(schedule: Schedule, settings: ScheduleSettings, now: datetime) -> None:
    problems = list[Problem]()
    try:
        read_timetable(settings.cron, settings.time_zone, now)
    except Rejected as refused:
        problems += refused.problems
    if settings.overlap not in Schedule.Overlap.values:
        wrong = _("Choose whether it is skipped, queued or replaces the run.")
        problems.append(Problem("overlap", wrong, "overlap"))
    if settings.missed not in Schedule.Missed.values:
        problems.append(Problem("missed", _("Choose whether it is run once or not at all."), "missed"))
    if problems:
        raise Rejected(problems)
    schedule.cron, schedule.time_zone = settings.cron.strip(), settings.time_zone
    schedule.overlap, schedule.missed, schedule.set_at = settings.overlap, settings.missed, now


def _start(schedule: Schedule, job: Job, now: datetime) -> None:
    """Save a schedule that is due after now."""
    if problems := validate(launch_request(job, record_of(job))):
        # At the schedule as a whole: its own fields are not the job's.
        raise Rejected([Problem("", problem.message, problem.code) for problem in problems])
    schedule.next_at = timetable_of(schedule, now).next(now)
    schedule.save()


def _too_many(job: Job) -> Iterator[Problem]:
    of_owner = Schedule.objects.filter(job__owner=job.owner_id).count()
    if of_owner >= (most := value_of(SCHEDULES_PER_PERSON)):
        sentence = _(
            "{owner} has {count:,} schedules, and one person may have {most:,}. Delete those that are no longer needed, or ask an admin "
            "for more."
        )
        yield Problem("", sentence.format(owner=job.owner.get_username(), count=of_owner, most=most), "too_many")
    of_project = Schedule.objects.filter(job__project=job.project_id).count()
    if of_project >= (most := value_of(SCHEDULES_PER_PROJECT)):
        sentence = _(
            "The project {name} has {count:,} schedules, and one project may have {most:,}. Delete those that are no longer needed, or "
            "ask an admin for more."
        )
        yield Problem("", sentence.format(name=job.project.name, count=of_project, most=most), "too_many")
