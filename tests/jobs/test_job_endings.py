"""How runs end when that is close: stopped at the moment of success, beside a job that fails, told once; and what a sweep costs."""

import logging
import sqlite3
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.db import IntegrityError, OperationalError, transaction

from grid.core.errors import Rejected
from grid.core.labels import KEYS
from grid.executions import lifecycle
from grid.executions.launchrequest import JobSettings
from grid.executions.lifecycle import Transition
from grid.executions.stopping import request_stop
from grid.jobs import jobruns, jobs
from grid.jobs.deadlines import Deadline, DeadlineWatch, coming_deadlines, tell_deadlines
from grid.jobs.jobruns import advance_all
from grid.jobs.scheduler import pause_departed
from grid.kube.objects import Metadata, Pod, PodSpec, PodStatus
from grid.models import Execution, Job, JobRun, Membership, Notification, NotificationChoice, RunSettings, State
from grid.models.dataplane import LOCAL
from grid.projects.departures import stop_departed
from tests.controller.world import World, in_world, to_running
from tests.jobs.test_jobs import LATER, ended, fresh, launched, start
from tests.jobs.test_schedules import job, scheduled
from tests.notifications.test_sender import at_once
from tests.support.shop import NOW, Shop

FAILED = Transition(State.FAILED, "exit_code", "Exit code 1.", level="Warning")
SUCCEEDED = Transition(State.SUCCEEDED, "completed", "")
MINUTE = timedelta(minutes=1)
TWO_HOURS = 7200
__all__ = ["job"]  # a fixture


def enter(run: JobRun, change: Transition) -> None:
    """The latest attempt ends as the controller ends it, and the run moves on; long enough after for the next attempt."""
    attempt = run.attempts.latest("attempt")
    assert lifecycle.enter(attempt.pk, change, revision=attempt.revision, left=attempt.state, now=NOW)
    advance_all([run.job_id], now=LATER)


def notices() -> list[tuple[str, str, str]]:
    return list(Notification.objects.order_by("pk").values_list("event", "path", "sentence"))


def sweep(job: Job, rows: int = 3) -> Sequence[JobRun]:
    return jobs.start_sweep(job.pk, [{"lr": str(number)} for number in range(rows)], by="alice", now=NOW)


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.FAILED])
def test_stop_of_ended_run_changes_nothing_and_followers_start(shop: Shop, state: State) -> None:
    """The controller has written the end of the attempt, and the run has not been moved on yet."""
    first = launched(shop).runs.get()
    other = shop.request(kind="job", environment=shop.job, title="Score")
    follower = jobs.create(other, after=first, now=NOW, job_id="second")
    ended(first, state)
    assert jobs.stop_runs(first.job_id, by="bob", now=NOW) == 0
    assert fresh(first).outcome == ("succeeded" if state == State.SUCCEEDED else "failed")
    assert fresh(follower).attempts.count() == (1 if state == State.SUCCEEDED else 0)
    assert follower.outcome == ("" if state == State.SUCCEEDED else "not_started")


