"""Runs the jobs whose schedules are due. `JobScheduler` runs at the next time that is due, and every few seconds for new ones. Several
controllers may do this at once: a due time is decided under the lock of its job, in the transaction that moves the schedule on, and the
database takes one run for each. A process that ends between two steps loses nothing: the run is stored, and the next poll moves it on."""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Count, QuerySet

from grid.announcements.maintenance import current_maintenance
from grid.configuration import SCHEDULED_RUNS_PER_MINUTE, value_of
from grid.core.errors import Rejected
from grid.core.reasons import Reason
from grid.database.periodic import PeriodicTask
from grid.database.seam import Database
from grid.database.trouble import trouble_of
from grid.database.turns import PersonTurns, RateLimit, first_of_each
from grid.jobs.jobrows import make_runs, record_of
from grid.jobs.jobruns import advance_all, end_finished
from grid.jobs.jobs import stop_run
from grid.jobs.schedulehistory import LateReason, noted
from grid.jobs.schedules import lock_schedule, may_not_run, timetable_of, write_pause
from grid.jobs.scheduletimes import due_times
from grid.models import Execution, Job, JobRun, Schedule, State
from grid.observability import telemetry
from grid.projects.departures import why_departed
from grid.queue.snapshot import why_closed

logger = logging.getLogger(__name__)
LOOK_SECONDS = 5.0  # a new schedule is not due before it was seen, unless within these seconds
DEPARTED_SECONDS = 60.0  # between two looks at who may not launch any more
AT_ONCE = 20  # schedules in one look; the others are due at the next
OF_EACH = 5  # schedules of one person that one look reads
LATE = timedelta(seconds=30)  # since when a schedule says why
PUT_OFF = timedelta(seconds=LOOK_SECONDS)  # until one that is still due after it was looked at is looked at again
MINUTE = timedelta(minutes=1)
MOST_QUEUED = 20  # runs of a schedule that wait or run; further ones are skipped
MOST_REFUSED = 3  # runs in a row that were not started
# How long it is waited for the pod of a program that has ended; one on a lost node may take for ever.
FINISHING_SECONDS = 60.0
BY = "its schedule"  # no username has a blank
REPLACING = "Compute Grid"


class Lateness:
    """Remembers the most that was due at once of each person, for as long as anything of the person's is due."""

    def __init__(self) -> None:
        self._most: dict[int, int] = {}
        self._most_of_all = 0
        self._over_limit: set[int] = set()

    def noted(self, counts: Mapping[int, int], over_limit: Collection[int]) -> None:
        """Take in how many are due now by person, and who has reached the limit of runs within a minute."""
        self._most = {person: max(count, self._most.get(person, 0)) for person, count in counts.items()}
        total = sum(counts.values())
        self._most_of_all = max(total, self._most_of_all) if total else 0
        self._over_limit = (self._over_limit & counts.keys()) | set(over_limit)

    def why(self, person: int, most_a_minute: int) -> LateReason:
        own = self._most.get(person, 1)
        limit = most_a_minute if person in self._over_limit else 0
        return LateReason(own - 1, max(0, self._most_of_all - own), limit)


def seconds_late(due: Iterable[datetime], now: datetime) -> float:
    """Return for how long the oldest of these has been due; 0 without any."""
    return max(((now - moment).total_seconds() for moment in due), default=0.0)


@dataclass(frozen=True, slots=True)
class DueSchedule:
    """A schedule whose time has come, and whose it is."""

    id: int
    owner_id: int
    due_at: datetime


@dataclass(frozen=True, slots=True)
class ScheduleLook:
    """The oldest schedules of each person that are due, how many are due by person, and when the next one is."""

    due: Sequence[DueSchedule] = ()
    counts: Mapping[int, int] = field(default_factory=dict)
    next_at: datetime | None = None
    most_a_minute: int = 0


@dataclass(frozen=True, slots=True)
class ScheduleRun:
    """What became of a schedule that was due: the executions that were launched, and whether it is still due."""

    launched: Sequence[str] = ()
    is_still_due: bool = False


def due_soon(now: datetime) -> QuerySet[Schedule]:
    """Return what a look would run, or wait for."""
    return Schedule.objects.filter(next_at__lte=now + timedelta(seconds=LOOK_SECONDS))


def look_at_due(now: datetime, *, apart: Collection[int] = ()) -> ScheduleLook:
    """Read what is due, without the schedules `apart`."""
    due = Schedule.objects.filter(next_at__lte=now)
    if current_maintenance(now) is not None:
        # Those that make up for missed times stay due until it ends; the others say that they skip a time.
        due = due.exclude(missed=Schedule.Missed.ONCE)
    later = Schedule.objects.filter(next_at__gt=now).order_by("next_at", "pk")
    next_at = later.values_list("next_at", flat=True).first()
    if not due.exists():  # as nearly each time
        return ScheduleLook(next_at=next_at)
    counted = due.order_by().values_list("job__owner").annotate(Count("pk"))
    first = first_of_each(due.exclude(pk__in=apart), "job__owner", "next_at", "pk", at_most=OF_EACH)
    rows = first.values_list("pk", "job__owner", "next_at")
    schedules = [DueSchedule(id, owner, at) for id, owner, at in rows if at]
    return ScheduleLook(schedules, dict(counted), next_at, value_of(SCHEDULED_RUNS_PER_MINUTE))


