"""Schedules: due once whoever looks, what happens while an earlier run has not ended, outages, and why a schedule is paused."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from grid.core.errors import Rejected
from grid.executions.launchrequest import JobSettings
from grid.jobs import scheduler, schedules
from grid.jobs.jobruns import advance_all
from grid.jobs.schedulehistory import entry_words
from grid.jobs.scheduler import pause_departed
from grid.jobs.schedules import ScheduleSettings
from grid.models import Execution, Job, JobRun, Membership, Schedule, State
from tests.conftest import People
from tests.controller.world import in_world
from tests.support.shop import NOW, Shop, job_scheduler, run_due
from tests.support.virtual import repeat

HOUR = timedelta(hours=1)


@pytest.fixture
def job(shop: Shop) -> Job:
    """A job whose first run has ended."""
    shop.launch(kind="job", environment=shop.job, title="Train", job=JobSettings(command="python train.py"))
    job = Job.objects.get()
    end(job.runs.get())
    return job


def scheduled(job: Job, cron: str = "0 * * * *", **settings: Any) -> Schedule:
    return schedules.create(job.pk, ScheduleSettings(cron=cron, **settings), now=NOW)


def run_at(*hours: float, minutes: int = 0) -> None:
    """Run what is due so many hours later, at each of these times."""
    for hour in hours:
        run_due(now=NOW + timedelta(hours=hour, minutes=minutes))


def end(run: JobRun, state: State = State.SUCCEEDED) -> None:
    attempt = run.attempts.latest("attempt")
    Execution.objects.filter(pk=attempt.pk).update(
        state=state, message="Over.", reason_values=None, ended_at=NOW, settled_at=NOW
    )
    advance_all([run.job_id], now=NOW)


def runs(schedule: Schedule) -> list[tuple[int, str, str]]:
    """Number, time and outcome of each run."""
    rows = JobRun.objects.filter(schedule=schedule).order_by("number")
    return [(run.number, f"{run.due_at:%H:%M}", run.outcome) for run in rows]


def history_of(schedule: Schedule) -> list[str]:
    return [entry_words(entry)[1] for entry in fresh(schedule).history]


def fresh(schedule: Schedule) -> Schedule:
    schedule.refresh_from_db()
    return schedule


def test_a_due_schedule_launches_a_run_and_moves_on(job: Job) -> None:
    schedule = scheduled(job, "30 * * * *", time_zone="Asia/Kathmandu")
    assert schedule.next_at == NOW + timedelta(minutes=45)
    run_at(0.7)
    assert runs(schedule) == []
    run_at(0.75)
    run = JobRun.objects.get(schedule=schedule)
    assert (run.due_at, run.requested_by, run.attempts.count()) == (schedule.next_at, "its schedule", 1)
    assert (fresh(schedule).last_at, schedule.next_at) == (run.due_at, NOW + timedelta(minutes=105))


def test_a_due_time_is_run_once_however_many_look(job: Job) -> None:
    schedule = scheduled(job)
    for _ in range(3):
        run_at(1)
    Schedule.objects.update(next_at=NOW + HOUR)
    with pytest.raises(IntegrityError), transaction.atomic():
        settings = job.run_settings.get()
        JobRun.objects.create(job=job, number=9, settings=settings, schedule=schedule, due_at=NOW + HOUR)
    assert runs(schedule) == [(2, "10:00", "")]


def test_time_is_skipped_and_recorded_while_run_is_active(job: Job) -> None:
    schedule = scheduled(job)
    run_at(1, 2)
    assert runs(schedule) == [(2, "10:00", "")]
    assert history_of(schedule) == ["4 Mar 11:00 skipped: run 2 had not ended."]
    end(JobRun.objects.get(number=2))
    run_at(3)
    assert runs(schedule) == [(2, "10:00", "succeeded"), (3, "12:00", "")]


def test_queued_run_starts_when_earlier_one_ended_anyhow(job: Job) -> None:
    scheduled(job, overlap="queue")
    run_at(1, 2)
    second = JobRun.objects.get(number=3)
    assert (second.words, second.attempts.count()) == ("It starts when run 2 of its schedule has ended.", 0)
    end(JobRun.objects.get(number=2), State.FAILED)
    second.refresh_from_db()
    assert (second.words, second.attempts.count()) == ("", 1)


def test_queued_run_waits_until_last_pod_is_gone(job: Job) -> None:
    scheduled(job, overlap="queue")
    run_at(1, 2)
    run = JobRun.objects.get(number=2)
    run.attempts.update(state=State.FAILED, ended_at=NOW, settled_at=None)
    for _ in range(2):
        advance_all([job.pk], now=NOW)
    assert JobRun.objects.get(number=2).outcome == "failed"
    assert JobRun.objects.get(number=3).attempts.count() == 0
    run.attempts.update(settled_at=NOW)
    advance_all([job.pk], now=NOW)
    assert JobRun.objects.get(number=3).attempts.count() == 1


def test_a_schedule_queues_no_more_than_so_many_runs(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "MOST_QUEUED", 2)
    schedule = scheduled(job, overlap="queue")
    run_at(1, 2, 3)
    assert len(runs(schedule)) == 2
    assert history_of(schedule) == ["4 Mar 12:00 skipped: 2 earlier runs had not ended."]


def test_replaced_run_is_stopped_before_next_starts(job: Job) -> None:
    schedule = scheduled(job, overlap="replace")
    run_at(1)
    first = JobRun.objects.get(number=2)
    first.attempts.update(state=State.RUNNING)
    run_at(2)
    attempt = first.attempts.get()
    assert (attempt.stop_requested_by, attempt.stop_reason) == ("Compute Grid", "replaced")
    assert JobRun.objects.get(number=3).attempts.count() == 0
    end(first, State.STOPPED)
    first.refresh_from_db()
    assert (first.outcome, first.words) == ("stopped", "Replaced by run 3, due 4 Mar 11:00.")
    assert JobRun.objects.get(number=3).attempts.count() == 1
    assert history_of(schedule) == ["4 Mar 11:00 replaced run 2 by run 3."]


def test_queued_execution_and_waiting_run_are_replaced_at_once(job: Job) -> None:
    schedule = scheduled(job, overlap="replace")
    run_at(1, 2, 3)
    assert runs(schedule) == [(2, "10:00", "stopped"), (3, "11:00", "stopped"), (4, "12:00", "")]
    assert JobRun.objects.get(number=4).attempts.count() == 1


@pytest.mark.parametrize(
    ("missed", "made", "history"),
    [
        ("once", ["13:00"], ["4 Mar 10:00 to 4 Mar 12:00 missed: it was not looked at in time."]),
        ("none", [], ["4 Mar 10:00 to 4 Mar 13:00 missed: it was not looked at in time."]),
    ],
)
def test_schedule_runs_once_or_never_after_an_outage(
    job: Job, missed: str, made: list[str], history: list[str]
) -> None:
    schedule = scheduled(job, missed=missed)
    run_at(4, minutes=30)
    assert [at for _, at, _ in runs(schedule)] == made
    assert history_of(schedule) == history
    assert schedule.next_at == NOW + 5 * HOUR


def test_paused_schedule_is_not_due_and_resumes_from_now(job: Job) -> None:
    schedule = scheduled(job)
    schedules.pause(schedule.pk, by="owner", now=NOW)
    run_at(5)
    assert (runs(schedule), history_of(schedule)) == ([], ["Paused by owner."])
    schedules.resume(schedule.pk, by="owner", now=NOW + 5 * HOUR)
    assert fresh(schedule).next_at == NOW + 6 * HOUR and schedule.paused_at is None
    assert history_of(schedule) == ["Resumed by owner.", "Paused by owner."]
    assert entry_words([NOW.isoformat(), "A text of before codes."]) == (NOW, "A text of before codes.")


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("left", "owner has left the project Churn."),
        ("views", "owner is a viewer of the project Churn now."),
        ("closed", "The account of owner was closed."),
        ("archived", "The project Churn was archived."),
    ],
)
@pytest.mark.parametrize("is_due", [True, False])
def test_schedule_of_owner_without_launch_right_is_paused(
    job: Job, people: People, how: str, why: str, is_due: bool
) -> None:
    schedule = scheduled(job)
    memberships = Membership.objects.filter(user=people.owner)
    if how == "left":
        memberships.delete()
    elif how == "views":
        memberships.update(role="viewer")
    elif how == "closed":
        type(people.owner).objects.filter(pk=people.owner.pk).update(is_active=False)
    else:
        type(job.project).objects.update(is_archived=True)
    if is_due:
        run_at(1)
    else:
        assert pause_departed(now=NOW) == 1
    why = why.replace("owner", people.owner.get_username())
    assert (history_of(schedule), runs(schedule)) == ([f"Paused: {why}"], [])
    with pytest.raises(Rejected):
        schedules.resume(schedule.pk, by="owner", now=NOW)
    assert pause_departed(now=NOW) == 0


def test_three_refused_runs_in_a_row_pause_the_schedule(job: Job, shop: Shop) -> None:
    schedule = scheduled(job)
    type(shop.tier).objects.filter(pk=shop.tier.pk).update(is_archived=True)
    run_at(1, 2)
    assert [outcome for _, _, outcome in runs(schedule)] == ["not_started"] * 2 and fresh(schedule).next_at
    run_at(3)
    assert "Its last 3 runs were not started. This hardware tier is no longer available" in history_of(schedule)[0]
    type(shop.tier).objects.filter(pk=shop.tier.pk).update(is_archived=False)
    schedules.resume(schedule.pk, by="owner", now=NOW + 3 * HOUR)
    run_at(4)
    assert runs(schedule)[-1] == (5, "13:00", "")


def test_a_schedule_that_is_sent_twice_is_stored_once(job: Job) -> None:
    scheduled(job)
    with pytest.raises(Rejected) as refused:
        scheduled(job, " 0 * * * * ", overlap="queue")
    assert [(problem.path, problem.code) for problem in refused.value.problems] == [("cron", "exists")]
    scheduled(job, time_zone="Asia/Kathmandu")
    assert Schedule.objects.count() == 2


def test_edited_schedule_uses_new_times_and_stays_paused(job: Job) -> None:
    schedule = scheduled(job)
    schedules.edit(schedule.pk, ScheduleSettings(cron="15 * * * *"), now=NOW)
    assert fresh(schedule).next_at == NOW + timedelta(minutes=15)
    schedules.pause(schedule.pk, by="owner", now=NOW)
    schedules.edit(schedule.pk, ScheduleSettings(cron="20 * * * *"), now=NOW)
    assert fresh(schedule).next_at is None


def test_deleted_schedule_ends_its_waiting_runs_only(job: Job) -> None:
    schedule = scheduled(job, overlap="queue")
    run_at(1, 2)
    for _ in range(2):
        schedules.delete(schedule.pk, by="owner", now=NOW)
    assert dict(JobRun.objects.filter(number__gt=1).values_list("number", "outcome")) == {2: "", 3: "stopped"}
    with pytest.raises(Rejected):
        schedules.pause(schedule.pk, by="owner", now=NOW)


@in_world
async def test_a_schedule_that_fails_keeps_no_other_waiting(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong, right = scheduled(job), scheduled(job, time_zone="Europe/Berlin")

    def fails(pk: int) -> Any:
        if pk == wrong.pk:
            raise RuntimeError("a bug")
        return schedules.lock_schedule(pk)

    monkeypatch.setattr(scheduler, "lock_schedule", fails)
    await job_scheduler(lambda: NOW + HOUR).run_once()
    assert len(runs(right)) == 1 and fresh(wrong).next_at == NOW + HOUR


@in_world
async def test_the_scheduler_wakes_at_the_time_that_is_due(job: Job) -> None:
    schedule = scheduled(job, "1-2 9 * * *", overlap="queue")
    loop = asyncio.get_running_loop()
    began = loop.time()

    def clock() -> datetime:
        return NOW + timedelta(seconds=57.5 + loop.time() - began)

    async def at_once() -> None:
        return

    task = asyncio.create_task(repeat(job_scheduler(clock).periodic(after=at_once)))
    await asyncio.sleep(66)
    task.cancel()
    made = JobRun.objects.filter(schedule=schedule).order_by("number")
    assert [(run.requested_at - run.due_at).total_seconds() < 0.1 for run in made if run.due_at] == [True, True]
