"""Moves runs on: launches their attempts, retries what failed, and ends them.

`next_step` decides, and `advance` applies: both read the present state, so doing it twice changes nothing. A job's row is locked meanwhile,
so that of two processes the second sees what the first has launched; the id of an attempt follows from its run, and the database refuses a
second unsettled attempt of a run besides.
"""

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from grid.databasetrouble import trouble_of
from grid.errors import Problem, Rejected
from grid.launch.budgets.closing import CLOSED
from grid.launch.clusters.request import read_cluster_settings
from grid.launch.jobrows import RunAttempt, attempt_id
from grid.launch.jobsettings import LONGEST_WAIT, RunRecord, read_record
from grid.launch.maintenance.rules import MAINTENANCE
from grid.launch.notifications import outbox
from grid.launch.request import LaunchRequest, submit
from grid.models import Environment, Execution, HardwareTier, Job, JobRun, RunSettings, State
from grid.models.environment import Kind
from grid.models.execution import ACTIVE_STATES, FINAL_STATES
from grid.translation import gettext as _
from grid.translation import ngettext
from grid.wording import exact_duration

logger = logging.getLogger(__name__)

Outcome = JobRun.Outcome
# A refusal that passes by itself; every other one is a decision of a person.
PASSING = frozenset({"queue_full", CLOSED, MAINTENANCE})
# The reason of an error that another attempt would meet as well, or would only pass by running without what its owner meant it to have.
HOPELESS = frozenset({"secret_missing"})
REFUSED_SECONDS = 30
CLOSED_SECONDS = 600  # by a budget, which opens with the next month; whoever raises it does not wait for this
AT_ONCE = 20  # launches in one transaction, so that others get their turn of the database
MOST_LAUNCHES = 100  # in one call of `advance_all`, for the same reason; the rest is due at the next
POD_STAYS = _("Its last pod is not confirmed gone. The next attempt starts when it is.")
_AFTER = {
    Outcome.FAILED: _("It was to start after {name}, which failed."),
    Outcome.STOPPED: _("It was to start after {name}, which was stopped."),
    Outcome.NOT_STARTED: _("It was to start after {name}, which was not started."),
}


@dataclass(frozen=True, slots=True)
class AttemptFacts:
    """The latest attempt of a run; `stopped_by` is "" unless somebody asked to stop it."""

    number: int
    state: str
    is_settled: bool
    message: str = ""
    stopped_by: str = ""
    ended_at: datetime | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """A run after which another starts."""

    name: str
    outcome: str


@dataclass(frozen=True, slots=True)
class RunFacts:
    """An open run, and how many other runs of its job have an attempt that is not settled."""

    retries: int = 0
    retry_seconds: int = 30
    last: AttemptFacts | None = None
    after: EarlierRun | None = None
    others_active: int = 0
    at_once: int | None = None
    behind: int | None = None  # the number of an earlier run of its schedule that has not ended
    replaced_by: str = ""


@dataclass(frozen=True, slots=True)
class LaunchStep:
    attempt: int


@dataclass(frozen=True, slots=True)
class WaitStep:
    """Look again at `until`, or when something has ended; `why` is "" while an attempt is under way."""

    why: str = ""
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class EndStep:
    outcome: str
    why: str = ""


RunStep = LaunchStep | WaitStep | EndStep


def next_step(run: RunFacts, now: datetime) -> RunStep:
    """Return what an open run needs now."""
    last = run.last
    if last is None:
        return _wait_for_earlier(run) or _wait_behind(run) or _launch_if_room(run, 1)
    if last.state not in FINAL_STATES:
        return WaitStep()
    if last.state == State.SUCCEEDED:
        return EndStep(Outcome.SUCCEEDED)
    if last.state == State.STOPPED or last.stopped_by:
        return EndStep(Outcome.STOPPED, run.replaced_by or last.message)
    if last.number > run.retries or last.reason in HOPELESS:
        return EndStep(Outcome.FAILED, _attempt_failed(run, last) if run.retries else last.message)
    if not last.is_settled:
        return WaitStep(POD_STAYS)
    wait = back_off(run.retry_seconds, last.number)
    due = (last.ended_at or now) + timedelta(seconds=wait)
    if now < due:
        failure, later = _attempt_failed(run, last), exact_duration(wait)
        return WaitStep(_("{failure} The next attempt follows {wait} later.", failure=failure, wait=later), due)
    return _launch_if_room(run, last.number + 1)


