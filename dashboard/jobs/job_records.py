"""Reads jobs, their runs and schedules from the database, synchronously, as values for pages.

The cost depends on the rows shown, and on how many runs the sweeps among them have, at most 1,000 each.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TypeVar
from zoneinfo import ZoneInfo

from django.db.models import Count, Exists, Min, Model, OuterRef, Q, QuerySet, Sum

from dashboard.jobs.run_records import last_values, ranked_runs
from dashboard.jobs.viewmodels import jobs
from dashboard.usage.viewmodels.usage import Spending
from grid.announcements.maintenance import current_maintenance, reason_of
from grid.configuration import SCHEDULED_RUNS_PER_MINUTE, value_of
from grid.core.cron import find_zone
from grid.core.errors import Rejected
from grid.core.reasons import Reader
from grid.core.translation import gettext as _
from grid.core.wording import money
from grid.jobs.jobsettings import RunRecord, read_record, settings_of
from grid.jobs.schedulehistory import LateReason, entry_words, late_words
from grid.jobs.scheduler import LATE, MINUTE
from grid.models import Execution, Job, JobRun, Membership, RunSettings, Schedule, UsageInterval
from grid.queue.gate import words_of


def schedules_of(job_id: str, now: datetime) -> list[jobs.ScheduleLine]:
    """Return a job's schedules in the order in which they were made; there are few."""
    return [_line(schedule, now) for schedule in Schedule.objects.filter(job=job_id).select_related("job__owner")]


def read_schedule(job_id: str, schedule_id: int, now: datetime) -> jobs.ScheduleLine | None:
    schedule = Schedule.objects.filter(job=job_id, pk=schedule_id).select_related("job__owner").first()
    return _line(schedule, now) if schedule else None


def next_runs(job_ids: Iterable[str]) -> Mapping[str, tuple[datetime | None, int]]:
    """Return when each of these jobs that has schedules runs next, None when all are paused, and how many are paused."""
    rows = Schedule.objects.filter(job__in=list(job_ids)).order_by()
    counted = rows.values_list("job_id").annotate(Min("next_at"), Count("paused_at"))
    return {job_id: (next_at, paused) for job_id, next_at, paused in counted}


def _line(schedule: Schedule, now: datetime) -> jobs.ScheduleLine:
    try:
        zone = find_zone(schedule.time_zone)
    except ValueError:  # this system does not know it any more
        zone = ZoneInfo("UTC")
    history = [entry_words(entry) for entry in schedule.history]
    return jobs.ScheduleLine(
        id=schedule.pk,
        cron=schedule.cron,
        time_zone=schedule.time_zone,
        overlap=schedule.overlap,
        missed=schedule.missed,
        next_at=schedule.next_at,
        paused=history[0][1] if schedule.paused_at else "",  # nothing else happens to it meanwhile
        meaning=jobs.schedule_times(schedule.cron, schedule.time_zone, now),
        history=tuple((jobs.local_time(at, zone), words) for at, words in history),
        waits=_why_it_waits(schedule, now),
    )


def _why_it_waits(schedule: Schedule, now: datetime) -> str:
    """Return why a schedule does not run although it is due; "" when it is not due, or for a moment only."""
    if schedule.next_at is None or schedule.next_at > now:
        return ""
    maintenance = current_maintenance(now) if schedule.missed == Schedule.Missed.ONCE else None
    if maintenance is not None:
        return words_of(reason_of(maintenance))
    if now - schedule.next_at < LATE:
        return ""
    job = schedule.job
    due = Schedule.objects.filter(next_at__lte=now).order_by()
    of_all, of_owner = due.count(), due.filter(job__owner=job.owner_id).count()
    most = value_of(SCHEDULED_RUNS_PER_MINUTE)
    launched = Job.objects.filter(owner=job.owner_id, deleted_at=None, launched_at__gt=now - MINUTE)
    is_at_limit = launched.filter(schedules__last_at__isnull=False).distinct().count() >= most
    reason = LateReason(of_owner - 1, of_all - of_owner, most if is_at_limit else 0)
    why = late_words(reason.values(job.owner.get_username())) or _("The controller has not looked at it yet.")
    return _("It is late. {why} It runs by itself when its turn comes.", why=why)


JOBS_PER_PAGE = 24
RUNS_PER_PAGE = 50
_Row = TypeVar("_Row", bound=Model)
_UNREADABLE = RunRecord(title="", environment="", environment_name="unknown", tier="", tier_name="unknown")


@dataclass(frozen=True, slots=True)
class JobsPage:
    """A page of jobs; `older` is the `before` of the next page, "" when there is none."""

    cards: Sequence[jobs.JobCard]
    older: str = ""


@dataclass(frozen=True, slots=True)
class RunsPage:
    """A page of a job's runs, newest first, in which a sweep is one line; `older` is the `before` of the next page, 0 without one."""

    lines: Sequence[jobs.RunLine | jobs.SweepLine]
    older: int = 0
    metrics: Sequence[str] = ()  # names of what the runs of the page have measured


