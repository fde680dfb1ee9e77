"""One gate says whether something may start, also before a launch is stored: everybody who asks hears the same of the same facts."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from dashboard.jobs.job_records import schedules_of
from grid.announcements.maintenance import MAINTENANCE
from grid.configuration import GLOBAL_QUEUE_LIMIT, MAXIMUM_EXECUTIONS_PER_USER, WAITING_PER_PERSON, WAITING_PER_PROJECT
from grid.core.errors import Rejected
from grid.core.reasons import Reason
from grid.diagnosis.launchfit import QueuePlace
from grid.executions.launchrequest import JobSettings, LaunchRequest
from grid.executions.request import draft
from grid.jobs import jobs, schedules
from grid.jobs.jobruns import advance_all
from grid.jobs.schedules import ScheduleSettings
from grid.models import (
    Announcement,
    BudgetMonth,
    Execution,
    HardwareTier,
    Job,
    JobRun,
    Membership,
    ProjectBudget,
    State,
    Workspace,
)
from grid.models.dataplane import LOCAL
from grid.projects.departures import why_departed
from grid.queue import ordering, snapshot, takeover
from grid.queue.gate import HELD, QUEUE_FULL, TAKEN_OVER, GateFacts, held, refusal, taken_over, why_not_start, words_of
from grid.queue.launches import look_ahead
from grid.queue.quota import Part, QueuedUnit, QuotaSnapshot, admit, order
from grid.usage.budgets.rules import CLOSED, month_of
from grid.workspaces import workspaces
from tests.clusters.cluster_requests import alone, attached
from tests.support.shop import NOW, OWNER, Shop, admit_waiting, run_due

HOUR = timedelta(hours=1)
Configure = Callable[[Any, int], None]
DEPARTED, HOLD = Reason("inactive", {"owner": "alice"}), held("olga", "Not now.")
UPGRADE = Reason(MAINTENANCE, {"text": "Upgrade", "until": None})
TAKEOVER = taken_over("mara", NOW + HOUR, "A node burns")
USED_UP = Reason(CLOSED, {"project": "Churn", "line": "90", "spent": "91", "month": "2026-03-01", "owner": ""})
ALL = GateFacts(UPGRADE, TAKEOVER, {"churn": USED_UP}, {(1, "churn"): DEPARTED})
NEXT = NOW + timedelta(minutes=1)


def test_gate_gives_first_reason_in_order() -> None:
    taken = GateFacts(takeover=TAKEOVER, budgets={"churn": USED_UP})
    in_order: list[tuple[Reason | None, str | None]] = [
        (why_not_start(ALL, 1, "churn", HOLD), "inactive"),
        (why_not_start(ALL, 2, "churn", HOLD), HELD),
        (why_not_start(ALL, 2, "churn"), MAINTENANCE),
        (why_not_start(taken, 2, "churn"), TAKEN_OVER),
        (why_not_start(taken, 2, "churn", is_in_front=True), CLOSED),
        (why_not_start(taken, 2, "other", is_in_front=True), None),
    ]
    for reason, code in in_order:
        assert (reason.code if reason else None) == code


def test_waiting_reason_leaves_out_what_grows() -> None:
    waits = why_not_start(GateFacts(budgets={"churn": USED_UP}), 1, "churn")
    assert waits is not None
    assert waits.values == {name: value for name, value in USED_UP.values.items() if name != "spent"}
    assert "has reached the stop line of its budget for March, $90.00." in words_of(waits)


def test_closed_unit_lets_others_pass_without_a_position() -> None:
    def unit(id: str, user: int = 1, closed: Reason | None = None) -> QueuedUnit:
        return QueuedUnit(user, NOW, (Part(id, "job", ("small",)),), closed=closed)

    units = (unit("a", closed=UPGRADE), unit("b"), unit("c", 2), unit("d"), unit("e", closed=HOLD))
    queue = QuotaSnapshot(units, (), slots_per_user=1, tier_maximum={"small": 2})
    decisions = admit(queue)
    assert set(decisions.admitted) == {"b", "c"}
    assert {id: (refused.code, refused.position) for id, refused in decisions.refused.items()} == {
        "a": (MAINTENANCE, 0),
        "d": ("over_user_slots", 1),
        "e": (HELD, 0),
    }
    assert set(order(queue)) == {"b", "c", "d"}


def announce_maintenance(shop: Shop, waits: Execution) -> None:
    Announcement.objects.create(text="Upgrade", from_at=NOW, no_launches_from=NOW, until_at=NOW + 9 * HOUR)


def use_up_budget(shop: Shop, waits: Execution) -> None:
    ProjectBudget.objects.create(project=shop.project, amount=Decimal(10))
    BudgetMonth.objects.create(project=shop.project, month=month_of(NOW), spent=Decimal(12), counted_at=NOW)


def take_over(shop: Shop, waits: Execution) -> None:
    takeover.take_over(by=shop.people.operator, minutes=60, reason="A node burns", now=NOW)


def hold(shop: Shop, waits: Execution) -> None:
    ordering.hold(waits.pk, by=shop.people.operator, reason="Not now", now=NOW)


def leave_project(shop: Shop, waits: Execution) -> None:
    Membership.objects.filter(user=shop.people.owner).delete()


def close_account(shop: Shop, waits: Execution) -> None:
    shop.people.owner.is_active = False
    shop.people.owner.save()


Close = Callable[[Shop, Execution], None]
# What has happened, the code by which what waits is kept, and that by which a launch is refused.
TABLE: list[tuple[Close, str, str | None]] = [
    (announce_maintenance, MAINTENANCE, MAINTENANCE),
    (use_up_budget, CLOSED, CLOSED),
    (take_over, TAKEN_OVER, None),
    (hold, HELD, None),
    (leave_project, "not_contributor", "not_contributor"),
    (close_account, "inactive", "inactive"),
]


@pytest.fixture
def waits(shop: Shop) -> Execution:
    return shop.launch()


@pytest.fixture
def job(shop: Shop) -> Job:
    shop.launch(kind="job", environment=shop.job, title="Train", job=JobSettings(command="python train.py"))
    Execution.objects.filter(kind="job").update(state=State.SUCCEEDED, ended_at=NOW, settled_at=NOW)
    made = Job.objects.get()
    advance_all([made.pk], now=NOW)
    return made


@pytest.fixture
def stopped(shop: Shop) -> Workspace:
    execution = shop.launch(after=-60)
    Execution.objects.filter(pk=execution.pk).update(state=State.STOPPED, ended_at=NOW, settled_at=NOW)
    assert execution.workspace is not None
    return execution.workspace


def refused_by(ask: Callable[[], object]) -> set[tuple[str, str]]:
    """The codes and sentences by which it is refused."""
    try:
        ask()
    except Rejected as refused:
        return {(problem.code, problem.message) for problem in refused.problems}
    return set()


@pytest.mark.django_db
@pytest.mark.parametrize(("close", "kept_by", "refused_code"), TABLE, ids=[close.__name__ for close, *_ in TABLE])
def test_all_who_ask_get_the_same_decision(
    shop: Shop, waits: Execution, job: Job, stopped: Workspace, close: Close, kept_by: str, refused_code: str | None
) -> None:
    schedule = schedules.create(job.pk, ScheduleSettings(cron="0 * * * *", missed="none"), now=NOW)
    unit = draft(shop.request(), now=NOW, execution_id="0123456789ab")
    close(shop, waits)

    (queued,) = snapshot.peek(LOCAL, now=NOW).snapshot.waiting
    assert queued.closed is not None
    assert queued.closed.code == kept_by
    assert admit_waiting(LOCAL, now=NOW) == []
    waits.refresh_from_db()
    assert (waits.reason, waits.words(OWNER)) == (kept_by, words_of(queued.closed))

    stopped = Workspace.objects.get(pk=stopped.pk)
    departed = why_departed(stopped.owner, stopped.project)
    form = look_ahead(unit, NOW).closed or departed
    assert (form.code if form else None) == refused_code
    if form is not None:
        assert (form.until, {**form.values, **queued.closed.values}) == (queued.closed.until, form.values)
    expected = {(refused_code, refusal(form).message)} if form is not None else set()

    def resume() -> object:
        return workspaces.resume(
            stopped.pk, environment=shop.workspace, tier=shop.tier, with_cluster=False, now=NOW + timedelta(seconds=1)
        )

    asks = (
        lambda: shop.launch(shop.people.owner),
        resume,
        lambda: jobs.start(job.pk, by="alice", now=NOW),
        lambda: jobs.start_sweep(job.pk, [{"x": "1"}], by="alice", now=NOW),
    )
    for answer in map(refused_by, asks):
        # A person who has departed is told in words of the place.
        assert {code for code, _message in answer} == {refused_code} if departed else answer == expected

    run_due(now=NOW + HOUR)
    assert JobRun.objects.filter(schedule=schedule).exists() is (refused_code is None)
    if form is not None:
        assert refusal(form).message in schedules_of(job.pk, NOW + HOUR)[0].history[0][1]


@pytest.mark.django_db
def test_full_queue_refuses_form_and_launch_alike(shop: Shop, waits: Execution, configure: Configure) -> None:
    take_over(shop, waits)  # so that nothing starts
    unit = draft(shop.request(), now=NOW, execution_id="0123456789ab")
    for setting, words in (
        (WAITING_PER_PERSON, "1 executions of yours wait for a free slot already, and no more of one person"),
        (WAITING_PER_PROJECT, "1 executions of this project wait for a free slot already, and no more of one project"),
        (GLOBAL_QUEUE_LIMIT, "1 executions wait for a free slot already, and the queue holds 1"),
    ):
        configure(setting, 1)
        form = look_ahead(unit, NOW).closed
        assert form is not None
        assert refusal(form).message.startswith(words)
        assert refused_by(lambda: shop.launch(after=1)) == {(QUEUE_FULL, refusal(form).message)}
        configure(setting, setting.default)


def place_of(request: LaunchRequest) -> QueuePlace:
    place = look_ahead(draft(request, now=NEXT, execution_id="0123456789ab"), NEXT).place
    assert place is not None
    return place


@pytest.mark.django_db
def test_person_with_free_slots_stands_in_no_queue(shop: Shop) -> None:
    assert look_ahead(draft(shop.request(), now=NEXT, execution_id="0123456789ab"), NEXT).place is None


@pytest.mark.django_db
def test_person_without_free_slots_queues_behind_earlier_launches(shop: Shop, configure: Configure) -> None:
    configure(MAXIMUM_EXECUTIONS_PER_USER, 1)
    shop.launch()
    Execution.objects.update(slots_reserved_at=NOW, state="running")
    shop.launch()
    place = place_of(shop.request())
    assert (place.position, place.for_good) == (2, False)
    assert "You use 1 of 1 slots" in place.message
    assert "Stop something" in place.sooner


@pytest.mark.django_db
def test_full_tier_is_queued_for_and_another_advised(shop: Shop) -> None:
    HardwareTier.objects.update(maximum_simultaneous=1)
    shop.launch(shop.people.teammate)
    Execution.objects.update(slots_reserved_at=NOW, state="running")
    place = place_of(shop.request())
    assert (place.position, place.for_good, place.sooner) == (1, False, "Choose another tier to start sooner.")


@pytest.mark.django_db
def test_launch_above_a_limit_would_never_leave_the_queue(shop: Shop, configure: Configure) -> None:
    HardwareTier.objects.update(maximum_simultaneous=1)
    assert place_of(attached(shop)).for_good
    HardwareTier.objects.update(maximum_simultaneous=None)
    configure(MAXIMUM_EXECUTIONS_PER_USER, 3)
    many_slots = place_of(alone(shop))
    assert (many_slots.for_good, many_slots.sooner) == (True, "")


@pytest.mark.django_db
def test_launch_stands_aside_while_queue_is_taken_over(shop: Shop) -> None:
    takeover.take_over(by=shop.people.operator, minutes=60, reason="A node burns", now=NOW)
    place = place_of(shop.request())
    assert (place.position, place.for_good) == (0, False)
    assert "decides by hand what starts" in place.message
