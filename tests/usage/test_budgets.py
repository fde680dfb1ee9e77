"""Budgets of projects: what is refused and waits, who is told, and what is stopped."""

from collections.abc import Callable
from typing import Any

import pytest

from grid.core.errors import Rejected
from grid.executions.launchrequest import JobSettings
from grid.jobs import jobs, schedules
from grid.jobs.jobruns import advance_all, jobs_due
from grid.jobs.schedulehistory import entry_words
from grid.jobs.schedules import ScheduleSettings
from grid.models import BudgetMonth, Execution, Job, JobRun, Notification, Project, State
from grid.models.dataplane import LOCAL
from grid.usage.budgets import keeper as spending
from grid.usage.budgets.closing import closed_projects
from grid.usage.budgets.keeper import BudgetKeeper, count
from tests.controller.world import in_world
from tests.notifications.test_sender import at_once as directly
from tests.queue.test_at_once import at_once
from tests.support.database import on_file as on_file
from tests.support.shop import NOW, OWNER, Shop, admit_waiting, run_due
from tests.usage.budgeting import APRIL, HOUR, MINUTE, budget, messages, notified, spend, use_up

# --- What is refused, and what waits ---


@pytest.mark.django_db
def test_launch_is_refused_from_stop_line_until_budget_rises(shop: Shop) -> None:
    budget(shop)
    spend(shop, "99.99")
    count(now=NOW)
    shop.launch()
    spend(shop, "0.01")
    count(now=NOW)
    with pytest.raises(Rejected) as refused:
        shop.launch(shop.people.teammate)
    assert refused.value.problems[0].code == "over_budget"
    assert "has spent $100.00 of its $100.00 for March." in messages(refused.value)
    assert "alice, can ask for that" in messages(refused.value)
    budget(shop, "101")
    shop.launch()


@pytest.mark.django_db
def test_only_the_month_of_an_amount_is_closed(shop: Shop) -> None:
    use_up(shop)
    shop.launch(project=_project_of(shop.people.owner))
    assert closed_projects(["churn"], APRIL - MINUTE)
    assert closed_projects(["churn"], APRIL) == {}
    count(now=APRIL)
    assert BudgetMonth.objects.get(month=APRIL.date()).spent == 0
    budget(shop, None)
    shop.launch()


@pytest.mark.django_db
def test_waiting_launch_starts_once_the_budget_is_raised(shop: Shop) -> None:
    budget(shop)
    waits = shop.launch()
    other = shop.launch(project=_project_of(shop.people.owner), after=1)
    spend(shop, "100")
    count(now=NOW)
    assert admit_waiting(LOCAL, now=NOW) == [other.pk], "it lets others pass"
    waits.refresh_from_db()
    assert (waits.state, waits.reason) == (State.QUEUED, "over_budget")
    assert waits.words(OWNER).startswith(
        "The project Churn has reached the stop line of its budget for March, $100.00."
    )
    written = waits.revision
    spend(shop, "0.01")
    count(now=NOW + MINUTE)
    admit_waiting(LOCAL, now=NOW + MINUTE)
    waits.refresh_from_db()
    assert waits.revision == written, "what is spent meanwhile changes nothing for what waits"
    budget(shop, "200")
    assert admit_waiting(LOCAL, now=NOW) == [waits.pk]


@pytest.fixture
def job(shop: Shop) -> Job:
    shop.launch(kind="job", environment=shop.job, title="Train", job=JobSettings(command="python train.py", retries=1))
    job = Job.objects.get()
    end(job)
    return job


def end(job: Job, state: State = State.SUCCEEDED) -> None:
    Execution.objects.filter(run__job=job).update(
        state=state, message="Over.", reason_values=None, ended_at=NOW, settled_at=NOW
    )
    advance_all([job.pk], now=NOW)