def back_off(first_seconds: int, failed: int) -> int:
    """Return the seconds between the attempt with the number `failed` and the next; they double, up to an hour."""
    return min(LONGEST_WAIT, first_seconds << (failed - 1))


def _wait_for_earlier(run: RunFacts) -> RunStep | None:
    after = run.after
    if after is None or after.outcome == Outcome.SUCCEEDED:
        return None
    if not after.outcome:
        return WaitStep(_("It starts when {name} has succeeded.", name=after.name))
    return EndStep(Outcome.NOT_STARTED, _AFTER[Outcome(after.outcome)].format(name=after.name))


def _wait_behind(run: RunFacts) -> RunStep | None:
    if run.behind is None:
        return None
    return WaitStep(_("It starts when run {number} of its schedule has ended.", number=run.behind))


def _launch_if_room(run: RunFacts, attempt: int) -> RunStep:
    if run.at_once is not None and run.others_active >= run.at_once:
        return WaitStep(
            ngettext(
                "{count:,} run of this job is active, and at most {most} may be at once. It starts when one has ended.",
                "{count:,} runs of this job are active, and at most {most} may be at once. It starts when one has ended.",
                run.others_active,
                most=run.at_once,
            )
        )
    return LaunchStep(attempt)


def _attempt_failed(run: RunFacts, last: AttemptFacts) -> str:
    return _(
        "Attempt {number} of {most} failed: {message}", number=last.number, most=run.retries + 1, message=last.message
    )


# --- Which jobs to look at ---


def jobs_told(executions: Collection[str]) -> set[str]:
    """Return the jobs of those of these executions that have ended."""
    ended = Execution.objects.filter(pk__in=executions, run__isnull=False, state__in=sorted(FINAL_STATES)).order_by()
    return set(ended.values_list("run__job_id", flat=True))


def jobs_due(now: datetime) -> set[str]:
    """Return the jobs with a run whose time has come."""
    return set(_open().filter(next_attempt_at__lte=now).values_list("job_id", flat=True))


def all_jobs_due(now: datetime) -> set[str]:
    """Return the jobs with an open run that may move on, whatever has been told."""
    under_way = Execution.objects.filter(run=OuterRef("pk"), state__in=sorted(ACTIVE_STATES))
    is_time = Q(next_attempt_at__isnull=True) | Q(next_attempt_at__lte=now)
    return set(_open().filter(is_time, ~Exists(under_way)).values_list("job_id", flat=True))


def _open() -> QuerySet[JobRun]:
    return JobRun.objects.filter(outcome="").order_by()


# --- Moving on ---


def advance_all(job_ids: Iterable[str], *, now: datetime) -> list[str]:
    """Move on the runs of these jobs, and those that start after them; return the ids of the launched executions.

    A job that fails is told to the log, and keeps nobody else waiting. Raise only what concerns all: trouble of the database.
    """
    left, launched = list(job_ids), list[str]()
    while left and len(launched) < MOST_LAUNCHES:
        id = left.pop()
        try:
            done = advance(id, now=now)
        except Rejected as error:
            logger.warning("job=%s not moved on reason=%s", id, error)
            continue
        except Exception as error:
            if trouble_of(error) is not None:
                raise
            logger.exception("job=%s not moved on", id)
            continue
        launched += done.launched
        left += [*done.followers, *([id] if done.is_more else [])]
    return launched


@dataclass(frozen=True, slots=True)
class Advanced:
    """What a call of `advance` launched, and the jobs whose runs wait for what has ended."""

    launched: Sequence[str] = ()
    followers: Sequence[str] = ()
    is_more: bool = False  # to be launched at once, by another call


