"""Moves runs on: launches their attempts, retries what failed, and ends them. `next_step` decides, and `advance` applies: both read the
present state, so doing it twice changes nothing. A job's row is locked meanwhile, so that of two processes the second sees what the first
has launched; the id of an attempt follows from its run, and the database refuses a second unsettled attempt of a run besides."""

import asyncio
import logging
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from grid.clusters.request import read_cluster_settings
from grid.core.backoff import Backoff
from grid.core.errors import Problem, Rejected
from grid.core.reasons import Reader, words_of
from grid.core.translation import gettext as _
from grid.database.trouble import TroubleLog, trouble_of
from grid.database.turns import PersonTurns
from grid.executions.context import Context
from grid.executions.launchrequest import LaunchRequest, RunAttempt
from grid.executions.request import submit
from grid.jobs.jobrows import attempt_id
from grid.jobs.jobsettings import RunRecord, read_record
from grid.jobs.runsteps import AttemptFacts, EndStep, LaunchStep, Outcome, RunFacts, RunStep, WaitStep, next_step, wait
from grid.models import Environment, Execution, HardwareTier, Job, JobRun, RunSettings
from grid.models.environment import Kind
from grid.models.execution import ACTIVE_STATES, FINAL_STATES
from grid.notifications import outbox
from grid.observability import telemetry
from grid.queue.gate import PASSING
from grid.queue.launches import why_not_launch
from grid.usage.budgets.rules import CLOSED

logger = logging.getLogger(__name__)

REFUSED_SECONDS = 30
CLOSED_SECONDS = 600  # by a budget, which opens with the next month; whoever raises it does not wait for this
AT_ONCE = 3  # launches in one transaction, so that others get their turn of the database
MOST_LAUNCHES = 100  # in one call of `advance_all`, for the same reason; the rest is due at the next
JOBS_AT_ONCE = 20  # jobs between two looks at who has something due
OF_EACH = 5  # jobs of one person in a look


def jobs_told(executions: Collection[str]) -> dict[str, int]:
    """Return the jobs of those of these executions that have ended, with their owners."""
    ended = Execution.objects.filter(pk__in=executions, run__isnull=False, state__in=sorted(FINAL_STATES)).order_by()
    return dict(ended.values_list("run__job_id", "owner_id"))


def jobs_due(now: datetime) -> dict[str, int]:
    """Return the jobs with a run whose time has come, with their owners, the longest due first."""
    return dict(runs_due(now).values_list("job_id", "job__owner_id"))


def owners_of(job_ids: Collection[str]) -> dict[str, int]:
    return dict(Job.objects.filter(pk__in=job_ids).order_by().values_list("pk", "owner_id"))


def longest_due(now: datetime) -> datetime | None:
    """Return since when the next step of a run has been due for longest; None when none is."""
    return runs_due(now).values_list("next_attempt_at", flat=True).first()


def all_jobs_due(now: datetime) -> dict[str, int]:
    """Return the jobs with an open run that may move on, whatever has been told, with their owners."""
    under_way = Execution.objects.filter(run=OuterRef("pk"), state__in=sorted(ACTIVE_STATES))
    is_time = Q(next_attempt_at__isnull=True) | Q(next_attempt_at__lte=now)
    return dict(_open().filter(is_time, ~Exists(under_way)).values_list("job_id", "job__owner_id"))


def _open() -> QuerySet[JobRun]:
    return JobRun.objects.filter(outcome="").order_by()


def runs_due(now: datetime) -> QuerySet[JobRun]:
    return _open().filter(next_attempt_at__lte=now).order_by("next_attempt_at", "pk")


def advance_all(job_ids: Iterable[str], *, now: datetime) -> list[str]:
    """Move on the runs of these jobs, and those that start after them; return the ids of the launched executions. A job that fails is told
    to the log, and keeps nobody else waiting. Raise only what concerns all: trouble of the database."""
    left, launched = list(job_ids), list[str]()
    while left and len(launched) < MOST_LAUNCHES:
        id = left.pop()
        done = advance_or_log(id, now=now)
        launched += done.launched
        left += [*done.followers, *([id] if done.is_more else [])]
    return launched