def read_job(job_id: str) -> jobs.JobRecord | None:
    """Return the job; None when it is deleted or unknown."""
    job = _present().filter(pk=job_id).first()
    if job is None:
        return None
    roles = dict(Membership.objects.filter(project=job.project_id).values_list("user_id", "role"))
    return _record(job, roles, JobRun.objects.filter(job=job, outcome="").count())


def jobs_of(owner_id: int, before: str, now: datetime) -> JobsPage:
    """Return the page of a user's jobs that follows the one with the id `before`; the last launched first."""
    rows = _present().filter(owner=owner_id)
    last = Job.objects.filter(pk=before, owner=owner_id).first() if before else None
    if last is not None:
        rows = rows.filter(launched_at__lte=last.launched_at).exclude(launched_at=last.launched_at, pk__gte=last.pk)
    shown, is_last = _page(rows, JOBS_PER_PAGE)
    latest = JobRun.objects.filter(Q(*(Q(job=job, number=job.runs_made) for job in shown), _connector=Q.OR))
    runs = {run.job_id: run for run in latest} if shown else {}
    by_job = _lines(runs.values(), now, owner_id, with_metrics=False)
    coming = next_runs(job.pk for job in shown)
    sweeps = _sweeps((run.job_id, run.sweep) for run in runs.values() if run.sweep)
    cards = []
    for job in shown:
        run = runs.get(job.pk)
        sweep = sweeps.get((job.pk, run.sweep)) if run else None
        next_at, paused = coming.get(job.pk, (None, 0))
        cards.append(jobs.JobCard(_record(job, {}, 0), by_job.get(run.pk) if run else None, sweep, next_at, paused))
    return JobsPage(cards, "" if is_last else shown[-1].pk)


def latest_runs_of(project_id: str, most: int, now: datetime, reader_id: int) -> list[jobs.ProjectRun]:
    """Return the latest runs of all jobs of a project, newest first, in which a sweep is one line. Of each job the last `most` runs are
    read, so a run before a longer sweep of its job is left out."""
    known = {job.pk: job for job in _present().filter(project=project_id)[:most]}
    if not known:
        return []
    latest = (Q(job=job, number__gt=job.runs_made - most) for job in known.values())
    lines: dict[tuple[str, str | int], JobRun] = {}
    for run in JobRun.objects.filter(Q(*latest, _connector=Q.OR)).order_by("-requested_at", "-pk"):
        lines.setdefault((run.job_id, run.sweep or run.pk), run)
    shown = list(lines.values())[:most]
    sweeps = _sweeps((run.job_id, run.sweep) for run in shown if run.sweep)
    runs = _lines((run for run in shown if not run.sweep), now, reader_id, with_metrics=False)
    return [
        jobs.ProjectRun(
            job_id=run.job_id,
            job_name=str(known[run.job_id]),
            owner_username=known[run.job_id].owner.get_username(),
            line=sweeps[run.job_id, run.sweep] if run.sweep else runs[run.pk],
        )
        for run in shown
    ]


def _page(rows: QuerySet[_Row], length: int) -> tuple[list[_Row], bool]:
    first = list(rows[: length + 1])
    return first[:length], len(first) <= length


def ranked_runs_of(
    job_id: str, sweep: str, metric: str, order: str, *, start: int, reader_id: int, now: datetime
) -> RunsPage:
    """Return a page of a sweep's runs by the last value of a metric, from the place `start` on, which is also how `older` counts."""
    numbers = ranked_runs(job_id, sweep, metric, order)
    shown = numbers[start : start + RUNS_PER_PAGE]
    runs = _lines(JobRun.objects.filter(job=job_id, number__in=shown), now, reader_id)
    lines = sorted(runs.values(), key=lambda line: shown.index(line.number))
    end = start + RUNS_PER_PAGE
    return RunsPage(lines, end if end < len(numbers) else 0, _measured(lines))


def _measured(lines: Iterable[jobs.RunLine | jobs.SweepLine]) -> list[str]:
    return list(dict.fromkeys(name for line in lines if isinstance(line, jobs.RunLine) for name in line.metrics))


def runs_of(job_id: str, *, sweep: str, before: int, now: datetime, reader_id: int = 0) -> RunsPage:
    """Return a page of a job's runs, or of one sweep's, that follows the run with the number `before`."""
    rows = JobRun.objects.filter(job=job_id).order_by("-number")
    if before:
        rows = rows.filter(number__lt=before)
    # Of a sweep, the first run that is left stands for it.
    earlier = JobRun.objects.filter(job=OuterRef("job"), sweep=OuterRef("sweep"), number__lt=OuterRef("number"))
    rows = rows.filter(sweep=sweep) if sweep else rows.exclude(~Q(sweep="") & Exists(earlier.order_by()))
    shown, is_last = _page(rows, RUNS_PER_PAGE)
    sweeps = {} if sweep else _sweeps((job_id, run.sweep) for run in shown if run.sweep)
    runs = _lines((run for run in shown if (job_id, run.sweep) not in sweeps), now, reader_id)
    lines = [sweeps.get((job_id, run.sweep)) or runs[run.pk] for run in shown]
    return RunsPage(lines, 0 if is_last else shown[-1].number, _measured(lines))


