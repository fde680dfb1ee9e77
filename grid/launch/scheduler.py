"""Runs the jobs whose schedules are due. `JobScheduler` wakes at the next time that is due, and looks every few seconds for new ones.

Several controllers may do this at once: a due time is decided under the lock of its job, in the transaction that moves the schedule on, and
the database takes one run for each. A process that ends between two steps loses nothing: the run is stored, and the next poll moves it on.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from django.db import DatabaseError, transaction

from grid.backoff import Backoff
from grid.databasetrouble import TroubleLog
from grid.errors import Rejected
from grid.launch.context import Database
from grid.launch.jobrows import make_run, record_of
from grid.launch.jobruns import advance_all
from grid.launch.jobs import stop_run
from grid.launch.schedules import lock_schedule, may_not_run, note, timetable_of, why_owner_may_not, write_pause
from grid.launch.scheduletimes import due_times
from grid.models import Job, JobRun, Schedule

logger = logging.getLogger(__name__)

LOOK_SECONDS = 5.0  # a new schedule is not due before it was seen, unless within these seconds
DEPARTED_SECONDS = 60.0  # between two looks at who may not launch any more
AT_ONCE = 100  # schedules in one look; the others are due at the next
MOST_QUEUED = 20  # runs of a schedule that wait or run; further ones are skipped
MOST_REFUSED = 3  # runs in a row that were not started
BY = "its schedule"  # no username has a blank
REPLACING = "Compute Grid"


@dataclass(frozen=True, slots=True)
class ScheduleLook:
    """What a look at the schedules launched, and when the next one is due."""

    launched: Sequence[str] = ()
    next_at: datetime | None = None


def run_due(*, now: datetime) -> ScheduleLook:
    """Ask for the runs that are due. A schedule that fails is told to the log, and keeps no other waiting."""
    due = Schedule.objects.filter(next_at__lte=now).order_by("next_at", "pk").values_list("pk", flat=True)
    launched: list[str] = []
    for pk in list(due[:AT_ONCE]):
        try:
            launched += _run(pk, now)
        except DatabaseError:
            raise  # it concerns all
        except Exception:
            logger.exception("schedule=%s not run", pk)
    # What failed is still due: it is tried again at the next look.
    later = Schedule.objects.filter(next_at__gt=now).order_by("next_at", "pk")
    return ScheduleLook(launched, later.values_list("next_at", flat=True).first())


def pause_departed(*, now: datetime) -> int:
    """Pause the schedules whose owner may no longer launch in their project; return how many."""
    count = 0
    for pk in list(may_not_run().values_list("pk", flat=True)):
        with transaction.atomic():
            found = _lock(pk)
            why = why_owner_may_not(found[1]) if found and found[0].next_at else ""
            if found and why:
                write_pause(found[0], now, why=why)
                count += 1
    return count


def _lock(pk: int) -> tuple[Schedule, Job] | None:
    try:
        return lock_schedule(pk)
    except Rejected:
        return None


def _run(pk: int, now: datetime) -> list[str]:
    with transaction.atomic():
        found = _lock(pk)
        if found is None:
            return []
        _Decision(*found, now).apply()
    launched = advance_all([found[1].pk], now=now)
    with transaction.atomic():
        found = _lock(pk)
        if found is not None:
            _pause_if_refused(found[0], now)
    return launched


def _pause_if_refused(schedule: Schedule, now: datetime) -> bool:
    """Pause a schedule whose last runs since it was set were not started."""
    if schedule.next_at is None:
        return False
    runs = JobRun.objects.filter(schedule=schedule, due_at__gt=schedule.set_at).order_by("-due_at")
    last = list(runs.values_list("outcome", "message")[:MOST_REFUSED])
    if len(last) < MOST_REFUSED or any(outcome != JobRun.Outcome.NOT_STARTED for outcome, _ in last):
        return False
    write_pause(schedule, now, why=f"Its last {MOST_REFUSED} runs were not started. {last[0][1]}")
    return True


class _Decision:
    """What is done at a due time; the job is locked."""

    def __init__(self, schedule: Schedule, job: Job, now: datetime) -> None:
        self._schedule, self._job, self._now = schedule, job, now

    def apply(self) -> None:
        schedule, now = self._schedule, self._now
        if schedule.next_at is None or schedule.next_at > now:
            return  # another controller was faster
        why = why_owner_may_not(self._job)
        if why:
            write_pause(schedule, now, why=why)
            return
        if _pause_if_refused(schedule, now):
            return
        try:
            timetable = timetable_of(schedule, now)
        except Rejected as unreadable:
            write_pause(schedule, now, why=unreadable.problems[0].message)
            return
        due = due_times(timetable, schedule.next_at, now, runs_missed=schedule.missed == Schedule.Missed.ONCE)
        schedule.next_at = timetable.next(now)
        if due.missed:
            self._note_missed(*due.missed)
        if due.run:
            self._run(due.run)
        schedule.save()

    def _run(self, due: datetime) -> None:
        schedule, job = self._schedule, self._job
        still_open = list(JobRun.objects.filter(job=job, schedule=schedule, outcome="").order_by("number"))
        if still_open and schedule.overlap == Schedule.Overlap.SKIP:
            self._note(f"{self._shown(due)} skipped: run {still_open[-1].number} had not ended.")
            return
        if len(still_open) >= MOST_QUEUED and schedule.overlap == Schedule.Overlap.QUEUE:
            self._note(f"{self._shown(due)} skipped: {len(still_open)} earlier runs had not ended.")
            return
        record = record_of(job, job.environment, job.tier)
        run = make_run(job, record, {}, by=BY, now=self._now)
        run.schedule, run.due_at = schedule, due
        run.save(update_fields=["schedule", "due_at"])
        schedule.last_at = due
        if schedule.overlap == Schedule.Overlap.REPLACE:
            for earlier in still_open:
                if earlier.replaced_by:
                    continue  # it is being stopped
                earlier.replaced_by = f"Replaced by run {run.number}, due {self._shown(due)}."
                earlier.save(update_fields=["replaced_by"])
                stop_run(earlier, by=REPLACING, now=self._now)
                self._note(f"{self._shown(due)} replaced run {earlier.number} by run {run.number}.")

    def _note_missed(self, first: datetime, last: datetime) -> None:
        times = self._shown(first) if first == last else f"{self._shown(first)} to {self._shown(last)}"
        self._note(f"{times} missed: the controller was away.")

    def _note(self, sentence: str) -> None:
        note(self._schedule, self._now, sentence)

    def _shown(self, moment: datetime) -> str:
        return f"{moment.astimezone(ZoneInfo(self._schedule.time_zone)):%-d %b %H:%M}"


class JobScheduler:
    """Runs what is due; `run` until cancelled."""

    def __init__(
        self, database: Database, clock: Callable[[], datetime], troubles: TroubleLog, rng: random.Random
    ) -> None:
        self._database = database
        self._clock = clock
        self._troubles = troubles
        self._rng = rng
        self._looked_at: datetime | None = None  # at who may not launch any more

    async def run(self) -> None:
        backoff = Backoff(rng=self._rng)
        while True:
            try:
                pause = await self.look()
                backoff.reset()
            except Exception as error:
                if not self._troubles.are_why(error):
                    logger.exception("schedules not looked at")
                pause = max(LOOK_SECONDS, backoff.next())
            await asyncio.sleep(pause)

    async def look(self) -> float:
        """Run what is due, and return the seconds until the next look."""
        now = self._clock()
        if self._looked_at is None or (now - self._looked_at).total_seconds() >= DEPARTED_SECONDS:
            self._looked_at = now
            await self._database(pause_departed, now=now)
        found = await self._database(run_due, now=now)
        for id in found.launched:
            logger.info("execution=%s launched by a schedule", id)
        if found.next_at is None:
            return LOOK_SECONDS
        return max(0.0, min(LOOK_SECONDS, (found.next_at - self._clock()).total_seconds()))