@pytest.mark.django_db
def test_runs_requested_earlier_wait_for_the_budget(shop: Shop, job: Job) -> None:
    Job.objects.update(at_once=1)
    budget(shop)
    jobs.start_sweep(job.pk, [{"x": "1"}, {"x": "2"}], by="alice", now=NOW)
    spend(shop, "100")
    count(now=NOW)
    end(job)
    second = JobRun.objects.latest("number")
    assert (second.outcome, second.attempts.count()) == ("", 0)
    assert "has spent $100.00 of its $100.00" in second.words
    assert second.words.endswith("It is tried again by itself.")
    assert not jobs_due(NOW + 9 * MINUTE), "thousands of waiting runs are not written again and again"
    assert jobs_due(NOW + 10 * MINUTE).keys() == {job.pk}
    budget(shop, "200", now=NOW + MINUTE)
    assert advance_all(jobs_due(NOW + MINUTE), now=NOW + MINUTE)
    assert second.attempts.count() == 1


@pytest.mark.django_db
def test_schedule_says_what_it_skipped_and_goes_on(shop: Shop, job: Job) -> None:
    schedule = schedules.create(job.pk, ScheduleSettings(cron="0 * * * *"), now=NOW)
    use_up(shop)
    for hours in range(1, 5):
        run_due(now=NOW + hours * HOUR)
    schedule.refresh_from_db()
    assert schedule.paused_at is None, "it is not paused: the month ends by itself"
    assert JobRun.objects.filter(schedule=schedule).count() == 0
    assert len(schedule.history) == 4
    assert entry_words(schedule.history[-1])[1].startswith(
        "4 Mar 10:00 skipped: The project Churn has spent $100.00 of its $100.00"
    )
    budget(shop, "200")
    run_due(now=NOW + 5 * HOUR)
    assert JobRun.objects.filter(schedule=schedule).count() == 1


# --- Who is told, and what is stopped ---


@pytest.mark.django_db
def test_owner_and_admins_are_told_each_line_monthly(shop: Shop) -> None:
    budget(shop)
    spend(shop, "80")
    for _ in range(3):
        count(now=NOW)
    assert [name for name, _ in notified()] == ["alice", "ada-admin"]
    assert "has spent $80.00 of its $100.00 for March. At $100.00 new launches are refused" in notified()[0][1]
    assert Notification.objects.filter(event="budget").first().path == "/projects/churn/budget/"  # type: ignore[union-attr]
    spend(shop, "20")
    for _ in range(3):
        count(now=NOW)
    assert [name for name, _ in notified()[2:]] == ["alice", "ada-admin"]
    assert "New launches are refused before 1 April (UTC)" in notified()[2][1]
    spend(shop, "90", at=APRIL + 2 * HOUR)
    count(now=APRIL + 2 * HOUR)
    assert len(notified()) == 6, "the next month tells its own"


@pytest.mark.django_db
def test_changed_budget_holds_at_once_and_tells_lines_anew(shop: Shop) -> None:
    spend(shop, "90")
    budget(shop)
    assert len(notified()) == 2, "the warning line, when it is set"
    budget(shop, "1000")
    assert len(notified()) == 2
    budget(shop, "90")
    assert len(notified()) == 4
    assert closed_projects(["churn"], NOW)


@pytest.mark.django_db
def test_running_execution_goes_on_unless_the_admin_chose_otherwise(shop: Shop) -> None:
    runs = running(shop)
    budget(shop)
    spend(shop, "100")
    for minutes in (0, 11):
        count(now=NOW + minutes * MINUTE)
    runs.refresh_from_db()
    assert runs.stop_requested_at is None
    assert notified("stopping_soon") == []
    budget(shop, at_stop="stop", now=NOW + HOUR)
    count(now=NOW + HOUR + 9 * MINUTE)
    runs.refresh_from_db()
    assert runs.stop_requested_at is None
    assert len(notified("stopping_soon")) == 1, "a late choice is told ten minutes before, too"
    count(now=NOW + HOUR + 10 * MINUTE)
    runs.refresh_from_db()
    assert runs.stop_requested_at is not None


