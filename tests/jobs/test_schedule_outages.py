"""Schedules in bad times: what ended is not known yet, clocks disagree, one person has thousands; none is skipped wrongly."""

import asyncio
from datetime import timedelta

import pytest

from dashboard.jobs.job_records import schedules_of
from grid.configuration import SCHEDULED_RUNS_PER_MINUTE, SCHEDULES_PER_PERSON, SCHEDULES_PER_PROJECT
from grid.controller.firstround import PATIENCE_SECONDS, FirstRound
from grid.core.errors import ClusterUnavailable, Rejected
from grid.executions.launchrequest import JobSettings
from grid.jobs import schedules
from grid.jobs.schedulehistory import LateReason, entry_words
from grid.jobs.scheduler import FINISHING_SECONDS, run_schedule
from grid.jobs.schedules import ScheduleSettings
from grid.kube.resources import PODS
from grid.models import ConfigRecord, Execution, Job, JobRun, Schedule, State, User
from tests.conftest import People
from tests.controller.world import World, in_world
from tests.jobs.test_schedules import HOUR, fresh, history_of, job, run_at, runs, scheduled
from tests.platformhealth.test_running import running as controlled
from tests.support.flood import flood_of_schedules
from tests.support.shop import NOW, Shop, job_scheduler
from tests.support.virtual import until

__all__ = ["job"]
MINUTE = timedelta(minutes=1)
FLOOD = 300
DUE = NOW + MINUTE


def attempt_of(number: int) -> Execution:
    return Execution.objects.get(run__number=number)


@pytest.mark.parametrize("overlap", ["skip", "replace"])
def test_ended_run_not_yet_moved_on_counts_as_ended(job: Job, overlap: str) -> None:
    schedule = scheduled(job, overlap=overlap)
    run_at(1)
    Execution.objects.filter(run__number=2).update(state=State.SUCCEEDED, ended_at=NOW, settled_at=NOW)
    run_at(2)
    assert runs(schedule) == [(2, "10:00", "succeeded"), (3, "11:00", "")]
    assert (history_of(schedule), attempt_of(3).state) == ([], "queued")


@pytest.mark.parametrize("overlap", ["skip", "replace"])
def test_scheduled_time_waits_for_a_finishing_run(job: Job, overlap: str) -> None:
    schedule = scheduled(job, overlap=overlap)
    run_at(1)
    finishing = Execution.objects.filter(run__number=2)
    finishing.update(state=State.FINISHING, state_since=NOW + 2 * HOUR, reason="completed")
    run_at(2)
    assert (runs(schedule), history_of(schedule), schedule.next_at) == ([(2, "10:00", "")], [], NOW + 2 * HOUR)
    assert finishing.get().stop_requested_at is None
    finishing.update(state=State.SUCCEEDED, ended_at=NOW, settled_at=NOW)
    run_at(2, minutes=1)
    assert runs(schedule) == [(2, "10:00", "succeeded"), (3, "11:00", "")]


def test_stuck_pod_is_not_waited_for_forever(job: Job) -> None:
    schedule = scheduled(job)
    run_at(1)
    since = NOW + 2 * HOUR - timedelta(seconds=FINISHING_SECONDS)
    Execution.objects.filter(run__number=2).update(state=State.FINISHING, state_since=since, reason="completed")
    run_at(2)
    assert history_of(schedule) == ["4 Mar 11:00 skipped: run 2 had not ended."]


def test_already_run_schedule_moves_on_and_delays_no_other(job: Job) -> None:
    """A controller whose clock was ahead has run it; the clock of whoever edited it then was behind."""
    first, second = scheduled(job), scheduled(job, time_zone="Europe/Berlin")
    run_at(1)
    Schedule.objects.update(next_at=NOW + HOUR)
    JobRun.objects.filter(schedule=second).update(schedule=None, outcome="succeeded", ended_at=NOW)
    JobRun.objects.filter(schedule=first).update(outcome="succeeded", ended_at=NOW)
    run_at(1)
    assert (fresh(first).next_at, len(runs(first))) == (NOW + 2 * HOUR, 1)
    assert history_of(first) == ["4 Mar 10:00 skipped: there is a run for that time already."]
    assert len(runs(second)) == 1
    run_at(2)
    assert [at for _, at, _ in runs(first)] == ["10:00", "11:00"]


@in_world
async def test_endings_without_leader_are_known_before_schedules_run(shop: Shop, job: Job) -> None:
    schedule = scheduled(job, overlap="skip")
    world = World()
    async with controlled(world):
        world.passes(3600)
        await until(lambda: len(runs(schedule)) == 1, within=30)
        first = attempt_of(2)
        await until(lambda: len(world.pods()) == 1, within=10)
        world.schedule(world.pod_of(first))
        await until(lambda: attempt_of(2).state == "preparing", within=5)
        world.start(world.pod_of(first))
        await until(lambda: attempt_of(2).state == "running", within=5)
    world.finish(world.pod_of(first), 0)
    world.passes(2 * 3600)  # two times pass; the last of them is due
    world.cluster.fail_next(ClusterUnavailable("No answer."), 3, verb="list")
    async with controlled(world):
        await until(lambda: attempt_of(2).state in ("finishing", "succeeded"), within=60)
        for pod in world.pods():
            world.cluster.remove(PODS, pod["metadata"]["name"], namespace=pod["metadata"]["namespace"])
        await until(lambda: len(runs(schedule)) == 2, within=20)
    assert runs(schedule) == [(2, "10:00", "succeeded"), (3, "12:00", "")]
    assert not any("had not ended" in sentence for sentence in history_of(schedule))


