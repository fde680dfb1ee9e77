"""CronJobs start Jobs when their time has come, as a recorded controller did, and keep as many finished ones as they should."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from grid.sandbox.client import CRON_JOBS, EVENTS, JOBS, Object, format_time, name_of
from grid.sandbox.controllers.cronjob import CronJobController
from grid.sandbox.controllers.cronrules import SCHEDULED_AT, Timetable, superfluous
from grid.sandbox.controllers.job import JobController
from grid.sandbox.controllers.scheduler import Scheduler
from tests.sandbox.controllers.replay import recording
from tests.sandbox.controllers.test_recorded_jobs import EndingKubelet, ask
from tests.sandbox.support import FastClock, Plan, add_namespace, add_node, api_server, make_node, running
from tests.support.waiting import eventually

_MADE = datetime(2026, 11, 24, 4, 0, 30, tzinfo=UTC)


def ticking(schedule: str = "* * * * *", *, last: datetime | None = None, **spec: Any) -> Object:
    pod = {"restartPolicy": "Never", "containers": [{"name": "run", "image": "registry.example/app:1"}]}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"template": {"spec": pod}}}
    metadata = {"name": "tick", "namespace": "default", "uid": "c", "creationTimestamp": format_time(_MADE)}
    status = {"lastScheduleTime": format_time(last)} if last else {}
    return {"metadata": metadata, "spec": {"schedule": schedule, "jobTemplate": template, **spec}, "status": status}


def after(**amount: float) -> datetime:
    return _MADE + timedelta(**amount)


def test_before_its_first_time_nothing_is_due_and_the_next_look_is_a_moment_after_it() -> None:
    timetable = Timetable(ticking())
    assert timetable.due(after(seconds=29)) == (None, False)
    assert timetable.seconds_until_next(_MADE) == pytest.approx(30.1)
    assert timetable.due(after(seconds=30.1)) == (after(seconds=30), False)


def test_of_several_missed_times_the_latest_is_served() -> None:
    assert Timetable(ticking()).due(after(minutes=5)) == (after(minutes=4, seconds=30), False)
    assert Timetable(ticking()).due(after(minutes=100)) == (after(minutes=99, seconds=30), False)
    assert Timetable(ticking()).due(after(minutes=102)) == (after(minutes=101, seconds=30), True)
    assert Timetable(ticking(startingDeadlineSeconds=90)).due(after(minutes=102)) == (
        after(minutes=101, seconds=30),
        False,
    )


def test_a_served_time_is_not_due_again() -> None:
    timetable = Timetable(ticking(last=after(seconds=30)))
    assert timetable.due(after(seconds=31)) == (None, False)
    assert timetable.seconds_until_next(after(seconds=31)) == pytest.approx(59.1)


def test_a_time_is_too_late_after_the_starting_deadline() -> None:
    timetable = Timetable(ticking("0 * * * *", startingDeadlineSeconds=10))
    assert not timetable.is_too_late(_MADE, after(seconds=10))
    assert timetable.is_too_late(_MADE, after(seconds=11))
    assert not Timetable(ticking()).is_too_late(_MADE, after(days=1))


def test_a_job_is_named_after_its_minute_and_says_it_in_the_zone_of_the_schedule() -> None:
    minute = after(seconds=30)
    job = Timetable(ticking()).make_job(minute)
    assert job["metadata"] == {
        "name": f"tick-{int(minute.timestamp()) // 60}",
        "namespace": "default",
        "labels": {"a": "b"},
        "annotations": {SCHEDULED_AT: "2026-11-24T04:01:00Z"},
    }
    abroad = Timetable(ticking(timeZone="Asia/Kolkata")).make_job(minute)
    assert abroad["metadata"]["annotations"][SCHEDULED_AT] == "2026-11-24T09:31:00+05:30"


def test_the_oldest_finished_jobs_beyond_the_limits_go() -> None:
    def job(name: str, end: str) -> Object:
        conditions = [{"type": end, "status": "True"}] if end else []
        return {
            "metadata": {"name": name},
            "status": {"startTime": f"2026-11-24T04:0{name}:00Z", "conditions": conditions},
        }

    jobs = [job("3", "Complete"), job("1", "Complete"), job("2", "Complete"), job("4", "Failed"), job("0", "")]
    cron_job = ticking(successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0)
    assert [name_of(item) for item in superfluous(cron_job, jobs)] == ["1", "2", "4"]
    assert superfluous(ticking(), jobs) == []


async def test_a_recorded_cron_job_starts_its_job_and_sees_it_complete(tmp_path: Path) -> None:
    record = recording("cronjob")
    namespace = record["namespace"]
    written = [entry["status"] for entry in record["timeline"] if entry["kind"] == "cronjob"]
    told = [entry for entry in record["timeline"] if entry["kind"] == "event" and entry["object"] == "CronJob/tick"]
    clock = FastClock(speed=15)
    async with api_server(tmp_path, clock) as client:
        await add_namespace(client, namespace)
        await add_node(client, make_node("node-0", now=clock.now()))
        kubelet = EndingKubelet(client, clock, Plan(ready=0.3), ends=[("Succeeded", 1.0)] * 9)
        parts = (
            CronJobController(client, clock=clock),
            JobController(client, clock=clock),
            Scheduler(client, clock=clock),
        )
        async with running(*parts, kubelet):
            await ask(client, record["timeline"][0]["request"])
            cron_job = await eventually(
                lambda: client.get(CRON_JOBS.path(namespace, "tick")),
                holds=lambda cron_job: "lastSuccessfulTime" in cron_job["status"],
            )
            await client.patch(CRON_JOBS.path(namespace, "tick"), {"spec": {"suspend": True}})
            [job] = await client.list(JOBS.path(namespace))
        events = await client.list(EVENTS.path(namespace))
    assert set(cron_job["status"]) == set(written[-1])
    scheduled = datetime.fromisoformat(cron_job["status"]["lastScheduleTime"])
    assert scheduled.second == 0
    assert name_of(job) == f"tick-{int(scheduled.timestamp()) // 60}"
    assert job["metadata"]["annotations"] == {SCHEDULED_AT: cron_job["status"]["lastScheduleTime"]}
    mine = [item for item in events if item["involvedObject"]["kind"] == "CronJob"]
    theirs = Counter((entry["reason"], entry["message"].replace("29920612", "N")) for entry in told)
    number = name_of(job).removeprefix("tick-")
    assert Counter((item["reason"], item["message"].replace(number, "N")) for item in mine) == theirs


@pytest.mark.parametrize(
    ("policy", "active", "reason"), [("Forbid", 1, "JobAlreadyActive"), ("Replace", 1, "SuccessfulDelete")]
)
async def test_a_job_that_still_runs_holds_back_the_next_or_makes_room(
    policy: str, active: int, reason: str, tmp_path: Path
) -> None:
    clock = FastClock(speed=30)
    async with api_server(tmp_path, clock) as client:
        spec = {**ticking("@every 20s")["spec"], "concurrencyPolicy": policy}
        body = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick"}, "spec": spec}
        async with running(CronJobController(client, clock=clock)):
            await client.create(CRON_JOBS.path("default"), body)
            await eventually(
                lambda: client.list(EVENTS.path("default")),
                holds=lambda events: reason in {item["reason"] for item in events},
            )
            await eventually(lambda: client.list(JOBS.path("default")), holds=lambda jobs: len(jobs) == active)
