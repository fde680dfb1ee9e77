"""Rows of the list of jobs and of a job's runs; pure. A time that passes is kept as a time, so that an unchanged row stays equal."""

from collections.abc import Sequence
from datetime import datetime

from dashboard.jobs.viewmodels.jobs import JobCard, RunLine, SweepLine, parameter_words
from dashboard.jobs.viewmodels.runs import ORDERS, number_words
from dashboard.shell.viewmodels.format import clock_time, span
from dashboard.shell.viewmodels.listing import EmptyState, Paging
from dashboard.shell.viewmodels.live import Fragment, ViewModel, element_id
from dashboard.shell.viewmodels.states import StatusLine
from grid.core.translation import gettext as _
from grid.diagnosis.exits import code_words

JOBS, RUNS = "jobs", "runs"  # regions
_SHOWN = 60  # characters of parameters in a line
_NO_JOBS = EmptyState(_("You have no jobs."), _("Launch one, and run it as often as you like."))
_NONE_LEFT = EmptyState(_("No runs are left in the history."), "")


class JobRow(ViewModel, frozen=True, gc=False):
    """A job with its latest run or sweep; without one, `status` is None. `run` says which; `execution_id` is "" for a sweep."""

    id: str
    name: str
    command: str
    run: str
    execution_id: str
    requested_at: datetime | None
    status: StatusLine | None
    next_at: datetime | None
    is_paused: bool
    project: str
    tier: str


class RunRow(ViewModel, frozen=True, gc=False):
    """A run; `running_since` is set while it runs, and `took` says how long its latest attempt ran otherwise."""

    job_id: str
    number: int
    execution_id: str
    parameters: str
    status: StatusLine
    running_since: datetime | None
    took: str
    exit_code: str  # "" until its pod says so
    exit_words: str
    metric: str  # the last value of the chosen metric; "" without one
    attempts: str
    cost: str
    requested_at: datetime
    may_stop: bool


class MetricChoice(ViewModel, frozen=True, gc=False):
    """The form that chooses the metric of the column, and the order of a sweep's runs."""

    sweep: str
    metric: str
    order: str
    metrics: tuple[str, ...]
    orders: tuple[tuple[str, str], ...]  # () where runs are in one order only


class JobEnding(ViewModel, frozen=True, gc=False):
    """How a job, or the sweep that is shown, is ended: by stopping what has not ended; a job of which nothing runs can be deleted."""

    job_id: str
    sweep: str
    kind: str  # "stop-sweep", "stop-all", "delete", or "" for nothing


def job_fragments(cards: Sequence[JobCard], now: datetime, *, older: str) -> list[Fragment]:
    """Return the page of jobs; `older` is the id of the job after which the next page begins, "" without one."""
    rows = [
        Fragment(element_id("job", card.job.id), "jobs/fragments/job_row.html", _job_row(card, now), JOBS)
        for card in cards
    ]
    if not rows:
        rows = [Fragment("jobs-none", "jobs/fragments/jobs_none.html", _NO_JOBS, JOBS)]
    paging = Paging("", next=f"?before={older}" if older else "")
    return [*rows, Fragment("jobs-paging", "shell/fragments/paging.html", paging)]


def run_fragments(
    job_id: str, lines: Sequence[RunLine | SweepLine], now: datetime, *, older: str, may_stop: bool, metric: str = ""
) -> list[Fragment]:
    """Return the page of runs; `older` is the link to those before them, "" without one. `metric` is the one whose values are shown."""
    rows = []
    for line in lines:
        if isinstance(line, SweepLine):
            rows.append(Fragment(element_id("sweep", line.id), "jobs/fragments/sweep_row.html", line, RUNS))
        else:
            row = _run_row(job_id, line, now, metric, may_stop=may_stop)
            rows.append(Fragment(f"run-{line.number}", "jobs/fragments/run_row.html", row, RUNS))
    rows = rows or [Fragment("runs-none", "shell/fragments/empty_row.html", _NONE_LEFT, RUNS)]
    can_compare = sum(isinstance(line, RunLine) for line in lines) > 1
    return [
        *rows,
        Fragment("runs-compare", "jobs/fragments/runs_compare.html", can_compare),
        Fragment("runs-paging", "shell/fragments/paging.html", Paging("", next=older)),
    ]


def metric_choice(sweep: str, metric: str, order: str, metrics: Sequence[str]) -> Fragment:
    offered = tuple(dict.fromkeys([*metrics, metric] if metric else metrics))
    choice = MetricChoice(sweep, metric, order, offered, tuple(ORDERS.items()) if sweep else ())
    return Fragment("runs-metrics", "jobs/fragments/runs_metrics.html", choice)


def job_ending(job_id: str, sweep: SweepLine | None, *, open_runs: int, may_end: bool) -> Fragment:
    kind = "stop-all" if open_runs else "delete"
    if sweep is not None:
        kind = "stop-sweep" if sweep.ended < sweep.total else ""
    ending = JobEnding(job_id, sweep.id if sweep else "", kind if may_end else "")
    return Fragment("job-ending", "jobs/fragments/job_ending.html", ending)


def run_status(run: RunLine, now: datetime) -> StatusLine:
    """Return the run's status with why it waits, when it is tried again, or how it ended."""
    if run.outcome or run.message or run.latest is None:
        note = run.message or ("" if run.outcome else _("It starts in a moment."))
    else:
        note = "" if run.latest.state == "running" else run.latest.message
    if not run.outcome and run.next_attempt_at is not None and run.next_attempt_at > now:
        again = _("Next attempt at {waits_until} UTC.", waits_until=clock_time(run.next_attempt_at))
        note = f"{note} {again}".strip()
    return StatusLine(run.status.severity, run.status.word, note)


def _job_row(card: JobCard, now: datetime) -> JobRow:
    job, run, sweep = card.job, card.run, card.sweep
    latest = sweep or run
    return JobRow(
        id=job.id,
        name=job.name,
        command=job.settings.command,
        run=_("Sweep") if sweep else _("Run {number}", number=run.number) if run else "",
        execution_id=run.execution_id if run and not sweep else "",
        requested_at=latest.requested_at if latest else None,
        status=sweep.status if sweep else run_status(run, now) if run else None,
        next_at=card.next_at,
        is_paused=bool(card.paused_schedules),
        project=job.project_name,
        tier=job.tier_name,
    )


def _run_row(job_id: str, run: RunLine, now: datetime, metric: str, *, may_stop: bool) -> RunRow:
    latest, words = run.latest, parameter_words(run.parameters)
    started_at, ended_at = (latest.started_at, latest.ended_at) if latest else (None, None)
    return RunRow(
        job_id=job_id,
        number=run.number,
        execution_id=run.execution_id,
        parameters=words if len(words) <= _SHOWN else f"{words[: _SHOWN - 1]}…",
        status=run_status(run, now),
        running_since=started_at if ended_at is None else None,
        took=span((ended_at - started_at).total_seconds()) if started_at and ended_at else "",
        exit_code="" if run.exit_code is None else str(run.exit_code),
        exit_words="" if run.exit_code is None else code_words(run.exit_code),
        metric=number_words(run.metrics[metric]) if metric in run.metrics else "",
        attempts=run.attempt_words,
        cost=run.cost,
        requested_at=run.requested_at,
        may_stop=may_stop and not run.outcome,
    )