@in_world
async def test_first_round_waits_for_pods_and_executions(shop: Shop) -> None:
    is_known, enqueued = [False], list[str]()
    first_round = FirstRound(lambda: is_known[0], {"a", "b"}, enqueued.append)
    task = asyncio.create_task(first_round.run())
    await asyncio.sleep(2 * PATIENCE_SECONDS)
    assert enqueued == []
    is_known[0] = True
    await until(lambda: sorted(enqueued) == ["a", "b"], within=1)
    first_round.reconciled("a")
    await asyncio.sleep(1)
    assert not task.done()
    first_round.reconciled("b")
    await until(task.done, within=1)


@pytest.fixture
def others(shop: Shop, people: People, job: Job) -> Schedule:
    """Another person's schedule, which is due after a flood of the job's owner."""
    launched = shop.launch(people.teammate, kind="job", environment=shop.job, job=JobSettings(command="true"))
    Execution.objects.filter(pk=launched.pk).update(state="succeeded", ended_at=NOW, settled_at=NOW)
    JobRun.objects.filter(job=launched.pk).update(outcome="succeeded", ended_at=NOW)
    schedule = schedules.create(launched.pk, ScheduleSettings(cron="* * * * *"), now=NOW)
    Schedule.objects.filter(pk=schedule.pk).update(next_at=DUE + timedelta(seconds=1))
    flood_of_schedules(job, FLOOD, due=DUE)
    return schedule


def runs_of(user: User) -> int:
    return JobRun.objects.filter(schedule__isnull=False, job__owner=user).count()


@in_world
async def test_flood_of_schedules_is_served_up_to_minute_limit(others: Schedule, people: People) -> None:
    ConfigRecord.objects.create(key=SCHEDULED_RUNS_PER_MINUTE.key, value="7")
    now = DUE + timedelta(seconds=2)
    scheduler = job_scheduler(lambda: now)
    while await scheduler.run_once() == 0:
        pass
    assert (runs_of(people.owner), runs_of(people.teammate)) == (7, 1)
    now += MINUTE
    while await scheduler.run_once() == 0:
        pass
    assert runs_of(people.owner) == 14
    second = JobRun.objects.filter(job__owner=people.owner, requested_at=now).earliest("pk").schedule
    assert second is not None
    assert entry_words(second.history[0])[1] == (
        "4 Mar 09:01 missed: it was not looked at in time. Schedules of alice have asked for 7 runs within a minute, and no more may be; "
        "an admin can change that."
    )


def test_a_run_that_is_asked_for_late_says_why(job: Job) -> None:
    schedule = schedules.create(job.pk, ScheduleSettings(cron="1 * * * *"), now=NOW)
    run_schedule(schedule.pk, now=DUE + 3 * MINUTE, late=LateReason(of_owner=2999))
    schedule.refresh_from_db()
    sentence = "4 Mar 09:01 asked for at 4 Mar 09:04. 2,999 other schedules of alice were due at once."
    assert [entry_words(entry)[1] for entry in schedule.history] == [sentence]
    run = JobRun.objects.get(schedule=schedule)
    assert (run.due_at, run.requested_at) == (DUE, DUE + 3 * MINUTE)


@in_world
async def test_delayed_schedule_says_why_on_its_page(others: Schedule, people: People) -> None:
    flooding = Schedule.objects.filter(job__owner=people.owner).latest("pk")
    (line,) = schedules_of(flooding.job_id, DUE + timedelta(seconds=29))
    assert line.waits == ""
    (line,) = schedules_of(flooding.job_id, DUE + MINUTE)
    assert line.waits == (
        f"It is late. 299 other schedules of {people.owner} were due at once. It runs by itself when its turn comes."
    )
    (line,) = schedules_of(others.job_id, DUE + MINUTE)
    assert "300 schedules of other people were due at once." in line.waits


def test_schedule_beyond_limit_is_refused_with_advice(job: Job) -> None:
    flood_of_schedules(job, 3, due=DUE)
    for setting, whose in ((SCHEDULES_PER_PERSON, "one person"), (SCHEDULES_PER_PROJECT, "one project")):
        ConfigRecord.objects.create(key=setting.key, value="3")
        with pytest.raises(Rejected) as refused:
            schedules.create(job.pk, ScheduleSettings(cron="0 * * * *"), now=NOW)
        assert f"has 3 schedules, and {whose} may have 3. Delete those" in refused.value.sentences
        ConfigRecord.objects.all().delete()
    assert schedules.create(job.pk, ScheduleSettings(cron="0 * * * *"), now=NOW).pk
