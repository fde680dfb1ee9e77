"""One person's schedules in thousands: another's is launched in the first look, caps hold, and what is late says why."""

from datetime import timedelta

import pytest

from dashboard.jobs.job_records import schedules_of
from grid.configuration import SCHEDULED_RUNS_PER_MINUTE, SCHEDULES_PER_PERSON, SCHEDULES_PER_PROJECT
from grid.core.errors import Rejected
from grid.executions.launchrequest import JobSettings
from grid.jobs import schedules
from grid.jobs.scheduler import LateReason, run_schedule
from grid.jobs.schedules import ScheduleSettings
from grid.models import ConfigRecord, Execution, Job, JobRun, Schedule, User
from tests.conftest import People
from tests.controller.world import in_world
from tests.jobs.test_schedules import job
from tests.support.flood import flood_of_schedules
from tests.support.schedules import job_scheduler
from tests.support.shop import NOW, Shop

__all__ = ["job"]

MINUTE = timedelta(minutes=1)
FLOOD = 300
DUE = NOW + MINUTE


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
    assert second.history[0][1] == (
        "4 Mar 09:01 missed: it was not looked at in time. Schedules of alice have asked for 7 runs within a minute, and no more may be; "
        "an admin can change that."
    )


def test_a_run_that_is_asked_for_late_says_why(job: Job) -> None:
    schedule = schedules.create(job.pk, ScheduleSettings(cron="1 * * * *"), now=NOW)
    run_schedule(schedule.pk, now=DUE + 3 * MINUTE, late=LateReason(of_owner=2999))
    schedule.refresh_from_db()
    sentence = "4 Mar 09:01 asked for at 4 Mar 09:04. 2,999 other schedules of alice were due at once."
    assert [entry for _, entry in schedule.history] == [sentence]
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