def advance_or_log(job_id: str, *, now: datetime) -> "Advanced":
    """Move on the runs of a job; one that fails is told to the log. Raise only trouble of the database."""
    try:
        return advance(job_id, now=now)
    except Rejected as error:
        logger.warning("job=%s not moved on reason=%s", job_id, error)
    except Exception as error:
        if trouble_of(error) is not None:
            raise
        logger.exception("job=%s not moved on", job_id)
    return Advanced()


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
    For who is about to stop runs, and holds the lock: what has succeeded since the last step is not recorded as stopped."""
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
        # There may be thousands that have not begun, of which few are launched: the others are not read.
        has_attempt = Exists(Execution.objects.filter(run=OuterRef("pk")))
        open_runs = JobRun.objects.filter(job=job, outcome="").select_related("after__job").defer("parameters")
        self._fresh = open_runs.filter(~has_attempt, after=None, schedule=None).order_by("number")
        first = list(self._fresh[: AT_ONCE + 1])
        under_way = Execution.objects.filter(run=OuterRef("pk"), state__in=sorted(ACTIVE_STATES))
        rests = Q(Exists(under_way), reason="", next_attempt_at=None)  # until its attempt has ended
        others = open_runs.filter(has_attempt | Q(after__isnull=False) | Q(schedule__isnull=False)).exclude(rests)
        self._last_read = first[-1] if len(first) > AT_ONCE else None
        self._runs = sorted([*first, *others], key=lambda run: run.number)
        self._settings = RunSettings.objects.in_bulk({run.settings_id for run in self._runs})
        self._records: dict[int, RunRecord] = {}  # by their settings; the runs of a sweep share one
        attempts = Execution.objects.filter(run__in=[run.pk for run in self._runs]).order_by("run", "attempt").values_list(
            "run_id", "attempt", "state", "settled_at", "message", "stop_requested_by", "ended_at",
            "reason", "reason_values",
        )  # fmt: skip
        self._last = {  # the latest of a run comes last
            run_id: AttemptFacts(number, state, settled_at is not None, message, by, ended_at, reason, values)
            for run_id, number, state, settled_at, message, by, ended_at, reason, values in attempts
        }
        unsettled = Execution.objects.unsettled().filter(run__job=job).order_by()
        active = list(unsettled.values_list("run_id", "run__number", "run__schedule_id"))
        self._active = {pk for pk, _, _ in active}
        read = {run.pk for run in self._runs}
        # By schedule: its first run that keeps the later ones from starting. One that has ended does so while its pod is not gone.
        self._ahead = {schedule: number for pk, number, schedule in active if schedule and pk not in read}
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
        waits: dict[str, tuple[WaitStep, list[int]]] = {}  # by what they wait for
        for run in self._runs:
            step = self._step(run)
            if isinstance(step, LaunchStep):
                step = self._launch(run, step.attempt)
            if isinstance(step, EndStep):
                self._end(run, step)
            if run.schedule_id and (run.pk in self._active or not isinstance(step, EndStep)):
                self._ahead.setdefault(run.schedule_id, run.number)
            stored = (run.reason, run.reason_values, run.next_attempt_at)
            if not isinstance(step, EndStep) and stored != (step.reason, step.values, step.until):
                waits.setdefault(repr(step), (step, []))[1].append(run.pk)
            if run is self._last_read:
                self._let_wait_too(step)
        for step, ids in waits.values():
            JobRun.objects.filter(pk__in=ids, outcome="").update(message="", **step.columns)
        return Advanced(self._launched, self._followers(), self._is_more)

    def _let_wait_too(self, step: WaitStep | EndStep) -> None:
        """Have the runs that were not read wait for what the last one that was read waits for."""
        if isinstance(step, EndStep):
            self._is_more = True
            return
        says_so = Q(**step.columns)
        if self._is_more:  # they may have said so at an earlier call
            says_so = Q(reason=step.reason, reason_values=step.values, next_attempt_at__lte=self._now)
        if self._last_read is not None:
            rest = JobRun.objects.filter(pk__in=self._fresh.filter(number__gt=self._last_read.number).values("pk"))
            rest.exclude(says_so).update(message="", **step.columns)

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
            return EndStep(Outcome.NOT_STARTED, "launch_refused", {"why": unreadable.problems[0].message})
        facts = RunFacts(
            retries=record.job.retries,
            retry_seconds=record.job.retry_seconds,
            last=self._last.get(run.pk),
            after=(str(run.after), run.after.outcome) if run.after else None,
            others_active=len(self._active - {run.pk}),
            at_once=self._job.at_once,
            behind=self._ahead.get(run.schedule_id) if run.schedule_id else None,
            replaced_by=replacement(run),
        )
        return next_step(facts, self._now)

    def _record_of(self, run: JobRun) -> RunRecord:
        id = run.settings_id
        if id not in self._records:
            self._records[id] = read_record(self._settings[id].record)
        return self._records[id]

    def _launch(self, run: JobRun, number: int) -> WaitStep | EndStep:
        if self._refused is not None:
            return self._refused
        if self._tries >= AT_ONCE:
            self._is_more = True
            return wait("in_a_moment", self._now)
        self._tries += 1
        id = attempt_id(self._job.pk, run.number, number)
        try:
            request = launch_request(self._job, self._record_of(run), RunAttempt(run, number))
            # The queue serves a person's launches by the time of their request, and those of a sweep share one: ids tell no order.
            asked_at = self._now + timedelta(microseconds=run.number - 1)
            execution = submit(request, gate=why_not_launch, now=asked_at, execution_id=id)
        except Rejected as refused:
            return self._put_off(run, number, refused.problems)
        self._active.add(run.pk)
        self._launched.append(execution.pk)
        return WaitStep()

    def _put_off(self, run: JobRun, number: int, problems: Sequence[Problem]) -> WaitStep | EndStep:
        why = " ".join(problem.message for problem in problems)
        if all(problem.code in PASSING for problem in problems):  # every other refusal is a decision of a person
            seconds = CLOSED_SECONDS if any(problem.code == CLOSED for problem in problems) else REFUSED_SECONDS
            self._refused = wait("refused_for_now", self._now + timedelta(seconds=seconds), why=why)
            return self._refused
        if number == 1:
            return EndStep(Outcome.NOT_STARTED, "launch_refused", {"why": why})
        last = self._last[run.pk]
        return EndStep(Outcome.FAILED, "not_tried_again", {"number": last.number, "cause": last.cause, "why": why})


def replacement(run: JobRun) -> dict[str, Any] | None:
    """Return the number of the run that replaces this one, and the time that it is for; None when none does."""
    if run.replaced_by is None:
        return None
    later = JobRun.objects.filter(job=run.job_id, number=run.replaced_by).values_list("due_at", "schedule__time_zone")
    due, zone = later.first() or (None, None)
    return {"number": run.replaced_by, "due": (due or run.requested_at).isoformat(), "zone": zone or "UTC"}


def end_run(run: JobRun, step: EndStep, now: datetime, *, by: str = "") -> None:
    """Write how a run has ended and tell its owner; a run that has ended already stays as it is. `by` is who has stopped it."""
    if JobRun.objects.filter(pk=run.pk, outcome="").update(message="", ended_at=now, **step.columns):
        why = words_of(step.reason, step.values, "", Reader(run.job.owner.get_username(), is_owner=True))
        outbox.record_run(run, step.outcome, why, actor=by, now=now)


class RunMover:
    """Moves on what it is told of; `launched` is told which executions that launches. That is kept in memory only, and moving
    a job on twice changes nothing: what is lost with a process is found again."""

    def __init__(
        self, context: Context, troubles: TroubleLog, rng: random.Random, launched: Callable[[str], object]
    ) -> None:
        self._context, self._launched = context, launched
        self._troubles, self._rng = troubles, rng
        self._jobs: dict[int, dict[str, None]] = {}  # by owner, in the order in which they were found
        self._turns = PersonTurns[int]()
        self._has_jobs = asyncio.Event()

    def add(self, jobs: Mapping[str, int]) -> None:
        """Have these jobs moved on, given with their owners."""
        for job, owner in jobs.items():
            self._jobs.setdefault(owner, {})[job] = None
        if self._jobs:
            self._has_jobs.set()

    async def run(self) -> None:
        """Move on what is added, for ever; what fails for want of the database is tried again."""
        backoff = Backoff(rng=self._rng)
        while True:
            await self._has_jobs.wait()
            try:
                await self.move_some()
                backoff.reset()
            except Exception as error:
                if not self._troubles.handles(error):
                    logger.exception("runs of jobs not moved on")
                await asyncio.sleep(backoff.next())

    async def move_some(self) -> None:
        """Move on the first jobs of each owner, in turn."""
        context = self._context
        due = [(owner, (owner, job)) for owner, jobs in self._jobs.items() for job in list(jobs)[:OF_EACH]]
        oldest = await context.due_work(longest_due, context.clock())
        late = (context.clock() - oldest).total_seconds() if oldest is not None else 0.0
        telemetry.DUE_WORK_LATE.labels("runs").set(late)
        await self._turns.serve(due, self._move, at_most=JOBS_AT_ONCE)
        if not self._jobs:
            self._has_jobs.clear()

    async def _move(self, which: tuple[int, str]) -> None:
        owner, job = which
        context = self._context
        done = await context.due_work(advance_or_log, job, now=context.clock())
        self._jobs[owner].pop(job, None)
        if not self._jobs[owner]:
            del self._jobs[owner]
        for id in done.launched:
            logger.info("execution=%s launched as an attempt of a run", id)
            self._launched(id)
        if done.is_more:
            self.add({job: owner})
        if done.followers:
            self.add(await context.due_work(owners_of, done.followers))