def advance(job_id: str, *, now: datetime) -> Advanced:
    """Apply the next step of each open run of a job, in their order, in one transaction."""
    with transaction.atomic():
        job = lock_job(job_id)
        return _Advance(job, now).apply() if job else Advanced()


def end_finished(job: Job, *, now: datetime) -> Sequence[str]:
    """End the open runs of a job for which nothing is left to do, without launching anything; return the jobs whose runs wait for them.

    For who is about to stop runs, and holds the lock: what has succeeded since the last step is not recorded as stopped.
    """
    return _Advance(job, now).end_finished()


def lock_job(job_id: str) -> Job | None:
    """Return the job, locked until the transaction ends; None when there is none."""
    rows = Job.objects.select_for_update(no_key=True, of=("self",)).select_related("owner", "project")
    return rows.filter(pk=job_id).first()


def launch_request(job: Job, record: RunRecord, attempt: RunAttempt | None = None) -> LaunchRequest:
    """Return the request of an attempt. Raise Rejected when a row that the record names no longer exists."""
    environment = Environment.objects.filter(pk=record.environment).first()
    tier = HardwareTier.objects.filter(pk=record.tier).first()
    if environment is None or tier is None:
        path, name = ("tier", record.tier_name) if environment else ("environment", record.environment_name)
        raise Rejected([Problem(path, _("{name} no longer exists. Choose another.", name=name), "not_offered")])
    return LaunchRequest(
        owner=job.owner,
        project=job.project,
        environment=environment,
        tier=tier,
        kind=Kind.JOB,
        title=record.title,
        cluster=read_cluster_settings(record.cluster) if record.cluster else None,
        job=record.job,
        attempt=attempt,
        pinned=record.pinned,
    )