def read_run(job_id: str, number: int, now: datetime, *, reader_id: int = 0) -> jobs.RunLine | None:
    """Return one run with all its attempts, whose causes are worded for a user."""
    run = JobRun.objects.select_related("after__job").filter(job=job_id, number=number).first()
    return _lines([run], now, reader_id, all_attempts=True)[run.pk] if run else None


def read_sweep(job_id: str, sweep: str) -> jobs.SweepLine | None:
    return _sweeps([(job_id, sweep)]).get((job_id, sweep))


def _present() -> QuerySet[Job]:
    rows = Job.objects.filter(deleted_at__isnull=True).select_related("owner", "project", "environment", "tier")
    return rows.order_by("-launched_at", "-pk")


def _record(job: Job, roles: Mapping[int, str], open_runs: int) -> jobs.JobRecord:
    return jobs.JobRecord(
        id=job.pk,
        name=str(job),
        owner_id=job.owner_id,
        owner_username=job.owner.get_username(),
        project_id=job.project_id,
        project_name=job.project.name,
        project_roles=roles,
        environment_name=job.environment.name,
        tier_name=job.tier.name,
        settings=settings_of(job),
        has_cluster=job.cluster is not None,
        open_runs=open_runs,
    )


def _sweeps(of: Iterable[tuple[str, str]]) -> dict[tuple[str, str], jobs.SweepLine]:
    """Return sweeps by the ids of their job and their own; one whose runs were deleted is not among them."""
    wanted = [Q(job=job_id, sweep=id) for job_id, id in sorted(set(of))]
    if not wanted:
        return {}
    rows = JobRun.objects.filter(Q(*wanted, _connector=Q.OR)).order_by()
    failed = Q(outcome__in=(JobRun.Outcome.FAILED, JobRun.Outcome.NOT_STARTED))
    counted = rows.values_list("job_id", "sweep", "requested_at", "requested_by").annotate(
        total=Count("pk"), ended=Count("pk", filter=~Q(outcome="")), failed=Count("pk", filter=failed)
    )
    return {
        (job_id, id): jobs.SweepLine(id, total, ended, failures, at, by)
        for job_id, id, at, by, total, ended, failures in counted
    }


def _lines(
    runs: Iterable[JobRun], now: datetime, reader_id: int, *, all_attempts: bool = False, with_metrics: bool = True
) -> dict[int, jobs.RunLine]:
    by_key = {run.pk: run for run in runs}
    attempts = _attempts(by_key, reader_id)
    costs = _costs(by_key, now)
    latest = {pk: lines[-1].execution_id for pk, lines in attempts.items()}
    measured = last_values(latest.values()) if with_metrics else {}
    settings = RunSettings.objects.in_bulk({run.settings_id for run in by_key.values()})
    records = {pk: _read_record(row) for pk, row in settings.items()}
    return {
        pk: jobs.RunLine(
            number=run.number,
            sweep=run.sweep,
            parameters=run.parameters,
            requested_at=run.requested_at,
            requested_by=run.requested_by,
            outcome=run.outcome,
            message=run.words,
            next_attempt_at=run.next_attempt_at,
            record=records[run.settings_id],
            after=str(run.after) if all_attempts and run.after else "",
            attempts=attempts[pk] if all_attempts else attempts[pk][-1:],
            cost=costs.get(pk, ""),
            now=now,
            metrics=measured.get(latest.get(pk, ""), {}),
        )
        for pk, run in by_key.items()
    }


def _attempts(runs: Iterable[int], reader_id: int) -> dict[int, list[jobs.AttemptLine]]:
    attempts: dict[int, list[jobs.AttemptLine]] = defaultdict(list)
    rows = Execution.objects.filter(run__in=list(runs)).order_by("run", "attempt")
    columns = ("run", "attempt", "state", "reason", "reason_values", "message", "started_at", "ended_at", "exit_code")
    for row in rows.select_related("owner").only(*columns, "owner__username"):
        words = row.words(Reader(row.owner.get_username(), row.owner_id == reader_id))
        line = jobs.AttemptLine(row.pk, row.attempt, row.state, words, row.started_at, row.ended_at, row.exit_code)
        attempts[row.run_id or 0].append(line)
    return attempts


def _read_record(settings: RunSettings) -> RunRecord:
    try:
        return read_record(settings.record)
    except Rejected:
        return _UNREADABLE


def _costs(runs: Iterable[int], now: datetime) -> dict[int, str]:
    intervals = UsageInterval.objects.filter(execution__run__in=list(runs)).order_by()
    ended, running = defaultdict(list), defaultdict(list)
    summed = intervals.filter(seconds__isnull=False).values_list("execution__run", "price_per_hour")
    for run, price, seconds in summed.annotate(Sum("seconds")):
        ended[run].append((Decimal(price), int(seconds)))
    begun = intervals.filter(ended_at__isnull=True).values_list("execution__run", "price_per_hour", "began_at")
    for run, price, began in begun:
        running[run].append((price, began))
    return {run: money(Spending(tuple(ended[run]), tuple(running[run])).until(now)) for run in ended.keys() | running}