def test_buggy_job_delays_no_other_and_is_logged(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = launched(shop)
    shop.launch(kind="job", environment=shop.job, title="Score")
    right = Job.objects.get(title="Score")
    for started in (wrong, right):
        ended(started.runs.get(), State.SUCCEEDED)
    lock = jobruns.lock_job

    def fails(job_id: str) -> Job | None:
        if job_id == wrong.pk:
            raise KeyError("a bug")
        return lock(job_id)

    monkeypatch.setattr(jobruns, "lock_job", fails)
    with caplog.at_level(logging.ERROR):
        assert advance_all([right.pk, wrong.pk], now=NOW) == []
    assert fresh(right.runs.get()).outcome == "succeeded"
    assert f"job={wrong.pk} not moved on" in caplog.text


def test_busy_database_is_raised_for_a_later_try(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    job = launched(shop)
    trouble, cause = OperationalError("database is locked"), sqlite3.OperationalError()
    trouble.__cause__, cause.sqlite_errorname = cause, "SQLITE_BUSY"

    def fails(job_id: str) -> Job | None:
        raise trouble

    monkeypatch.setattr(jobruns, "lock_job", fails)
    with pytest.raises(OperationalError):
        advance_all([job.pk], now=NOW)


def test_failed_run_is_notified_once_whatever_its_attempts(shop: Shop) -> None:
    run = launched(shop, retries=1, retry_seconds=1).runs.get()
    enter(run, FAILED)
    assert (fresh(run).attempts.count(), notices()) == (2, [])
    enter(run, FAILED)
    last = run.attempts.latest("attempt")
    assert notices() == [("failed", f"/executions/{last.pk}/", "Attempt 2 of 2 failed: Exit code 1.")]
    assert Notification.objects.get().title == "Train"


def test_run_never_launched_is_notified_with_its_job(shop: Shop) -> None:
    first = launched(shop).runs.get()
    start(first.job, after=first)
    enter(first, FAILED)
    sentence = "It was to start after run 1 of Train, which failed."
    assert [notice for notice in notices() if sentence in notice] == [("failed", f"/jobs/{first.job_id}/", sentence)]


def test_sweep_is_notified_once_when_all_runs_ended(shop: Shop) -> None:
    job = launched(shop)
    enter(job.runs.get(), SUCCEEDED)
    runs = sweep(job)
    for run in runs[:2]:
        enter(run, FAILED)
    assert notices() == []
    enter(runs[2], SUCCEEDED)
    sentence = "The sweep has ended: of 3 runs, 1 succeeded and 2 failed."
    assert notices() == [("failed", f"/jobs/{job.pk}/?sweep=2", sentence)]


def test_start_is_notified_once_per_run_and_sweep(shop: Shop) -> None:
    NotificationChoice.objects.create(user=shop.people.owner, event="started", in_page=True, email=False, webhook=False)
    job = launched(shop, retries=1, retry_seconds=1)
    running = Transition(State.RUNNING, "ready", "")
    enter(job.runs.get(), running)
    enter(job.runs.get(), FAILED)
    enter(job.runs.get(), running)
    for run in sweep(job):
        enter(run, running)
    first = job.runs.get(number=2).attempts.get()
    assert [path for event, path, _ in notices()] == [f"/executions/{job.pk}/", f"/executions/{first.pk}/"]


def test_settings_that_no_run_has_any_more_are_deleted(shop: Shop) -> None:
    job = launched(shop, command="first")
    jobs.stop_runs(job.pk, by="alice", now=NOW)
    for command in ("second", "third"):
        Execution.objects.all().delete()
        JobRun.objects.all().delete()
        settings = JobSettings(command=command)
        jobs.edit(job.pk, title="Train", environment=shop.job, tier=shop.tier, settings=settings, now=NOW)
        start(job)
    assert RunSettings.objects.get().record["job"]["command"] == "third"


def test_sweep_with_oversized_parameters_is_refused(shop: Shop) -> None:
    job = launched(shop)
    with pytest.raises(Rejected, match="use at most 5,000,000") as refused:
        jobs.start_sweep(job.pk, [{"lr": "x" * 20_000}] * 300, by="alice", now=NOW)
    assert refused.value.problems[0].path == "table" and job.runs.count() == 1


def test_repeated_request_with_same_key_runs_once(shop: Shop) -> None:
    job = launched(shop)
    asked: dict[str, Any] = {"by": "alice", "now": NOW}
    rows = [{"lr": "1"}, {"lr": "2"}]
    once = jobs.start_sweep(job.pk, rows, request_key="a", **asked)
    again = jobs.start_sweep(job.pk, rows, request_key="a", **asked)
    assert [run.pk for run in once] == [run.pk for run in again]
    assert start(job, request_key="b") == start(job, request_key="b") != start(job, request_key="c")
    assert start(job) != start(job), "without a key each is a run"
    with pytest.raises(IntegrityError), transaction.atomic():
        JobRun.objects.create(job=job, number=99, settings=job.run_settings.get(), request_key="a")


def pod(
    id: str = "abc", *, limit: int | None = TWO_HOURS, started: timedelta = 111 * MINUTE, phase: str = "Running"
) -> Pod:
    return Pod(
        metadata=Metadata(name=f"job-{id}", namespace="x", labels={KEYS.execution: id}),
        spec=PodSpec(active_deadline_seconds=limit),
        status=PodStatus(phase=phase, start_time=NOW - started),
    )


def test_a_deadline_is_near_ten_minutes_before_it() -> None:
    assert coming_deadlines([pod(started=109 * MINUTE)], NOW) == {}
    deadlines = coming_deadlines([pod(started=110 * MINUTE)], NOW)
    assert deadlines == {"abc": Deadline(NOW + 10 * MINUTE, timedelta(hours=2))}
    assert coming_deadlines([pod(started=120 * MINUTE)], NOW) == {}, "it is over"


def test_deadlines_skip_short_timeouts_and_inactive_pods() -> None:
    gone = msgspec.structs.replace(pod(), metadata=msgspec.structs.replace(pod().metadata, deletion_timestamp=NOW))
    idle = msgspec.structs.replace(pod(), status=PodStatus(phase="Pending"))
    pods = [pod(limit=3600, started=55 * MINUTE), pod(limit=None), pod(phase="Failed"), gone, idle]
    assert [coming_deadlines([inactive], NOW) for inactive in pods] == [{}] * len(pods)
    assert coming_deadlines([pod(limit=3601, started=55 * MINUTE)], NOW) != {}


@pytest.fixture
def running(shop: Shop) -> Execution:
    execution = shop.launch(kind="job", environment=shop.job, title="Train")
    execution.state = State.RUNNING
    execution.save(update_fields=["state"])
    return execution


@pytest.mark.django_db
def test_deadline_is_notified_once_with_time_and_next_step(running: Execution) -> None:
    coming = coming_deadlines([pod(running.pk)], NOW)
    for _ in range(2):
        tell_deadlines(coming, now=NOW)
    notice = Notification.objects.get()
    assert (notice.event, notice.title) == ("stopping_soon", "Train")
    assert notice.sentence == (
        "Its timeout of 2 h ends it in 9 minutes, at 09:09 UTC. "
        "What it has written to the project's files stays. Give the job a longer timeout before its next run."
    )


@pytest.mark.django_db
def test_stopping_or_gone_execution_gets_no_deadline_notification(running: Execution) -> None:
    request_stop(running, by="root", now=NOW)
    tell_deadlines({running.pk: Deadline(NOW + MINUTE, 2 * 60 * MINUTE), "gone": Deadline(NOW, MINUTE)}, now=NOW)
    assert not Notification.objects.exists()


@pytest.mark.django_db
@in_world
async def test_database_is_queried_once_near_the_deadline(running: Execution) -> None:
    asked = []

    async def database(work: object, /, *args: object, **kwargs: object) -> object:
        asked.append(work)
        return await at_once(work, *args, **kwargs)  # type: ignore[arg-type]

    pods: list[Pod] = []
    watch = DeadlineWatch(lambda: pods, database, lambda: NOW)  # type: ignore[arg-type]
    await watch.run_once()
    assert asked == []
    pods.append(pod(running.pk))
    await watch.run_once()
    await watch.run_once()
    assert asked == [tell_deadlines]


def notices_of_stops(event: str) -> list[tuple[str, str, str]]:
    rows = Notification.objects.filter(event=event).order_by("pk")
    return list(rows.values_list("user__username", "sentence", "path"))


@pytest.mark.django_db
@in_world
async def test_departing_member_is_notified_once_about_stops(shop: Shop) -> None:
    theirs = shop.launch(shop.people.teammate)
    shop.launch(shop.people.owner)
    world = World()
    await to_running(world, world.controller())
    shop.project.members.remove(shop.people.teammate)
    for _ in range(2):
        stop_departed(LOCAL, now=world.now)
    why = "bob has left the project Churn. It is stopped in 10 minutes, unless bob is back by then."
    assert notices_of_stops("stopping_soon") == [("bob", why, "/projects/")], "the execution's page is closed to him"
    assert Notification.objects.get(event="stopping_soon").execution_id == theirs.pk


@pytest.mark.django_db
@in_world
async def test_demoted_viewer_is_notified_with_link_to_open_page(shop: Shop) -> None:
    theirs = shop.launch(shop.people.teammate)
    world = World()
    await to_running(world, world.controller())
    Membership.objects.filter(user=shop.people.teammate).update(role="viewer")
    stop_departed(LOCAL, now=world.now)
    [(_, sentence, path)] = notices_of_stops("stopping_soon")
    assert sentence.startswith("bob is a viewer of the project Churn now. It is stopped in 10 minutes")
    assert path == f"/executions/{theirs.pk}/"


@pytest.mark.django_db
def test_schedule_paused_by_rule_is_notified_with_reason(job: Job) -> None:
    scheduled(job)
    Membership.objects.filter(user=job.owner).update(role="viewer")
    for _ in range(2):
        pause_departed(now=NOW)
    [(user, sentence, path)] = notices_of_stops("schedule_paused")
    assert (user, path) == (job.owner.username, f"/jobs/{job.pk}/")
    assert sentence == f"Paused: {job.owner.username} is a viewer of the project {job.project.name} now."