class _Advance:
    """One call of `advance`, with what it has read."""

    def __init__(self, job: Job, now: datetime) -> None:
        self._job, self._now = job, now
        # There may be thousands, of which few are launched.
        runs_to_move = JobRun.objects.filter(job=job, outcome="").select_related("after__job").defer("parameters")
        self._runs = list(runs_to_move.order_by("number"))
        self._settings = RunSettings.objects.in_bulk({run.settings_id for run in self._runs})
        self._records: dict[int, RunRecord] = {}  # by their settings; the runs of a sweep share one
        self._last = _latest_attempts(job)
        unsettled = Execution.objects.unsettled().filter(run__job=job).order_by()
        runs = list(unsettled.values_list("run_id", "run__number", "run__schedule_id"))
        self._active = {pk for pk, _, _ in runs}
        open_runs = {run.pk for run in self._runs}
        # By schedule: its first run that keeps the later ones from starting. One that has ended does so while its pod is not gone.
        self._ahead = {schedule: number for pk, number, schedule in runs if schedule and pk not in open_runs}
        self._launched: list[str] = []
        self._refused: WaitStep | None = None  # by the queue, so that the others need not try
        self._ended: list[int] = []
        self._tries = 0
        self._is_more = False

    def end_finished(self) -> Sequence[str]:
        for run in self._runs:
            step = self._step(run)
            if isinstance(step, EndStep):
                self._end(run, step)
        return self._followers()

    def apply(self) -> Advanced:
        waits: dict[WaitStep, list[int]] = {}
        for run in self._runs:
            step = self._step(run)
            if isinstance(step, LaunchStep):
                step = self._launch(run, step.attempt)
            if isinstance(step, EndStep):
                self._end(run, step)
            if run.schedule_id and (run.pk in self._active or not isinstance(step, EndStep)):
                self._ahead.setdefault(run.schedule_id, run.number)
            if not isinstance(step, EndStep) and (run.message, run.next_attempt_at) != (step.why, step.until):
                waits.setdefault(step, []).append(run.pk)
        for step, ids in waits.items():
            JobRun.objects.filter(pk__in=ids, outcome="").update(message=step.why, next_attempt_at=step.until)
        return Advanced(self._launched, self._followers(), self._is_more)

    def _end(self, run: JobRun, step: EndStep) -> None:
        last = self._last.get(run.pk)
        end_run(run, step, self._now, by=last.stopped_by if last else "")
        self._ended.append(run.pk)

    def _followers(self) -> Sequence[str]:
        """Return the jobs with runs that start after those that have ended."""
        followers = _open().filter(after__in=self._ended) if self._ended else JobRun.objects.none()
        return sorted(set(followers.values_list("job_id", flat=True)))

    def _step(self, run: JobRun) -> RunStep:
        try:
            record = self._record_of(run)
        except Rejected as unreadable:
            return EndStep(Outcome.NOT_STARTED, unreadable.problems[0].message)
        facts = RunFacts(
            retries=record.job.retries,
            retry_seconds=record.job.retry_seconds,
            last=self._last.get(run.pk),
            after=EarlierRun(str(run.after), run.after.outcome) if run.after else None,
            others_active=len(self._active - {run.pk}),
            at_once=self._job.at_once,
            behind=self._ahead.get(run.schedule_id) if run.schedule_id else None,
            replaced_by=run.replaced_by,
        )
        return next_step(facts, self._now)

    def _record_of(self, run: JobRun) -> RunRecord:
        """Return what the run runs with. Raise Rejected when that can no longer be read."""
        id = run.settings_id
        if id not in self._records:
            self._records[id] = read_record(self._settings[id].record)
        return self._records[id]

    def _launch(self, run: JobRun, number: int) -> WaitStep | EndStep:
        """Launch the attempt; return the step that is left."""
        if self._refused is not None:
            return self._refused
        if self._tries >= AT_ONCE:
            self._is_more = True
            return WaitStep(_("It starts in a moment."), self._now)
        self._tries += 1
        id = attempt_id(self._job.pk, run.number, number)
        try:
            request = launch_request(self._job, self._record_of(run), RunAttempt(run, number))
            execution = submit(request, now=self._now, execution_id=id)
        except Rejected as refused:
            return self._put_off(run, number, refused.problems)
        self._active.add(run.pk)
        self._launched.append(execution.pk)
        return WaitStep()

    def _put_off(self, run: JobRun, number: int, problems: Sequence[Problem]) -> WaitStep | EndStep:
        why = " ".join(problem.message for problem in problems)
        if all(problem.code in PASSING for problem in problems):
            again = _("{why} It is tried again by itself.", why=why)
            wait = CLOSED_SECONDS if any(problem.code == CLOSED for problem in problems) else REFUSED_SECONDS
            self._refused = WaitStep(again, self._now + timedelta(seconds=wait))
            return self._refused
        if number == 1:
            return EndStep(Outcome.NOT_STARTED, why)
        last = self._last[run.pk]
        sentence = _("Attempt {number} failed: {message} It was not tried again: {why}")
        return EndStep(Outcome.FAILED, sentence.format(number=last.number, message=last.message, why=why))


def end_run(run: JobRun, step: EndStep, now: datetime, *, by: str = "") -> None:
    """Write how a run has ended and tell its owner; a run that has ended already stays as it is. `by` is who has stopped it."""
    columns = {"outcome": step.outcome, "message": step.why, "ended_at": now, "next_attempt_at": None}
    if JobRun.objects.filter(pk=run.pk, outcome="").update(**columns):
        outbox.record_run(run, step.outcome, step.why, actor=by, now=now)


def _latest_attempts(job: Job) -> dict[int, AttemptFacts]:
    """Return the latest attempt of each open run that has one."""
    rows = Execution.objects.filter(run__job=job, run__outcome="").order_by("run", "attempt")
    columns = ("run_id", "attempt", "state", "settled_at", "message", "stop_requested_by", "ended_at", "reason")
    found: dict[int, AttemptFacts] = {}
    for run_id, number, state, settled_at, *more in rows.values_list(*columns):
        found[run_id] = AttemptFacts(number, state, settled_at is not None, *more)
    return found
