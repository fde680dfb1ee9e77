"""Maintenance: from a time on nothing new is launched; queued executions wait for its end, and owners of running ones are notified."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from grid.announcements import maintenance as rules
from grid.announcements.maintenance import (
    Maintenance,
    coming_sentence,
    in_force,
    reason_of,
    refused_sentence,
    tell_owners,
    told_sentence,
)
from grid.configuration import MAXIMUM_EXECUTIONS_PER_USER
from grid.core.errors import Rejected
from grid.executions.launchrequest import JobSettings
from grid.jobs import jobs, schedules
from grid.jobs.jobruns import advance_all, jobs_due
from grid.jobs.schedulehistory import entry_words
from grid.jobs.schedules import ScheduleSettings
from grid.models import Announcement, AnnouncementReader, Execution, Job, JobRun, Notification, State, User
from grid.models.dataplane import LOCAL
from grid.notifications.outbox import tell_of_maintenance
from grid.queue.gate import words_of
from grid.workspaces import workspaces
from tests.controller.world import fresh
from tests.queue.test_at_once import at_once
from tests.support.database import on_file as on_file
from tests.support.shop import NOW, OWNER, Shop, admit_waiting, run_due

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
Configure = Callable[[Any, int], None]


def maintenance(start: int, end: int | None, text: str = "Upgrade") -> Maintenance:
    """From so many hours after `NOW` on."""
    return Maintenance(text, NOW + start * HOUR, None if end is None else NOW + end * HOUR, text)


def announce(
    start: float = 0, end: float | None = 9, text: str = "Kubernetes is upgraded", **fields: Any
) -> Announcement:
    until = None if end is None else NOW + end * HOUR
    given = {"from_at": NOW - HOUR, "until_at": until, "no_launches_from": NOW + start * HOUR} | fields
    return Announcement.objects.create(text=text, **given)


def sent() -> list[tuple[str, str]]:
    rows = Notification.objects.filter(event="maintenance").order_by("pk")
    return list(rows.values_list("user__username", "sentence"))


# --- The rule ---


def test_maintenance_holds_from_its_start_until_before_its_end() -> None:
    planned = maintenance(1, 2)
    assert [in_force([planned], NOW + hours * HOUR) for hours in (0, 1, 2)] == [None, planned, None]
    assert in_force([maintenance(1, None)], NOW + 9000 * HOUR) is not None


def test_overlapping_maintenance_that_ends_last_counts() -> None:
    short, longer, endless = maintenance(0, 1), maintenance(0, 2), maintenance(0, None)
    for several in ((short, longer), (longer, short)):
        assert in_force(several, NOW) == longer
    for all in ((endless, short, longer), (short, longer, endless)):
        assert in_force(all, NOW) == endless


def test_sentences_say_until_when_in_the_operators_words() -> None:
    night = maintenance(9, 21)
    reason = reason_of(night)
    assert words_of(reason) == "Maintenance until 5 March, 06:00 UTC: Upgrade. It starts by itself afterwards."
    assert (reason.code, reason.until) == ("maintenance", night.ends_at)
    assert refused_sentence(reason_of(maintenance(0, None, "Upgrade!")).values) == (
        "Maintenance until an operator ends it: Upgrade! No new launches before it ends."
    )
    assert coming_sentence(night) == "No new launches from 4 March, 18:00 UTC, until 5 March, 06:00 UTC: Upgrade."
    assert told_sentence(night, list("abcdefg")).endswith(
        "7 running executions of yours continue: a, b, c, d, e and 2 more. "
        "Once they have stopped, they cannot be launched again before it ends."
    )
    assert "1 running execution of yours continues: a. Once it has stopped, it cannot" in told_sentence(night, ["a"])


# --- Launches ---


@pytest.mark.django_db
def test_launches_are_refused_in_maintenance_with_operator_text(shop: Shop) -> None:
    announce(start=1)
    shop.launch()
    for launch in (shop.launch, shop.launch_cluster, shop.launch_with_cluster):
        with pytest.raises(Rejected) as refused:
            launch(after=3600)
        assert [(problem.code, problem.message) for problem in refused.value.problems] == [
            (
                "maintenance",
                "Maintenance until 4 March, 18:00 UTC: Kubernetes is upgraded. No new launches before it ends.",
            )
        ]
    shop.launch(after=9 * 3600)


@pytest.mark.django_db
def test_queued_executions_wait_and_start_after_maintenance(shop: Shop) -> None:
    row = shop.launch()
    announce(end=30)
    assert admit_waiting(LOCAL, now=NOW) == []
    row.refresh_from_db()
    assert (row.state, row.reason) == (State.QUEUED, "maintenance")
    assert (
        row.words(OWNER)
        == "Maintenance until 5 March, 15:00 UTC: Kubernetes is upgraded. It starts by itself afterwards."
    )
    written = row.revision
    assert admit_waiting(LOCAL, now=NOW + 29 * HOUR) == [], "it does not time out meanwhile"
    row.refresh_from_db()
    assert row.revision == written, "nothing is written again"
    assert admit_waiting(LOCAL, now=NOW + 30 * HOUR) == [row.pk]


@pytest.mark.django_db
def test_maintenance_time_does_not_count_as_waiting(shop: Shop, configure: Configure) -> None:
    configure(MAXIMUM_EXECUTIONS_PER_USER, 1)
    first, second = shop.launch(), shop.launch(after=1)
    announce(end=30)
    assert admit_waiting(LOCAL, now=NOW + 29 * HOUR) == []
    assert admit_waiting(LOCAL, now=NOW + 31 * HOUR) == [first.pk]
    assert fresh(second).reason == "over_user_slots"
    admit_waiting(LOCAL, now=NOW + 55 * HOUR)
    assert fresh(second).reason == "over_quota_timeout"


@pytest.fixture
def job(shop: Shop) -> Job:
    shop.launch(kind="job", environment=shop.job, title="Train", job=JobSettings(command="python train.py"))
    job = Job.objects.get()
    end(job)
    return job


def end(job: Job) -> None:
    Execution.objects.filter(run__job=job).update(
        state=State.SUCCEEDED, message="Over.", reason_values=None, ended_at=NOW, settled_at=NOW
    )
    advance_all([job.pk], now=NOW)


@pytest.mark.django_db
def test_runs_are_refused_and_earlier_sweep_waits_for_end(shop: Shop, job: Job) -> None:
    Job.objects.update(at_once=1)
    jobs.start_sweep(job.pk, [{"x": "1"}, {"x": "2"}], by="alice", now=NOW)
    announce()
    end(job)
    second = JobRun.objects.latest("number")
    assert (second.outcome, second.attempts.count()) == ("", 0)
    assert second.words.startswith("Maintenance until 4 March, 18:00 UTC: Kubernetes is upgraded.")
    for ask in (
        lambda: jobs.start(job.pk, by="alice", now=NOW),
        lambda: jobs.start_sweep(job.pk, [{"x": "1"}], by="alice", now=NOW),
    ):
        with pytest.raises(Rejected, match="Maintenance until"):
            ask()
    over = NOW + 9 * HOUR
    assert advance_all(jobs_due(over), now=over)
    assert second.attempts.count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("missed", "runs", "history"),
    [
        ("once", ["04 Mar 12:00"], "4 Mar 10:00 to 4 Mar 11:00 missed"),
        ("none", [], "4 Mar 10:00 skipped: Maintenance until 4 March, 12:30 UTC"),
    ],
)
def test_schedules_choose_about_missed_times(shop: Shop, job: Job, missed: str, runs: list[str], history: str) -> None:
    schedule = schedules.create(job.pk, ScheduleSettings(cron="0 * * * *", missed=missed), now=NOW)
    announce(end=3.5)
    for minute in range(0, 231, 10):
        run_due(now=NOW + minute * MINUTE)
    due = JobRun.objects.filter(schedule=schedule).order_by("due_at").values_list("due_at", flat=True)
    assert [f"{moment:%d %b %H:%M}" for moment in due] == runs
    schedule.refresh_from_db()
    assert entry_words(schedule.history[-1])[1].startswith(history)
    assert schedule.next_at == NOW + 4 * HOUR
    assert schedule.paused_at is None


@pytest.mark.django_db
def test_workspace_in_restart_resumes_after_maintenance(shop: Shop) -> None:
    row = shop.launch()
    assert row.workspace_id
    Execution.objects.filter(pk=row.pk).update(state=State.RUNNING)
    workspaces.request_restart(row.workspace_id, by="alice", now=NOW)
    Execution.objects.filter(pk=row.pk).update(state=State.STOPPED, ended_at=NOW, settled_at=NOW)
    announce()
    assert workspaces.resume_restarted(now=NOW) == []
    assert len(workspaces.resume_restarted(now=NOW + 9 * HOUR)) == 1


# --- Who is told ---


def running(shop: Shop, owner: User | None = None, title: str = "Explore", *, after: int = -7200) -> Execution:
    row = shop.launch(owner, title=title, after=after)
    Execution.objects.filter(pk=row.pk).update(state=State.RUNNING, slots_reserved_at=NOW)
    return row


@pytest.mark.django_db
def test_owner_of_running_executions_is_notified_once(shop: Shop) -> None:
    running(shop)
    running(shop, title="Train", after=-3600)
    shop.launch(shop.people.teammate, after=-7200)
    announce(start=2, from_at=NOW)
    assert tell_owners(now=NOW - MINUTE) == 0, "not before it is shown"
    assert [tell_owners(now=NOW + minutes * MINUTE) for minutes in range(3)] == [1, 0, 0]
    sentence = (
        "No new launches from 4 March, 11:00 UTC, until 4 March, 18:00 UTC: Kubernetes is upgraded. "
        "2 running executions of yours continue: Explore and Train. "
        "Once they have stopped, they cannot be launched again before it ends."
    )
    assert sent() == [("alice", sentence)]
    running(shop, shop.people.teammate)
    assert tell_owners(now=NOW + 5 * MINUTE) == 1, "who starts something afterwards is told, too"
    assert tell_owners(now=NOW + 9 * HOUR) == 0


@pytest.mark.django_db
def test_killed_controller_notifies_the_rest_and_nobody_twice(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    running(shop)
    running(shop, shop.people.teammate)
    announce()
    calls = list[User]()

    def dies_at_the_second(user: User, sentence: str, *, now: datetime) -> None:
        calls.append(user)
        if len(calls) == 2:
            raise KeyboardInterrupt
        tell_of_maintenance(user, sentence, now=now)

    with monkeypatch.context() as patch:
        patch.setattr(rules, "tell_of_maintenance", dies_at_the_second)
        with pytest.raises(KeyboardInterrupt):
            tell_owners(now=NOW)
    assert tell_owners(now=NOW) == 1
    assert sorted(name for name, _ in sent()) == ["alice", "bob"]


def test_two_controllers_at_once_tell_each_owner_once(on_file: Shop) -> None:
    running(on_file)
    running(on_file, on_file.people.teammate)
    announce()
    at_once(*[lambda: tell_owners(now=NOW)] * 3)
    assert sorted(name for name, _ in sent()) == ["alice", "bob"]
    assert AnnouncementReader.objects.filter(told_at__isnull=False).count() == 2