def run_schedule(pk: int, *, now: datetime, late: LateReason | None = None) -> ScheduleRun:
    """Ask for the run of a due schedule, launch it, and note why it is `late`; a time that another controller ran is moved on from."""
    try:
        return _run(pk, now, late)
    except IntegrityError as error:
        logger.warning("schedule=%s moved on without a run reason=%s", pk, error)
    with transaction.atomic():
        if (locked := _lock(pk)) is not None:
            _Decision(*locked, now).move_on()
    return ScheduleRun()


def pause_departed(*, now: datetime) -> int:
    """Pause the schedules whose owner may no longer launch in their project; return how many."""
    count = 0
    for pk in list(may_not_run().values_list("pk", flat=True)):
        with transaction.atomic():
            locked = _lock(pk)
            departed = why_departed(locked[1].owner, locked[1].project) if locked and locked[0].next_at else None
            if locked and departed is not None:
                write_pause(locked[0], now, {"cause": [departed.code, departed.values, ""]})
                count += 1
    return count


def _lock(pk: int) -> tuple[Schedule, Job] | None:
    try:
        return lock_schedule(pk)
    except Rejected:
        return None


def _run(pk: int, now: datetime, late: LateReason | None) -> ScheduleRun:
    with transaction.atomic():
        locked = _lock(pk)
        if locked is None:
            return ScheduleRun()
        decision = _Decision(*locked, now, late)
        followers = decision.apply()
    launched = advance_all([locked[1].pk, *followers], now=now)
    if locked[0].next_at is not None and _why_refused(locked[0]):
        with transaction.atomic():
            if (again := _lock(pk)) is not None:
                _pause_if_refused(again[0], now)
    return ScheduleRun(launched, locked[0].next_at is not None and locked[0].next_at <= now)


def _why_refused(schedule: Schedule) -> tuple[str, Any, str] | None:
    """Return why the last runs of a schedule since it was set were not started; None when one of them was, or there were fewer."""
    runs = JobRun.objects.filter(schedule=schedule, due_at__gt=schedule.set_at).order_by("-due_at")
    last = list(runs.values_list("outcome", "reason", "reason_values", "message")[:MOST_REFUSED])
    has_started = len(last) < MOST_REFUSED or any(outcome != JobRun.Outcome.NOT_STARTED for outcome, *_cause in last)
    return None if has_started else last[0][1:]


def _pause_if_refused(schedule: Schedule, now: datetime) -> bool:
    cause = _why_refused(schedule) if schedule.next_at is not None else None
    if cause is not None:
        write_pause(schedule, now, {"cause": ["RunsNotStarted", {"count": MOST_REFUSED, "cause": cause}, ""]})
    return cause is not None


class _Decision:
    """What is done at a due time; the job is locked."""

    def __init__(self, schedule: Schedule, job: Job, now: datetime, late: LateReason | None = None) -> None:
        self._schedule, self._job, self._now = schedule, job, now
        self._late = late.values(job.owner.get_username()) if late and late != LateReason() else None

    def apply(self) -> Sequence[str]:
        """Decide; return the jobs whose runs may start now, because a run that they wait for has ended."""
        schedule, now = self._schedule, self._now
        if schedule.next_at is None or schedule.next_at > now:
            return ()  # another controller was faster
        if (departed := why_departed(self._job.owner, self._job.project)) is not None:
            write_pause(schedule, now, {"cause": [departed.code, departed.values, ""]})
            return ()
        if _pause_if_refused(schedule, now):
            return ()
        try:
            timetable = timetable_of(schedule, now)
        except Rejected as unreadable:
            write_pause(schedule, now, {"cause": ["", None, unreadable.problems[0].message]})
            return ()
        followers = end_finished(self._job, now=now)
        # An earlier run whose program has ended and whose pod is about to go is neither skipped for nor stopped.
        attempts = Execution.objects.unsettled().filter(run__job=self._job, run__schedule=schedule, run__outcome="")
        since = now - timedelta(seconds=FINISHING_SECONDS)
        if attempts.filter(state=State.FINISHING, state_since__gt=since).exists():
            return followers  # it is still due, and decided when the earlier run has ended
        due = due_times(timetable, schedule.next_at, now, runs_missed=schedule.missed == Schedule.Missed.ONCE)
        schedule.next_at = timetable.next(now)
        if due.missed:
            self._note("TimeMissed", first=due.missed[0], last=due.missed[1], late=self._late)
        if due.run:
            self._run(due.run)
        schedule.save()
        return followers

    def move_on(self) -> None:
        """Make a schedule that is due wait for its next time, without a run."""
        schedule, now = self._schedule, self._now
        if schedule.next_at is None or schedule.next_at > now:
            return
        self._note("TimeTaken", due=schedule.next_at)
        schedule.next_at = timetable_of(schedule, now).next(now)
        schedule.save()

    def _run(self, due: datetime) -> None:
        schedule, job = self._schedule, self._job
        still_open = list(JobRun.objects.filter(job=job, schedule=schedule, outcome="").order_by("number"))
        open_count = len(still_open)
        if still_open and schedule.overlap == Schedule.Overlap.SKIP:
            self._note("TimeBehindRun", due=due, number=still_open[-1].number)
            return
        if open_count >= MOST_QUEUED and schedule.overlap == Schedule.Overlap.QUEUE:
            self._note("TimeBehindRuns", due=due, count=open_count)
            return
        if closed := why_closed(job.project_id, self._now):
            self._note("TimeClosed", due=due, why=closed[0].message)
            return
        if self._late and self._now - due >= LATE:
            self._note("TimeLate", due=due, now=self._now, late=self._late)
        (run,) = make_runs(job, record_of(job), [{}], by=BY, now=self._now)
        run.schedule, run.due_at = schedule, due
        run.save(update_fields=["schedule", "due_at"])
        schedule.last_at = due
        if schedule.overlap == Schedule.Overlap.REPLACE:
            for earlier in still_open:
                if earlier.replaced_by is not None:
                    continue  # it is being stopped
                earlier.replaced_by = run.number
                earlier.save(update_fields=["replaced_by"])
                stop_run(earlier, by=REPLACING, now=self._now)
                self._note("RunReplaced", due=due, earlier=earlier.number, number=run.number)

    def _note(self, code: str, **values: Any) -> None:
        stored = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in values.items()}
        entry = Reason(code, stored | {"zone": self._schedule.time_zone})
        self._schedule.history = noted(self._schedule.history, self._now, entry)


