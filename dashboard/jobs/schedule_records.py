"""Reads schedules from the database, synchronously, as values for pages."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from zoneinfo import ZoneInfo

from django.db.models import Count, Min

from dashboard.jobs.viewmodels.schedules import ScheduleLine, local_time, schedule_times
from grid.announcements.rules import reason_of
from grid.announcements.store import current_maintenance
from grid.configuration import SCHEDULED_RUNS_PER_MINUTE, value_of
from grid.core.cron import find_zone
from grid.core.translation import gettext as _
from grid.jobs.lateness import LateReason, late_words
from grid.jobs.scheduler import LATE, MINUTE
from grid.models import Job, Schedule
from grid.queue.gate import words_of


def schedules_of(job_id: str, now: datetime) -> list[ScheduleLine]:
    """Return a job's schedules in the order in which they were made; there are few."""
    return [_line(schedule, now) for schedule in Schedule.objects.filter(job=job_id).select_related("job__owner")]


def read_schedule(job_id: str, schedule_id: int, now: datetime) -> ScheduleLine | None:
    schedule = Schedule.objects.filter(job=job_id, pk=schedule_id).select_related("job__owner").first()
    return _line(schedule, now) if schedule else None


def next_runs(job_ids: Iterable[str]) -> Mapping[str, tuple[datetime | None, int]]:
    """Return when each of these jobs that has schedules runs next, None when all are paused, and how many are paused."""
    rows = Schedule.objects.filter(job__in=list(job_ids)).order_by()
    counted = rows.values_list("job_id").annotate(Min("next_at"), Count("paused_at"))
    return {job_id: (next_at, paused) for job_id, next_at, paused in counted}


def _line(schedule: Schedule, now: datetime) -> ScheduleLine:
    try:
        zone = find_zone(schedule.time_zone)
    except ValueError:  # this system does not know it any more
        zone = ZoneInfo("UTC")
    by, why = schedule.paused_by, schedule.paused_why
    paused = _("Paused by {by}.", by=by) if by else _("Paused: {why}", why=why)
    return ScheduleLine(
        id=schedule.pk,
        cron=schedule.cron,
        time_zone=schedule.time_zone,
        overlap=schedule.overlap,
        missed=schedule.missed,
        next_at=schedule.next_at,
        paused=paused if schedule.paused_at else "",
        meaning=schedule_times(schedule.cron, schedule.time_zone, now),
        history=tuple((local_time(datetime.fromisoformat(at), zone), words) for at, words in schedule.history),
        waits=_why_it_waits(schedule, now),
    )


def _why_it_waits(schedule: Schedule, now: datetime) -> str:
    """Return why a schedule does not run although it is due; "" when it is not due, or for a moment only."""
    if schedule.next_at is None or schedule.next_at > now:
        return ""
    maintenance = current_maintenance(now) if schedule.missed == Schedule.Missed.ONCE else None
    if maintenance is not None:
        return words_of(reason_of(maintenance))
    return _why_it_is_late(schedule, now) if now - schedule.next_at >= LATE else ""


def _why_it_is_late(schedule: Schedule, now: datetime) -> str:
    job = schedule.job
    due = Schedule.objects.filter(next_at__lte=now).order_by()
    of_all, of_owner = due.count(), due.filter(job__owner=job.owner_id).count()
    most = value_of(SCHEDULED_RUNS_PER_MINUTE)
    launched = Job.objects.filter(owner=job.owner_id, deleted_at=None, launched_at__gt=now - MINUTE)
    is_at_limit = launched.filter(schedules__last_at__isnull=False).distinct().count() >= most
    reason = LateReason(of_owner - 1, of_all - of_owner, most if is_at_limit else 0)
    why = late_words(reason, job.owner.get_username()) or _("The controller has not looked at it yet.")
    return _("It is late. {why} It runs by itself when its turn comes.", why=why)