def running(shop: Shop, **changes: Any) -> Execution:
    row = shop.launch(shop.people.teammate, title="Explore", **changes)
    Execution.objects.filter(pk=row.pk).update(state=State.RUNNING, slots_reserved_at=NOW)
    row.refresh_from_db()
    return row


@pytest.mark.django_db
def test_running_execution_is_stopped_ten_minutes_after_the_notice(shop: Shop) -> None:
    runs = running(shop)
    waits = shop.launch()
    other = running(shop, project=_project_of(shop.people.teammate))
    budget(shop, at_stop="stop")
    spend(shop, "100")
    for minutes in (0, 1, 9):
        count(now=NOW + minutes * MINUTE)
    assert [name for name, _ in notified("stopping_soon")] == ["bob"]
    assert "It is stopped in 10 minutes, at 09:10 UTC" in notified("stopping_soon")[0][1]
    runs.refresh_from_db()
    assert runs.stop_requested_at is None
    count(now=NOW + 10 * MINUTE)
    for row in (runs, waits, other):
        row.refresh_from_db()
    assert (runs.stop_requested_by, runs.stop_reason) == ("Compute Grid", "budget_used_up")
    assert waits.state == State.QUEUED
    assert other.stop_requested_at is None


def _project_of(owner: Any) -> Project:
    return Project.objects.start(id="other", name="Other", owner=owner)


@pytest.mark.django_db
@in_world
async def test_keeper_counts_again_and_again(shop: Shop) -> None:
    budget(shop)
    moment = [NOW]
    keeper = BudgetKeeper(directly, lambda: moment[0])
    await keeper.run_once()
    spend(shop, "85")
    await keeper.run_once()
    assert len(notified()) == 2
    moment[0] = APRIL
    await keeper.run_once()
    assert BudgetMonth.objects.count() == 2


# --- Two at once ---


def test_two_controllers_tell_a_line_once_and_admit_none(on_file: Shop) -> None:
    budget(on_file, at_stop="stop")
    running(on_file)
    waits = on_file.launch()
    spend(on_file, "100")
    counting: list[Callable[[], object]] = [lambda: count(now=NOW)] * 3
    at_once(*counting)
    admitted: list[str] = []
    at_once(*[lambda: admitted.extend(admit_waiting(LOCAL, now=NOW))] * 2, *counting)
    assert [name for name, _ in notified()] == ["alice", "ada-admin"]
    assert len(notified("stopping_soon")) == 1
    assert admitted == []
    waits.refresh_from_db()
    assert waits.reason == "over_budget"


def test_budget_set_while_it_is_counted_is_in_force(on_file: Shop) -> None:
    spend(on_file, "50")
    budget(on_file, "1000")
    at_once(lambda: budget(on_file, "40"), lambda: count(now=NOW), lambda: admit_waiting(LOCAL, now=NOW))
    count(now=NOW)
    with pytest.raises(Rejected, match="has spent"):
        on_file.launch()


@pytest.mark.django_db
def test_budget_raised_while_counted_is_not_told_as_reached(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = running(shop)
    budget(shop, at_stop="stop")
    spend(shop, "100")
    spent = spending.spent

    def raised_meanwhile(*asked: Any) -> spending.Spent:
        amounts = spent(*asked)
        monkeypatch.setattr(spending, "spent", spent)
        budget(shop, "1000")
        return amounts

    monkeypatch.setattr(spending, "spent", raised_meanwhile)
    count(now=NOW)
    assert notified() == notified("stopping_soon") == []
    budget(shop, "100")
    assert len(notified()) == 2
    monkeypatch.setattr(spending, "spent", raised_meanwhile)
    count(now=NOW + 11 * MINUTE)
    runs.refresh_from_db()
    assert runs.stop_requested_at is None