class JobScheduler:
    """Runs what is due, in turn by the owners of jobs."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._clock = clock
        self._looked_at: datetime | None = None  # at who may not launch any more
        self._turns = PersonTurns[int]()
        self._asked = RateLimit[int](MINUTE)
        self._lateness = Lateness()
        self._most_a_minute = 0
        self._put_off: dict[int, datetime] = {}  # schedules that were looked at and are still due, until when

    def periodic(self, *, after: Callable[[], Awaitable[None]]) -> PeriodicTask:
        """Return the task. It begins `after` what ended without a leader is known: else a schedule would skip for a run that has ended."""
        return PeriodicTask("schedules", LOOK_SECONDS, self.run_once, ready=after, work=due_soon)

    async def run_once(self) -> float:
        """Run some of what is due, and return the seconds until the next run."""
        now = self._clock()
        if self._looked_at is None or (now - self._looked_at).total_seconds() >= DEPARTED_SECONDS:
            self._looked_at = now
            await self._database(pause_departed, now=now)
        self._put_off = {id: until for id, until in self._put_off.items() if now < until <= now + PUT_OFF}
        due_now = await self._database(look_at_due, now, apart=list(self._put_off))
        self._most_a_minute = due_now.most_a_minute
        may_run = self._within_limit(due_now, now)
        over_limit = {schedule.owner_id for schedule in due_now.due} - {owner for owner, _ in may_run}
        self._lateness.noted(due_now.counts, over_limit)
        late = seconds_late((schedule.due_at for schedule in due_now.due), now)
        telemetry.DUE_WORK_LATE.labels("schedules").set(late)
        done = await self._turns.serve(may_run, self._serve, at_most=AT_ONCE)
        is_more = len(due_now.due) > len(done) or any(due_now.counts[owner] > OF_EACH for owner, _ in done)
        if done and is_more:
            return 0.0
        if due_now.next_at is None:
            return LOOK_SECONDS
        return max(0.0, min(LOOK_SECONDS, (due_now.next_at - self._clock()).total_seconds()))

    def _within_limit(self, due_now: ScheduleLook, now: datetime) -> list[tuple[int, DueSchedule]]:
        """Return what is due with its owners, but for those whose schedules have asked for enough runs within a minute."""
        asked = Counter({owner: self._asked.count(owner, now) for owner in due_now.counts})
        may_run: list[tuple[int, DueSchedule]] = []
        for schedule in due_now.due:
            if asked[schedule.owner_id] < due_now.most_a_minute:
                asked[schedule.owner_id] += 1
                may_run.append((schedule.owner_id, schedule))
        return may_run

    async def _serve(self, due: DueSchedule) -> None:
        """Run one that is due. One that fails is told to the log, and keeps no other waiting."""
        now = self._clock()
        late = self._lateness.why(due.owner_id, self._most_a_minute) if now - due.due_at >= LATE else None
        try:
            done = await self._database(run_schedule, due.id, now=now, late=late)
        except Exception as error:
            if trouble_of(error) is not None:
                raise  # it concerns all
            logger.exception("schedule=%s not run", due.id)
            done = ScheduleRun(is_still_due=True)
        self._asked.add(due.owner_id, now)
        if done.is_still_due:
            self._put_off[due.id] = now + PUT_OFF
        for id in done.launched:
            logger.info("execution=%s launched by a schedule", id)
