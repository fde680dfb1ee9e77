"""Runs the jobs whose schedules are due. `JobScheduler` wakes at the next time that is due, and looks every few seconds for new ones.

Several controllers may do this at once: a due time is decided under the lock of its job, in the transaction that moves the schedule on, and
the database takes one run for each. A process that ends between two steps loses nothing: the run is stored, and the next poll moves it on.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from django.db import IntegrityError, transaction

from grid.backoff import Backoff
from grid.databasetrouble import trouble_of
from grid.errors import Rejected
from grid.launch.jobrows import make_run, record_of
from grid.launch.jobruns import advance_all, end_finished
from grid.launch.jobs import stop_run
from grid.launch.lookingagain import DatabaseTask
from grid.launch.maintenance.gate import problems_of_maintenance, why_closed
from grid.launch.schedules import lock_schedule, may_not_run, note, timetable_of, why_owner_may_not, write_pause
from grid.launch.scheduletimes import due_times
from grid.models import Execution, Job, JobRun, Schedule, State
from grid.translation import gettext as _

logger = logging.getLogger(__name__)

LOOK_SECONDS = 5.0  # a new schedule is not due before it was seen, unless within these seconds
DEPARTED_SECONDS = 60.0  # between two looks at who may not launch any more
AT_ONCE = 100  # schedules in one look; the others are due at the next
MOST_QUEUED = 20  # runs of a schedule that wait or run; further ones are skipped
MOST_REFUSED = 3  # runs in a row that were not started
# How long it is waited for the pod of a program that has ended; one on a lost node may take for ever.
FINISHING_SECONDS = 60.0
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
    if problems_of_maintenance(now):
        # Those that make up for missed times stay due until it ends; the others say that they skip a time.
        due = due.exclude(missed=Schedule.Missed.ONCE)
    launched: list[str] = []
    for pk in list(due[:AT_ONCE]):
        try:
            launched += _run_or_move_on(pk, now)
        except Exception as error:
            if trouble_of(error) is not None:
                raise  # it concerns all
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


def _run_or_move_on(pk: int, now: datetime) -> list[str]:
    """Run a schedule that is due. When its time was run before, by a controller whose clock was ahead, move it on to the next."""
    try:
        return _run(pk, now)
    except IntegrityError as error:
        logger.warning("schedule=%s moved on without a run reason=%s", pk, error)
    with transaction.atomic():
        found = _lock(pk)
        if found is not None:
            _Decision(*found, now).move_on()
    return []


def _run(pk: int, now: datetime) -> list[str]:
    with transaction.atomic():
        found = _lock(pk)
        if found is None:
            return []
        followers = _Decision(*found, now).apply()
    launched = advance_all([found[1].pk, *followers], now=now)
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
    write_pause(
        schedule,
        now,
        why=_("Its last {count} runs were not started. {why}", count=MOST_REFUSED, why=last[0][1]),
    )
    return True


class _Decision:
    """What is done at a due time; the job is locked."""

    def __init__(self, schedule: Schedule, job: Job, now: datetime) -> None:
        self._schedule, self._job, self._now = schedule, job, now

    def apply(self) -> Sequence[str]:
        """Decide; return the jobs whose runs may start now, because a run that they wait for has ended."""
        schedule, now = self._schedule, self._now
        if schedule.next_at is None or schedule.next_at > now:
            return ()  # another controller was faster
        why = why_owner_may_not(self._job)
        if why:
            write_pause(schedule, now, why=why)
            return ()
        if _pause_if_refused(schedule, now):
            return ()
        try:
            timetable = timetable_of(schedule, now)
        except Rejected as unreadable:
            write_pause(schedule, now, why=unreadable.problems[0].message)
            return ()
        followers = end_finished(self._job, now=now)
        if self._is_finishing():
            return followers  # it is still due, and decided when the earlier run has ended
        due = due_times(timetable, schedule.next_at, now, runs_missed=schedule.missed == Schedule.Missed.ONCE)
        schedule.next_at = timetable.next(now)
        if due.missed:
            self._note_missed(*due.missed)
        if due.run:
            self._run(due.run)
        schedule.save()
        return followers

    def move_on(self) -> None:
        """Make a schedule that is due wait for its next time, without a run."""
        schedule, now = self._schedule, self._now
        if schedule.next_at is None or schedule.next_at > now:
            return
        self._note(_("{due} skipped: there is a run for that time already.", due=self._shown(schedule.next_at)))
        schedule.next_at = timetable_of(schedule, now).next(now)
        schedule.save()

    def _is_finishing(self) -> bool:
        """Return whether the program of an earlier run has ended, and its pod is about to be gone: such a run is neither skipped for nor
        stopped."""
        since = self._now - timedelta(seconds=FINISHING_SECONDS)
        attempts = Execution.objects.unsettled().filter(
            run__job=self._job, run__schedule=self._schedule, run__outcome=""
        )
        return attempts.filter(state=State.FINISHING, state_since__gt=since).exists()

    def _run(self, due: datetime) -> None:
        schedule, job = self._schedule, self._job
        still_open = list(JobRun.objects.filter(job=job, schedule=schedule, outcome="").order_by("number"))
        if still_open and schedule.overlap == Schedule.Overlap.SKIP:
            self._note(
                _("{due} skipped: run {number} had not ended.", due=self._shown(due), number=still_open[-1].number)
            )
            return
        if len(still_open) >= MOST_QUEUED and schedule.overlap == Schedule.Overlap.QUEUE:
            self._note(
                _("{due} skipped: {count} earlier runs had not ended.", due=self._shown(due), count=len(still_open))
            )
            return
        if closed := why_closed(job.project_id, self._now):
            self._note(_("{due} skipped: {why}", due=self._shown(due), why=closed[0].message))
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
                earlier.replaced_by = _("Replaced by run {number}, due {due}.", number=run.number, due=self._shown(due))
                earlier.save(update_fields=["replaced_by"])
                stop_run(earlier, by=REPLACING, now=self._now)
                self._note(
                    _(
                        "{due} replaced run {earlier} by run {number}.",
                        due=self._shown(due),
                        earlier=earlier.number,
                        number=run.number,
                    )
                )

    def _note_missed(self, first: datetime, last: datetime) -> None:
        sentence = _("{first} to {last} missed: it was not looked at in time.")
        if first == last:
            sentence = _("{first} missed: it was not looked at in time.")
        self._note(sentence.format(first=self._shown(first), last=self._shown(last)))

    def _note(self, sentence: str) -> None:
        note(self._schedule, self._now, sentence)

    def _shown(self, moment: datetime) -> str:
        return f"{moment.astimezone(ZoneInfo(self._schedule.time_zone)):%-d %b %H:%M}"


class JobScheduler(DatabaseTask):
    """Runs what is due; `run` until cancelled."""

    _looked_at: datetime | None = None  # at who may not launch any more

    async def run(self, *, after: Callable[[], Awaitable[None]]) -> None:
        """Look for ever, `after` what ended while nobody led is known: a schedule would skip its time for a run that has ended."""
        backoff = Backoff(rng=self._rng)
        await after()
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
