"""Budgets on pages: meter, course, form, what is left for a launch; sums count each second once. Who may open them: tests/access."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings, strategies as st

from dashboard.usage.viewmodels.budgets import budget_view, left_words
from grid.controller.downtime import Downtime
from grid.models import (
    AuditEntry,
    BudgetMonth,
    DailyUsage,
    Execution,
    Job,
    JobRun,
    MonthlyUsage,
    Project,
    ProjectBudget,
    UsageInterval,
)
from grid.usage import dailyusage
from grid.usage.budgets import keeper as spending
from grid.usage.budgets.keeper import count, set_budget
from grid.usage.budgets.rules import Budget
from tests.clusters.clustering import make_interval
from tests.conftest import People, client_of
from tests.controller.world import World, fresh, in_world
from tests.executions.executing import ATTACHED, make_environment, make_execution, make_project, make_workspace
from tests.platformhealth.test_running import comes_up, running as controlled
from tests.support.golden import assert_golden
from tests.support.shop import NOW, Shop
from tests.support.virtual import passes
from tests.test_query_plans import scans
from tests.usage.budgeting import DAY, HOUR, MARCH, MINUTE, budget, interval, notified, spend
from tests.usage.test_budgets import running
from tests.workspaces.workspaces import resume, sent

PATH = "/projects/churn/budget/"
POSTED = {"amount": "100", "warning_percent": "80", "stop_percent": "100", "at_stop": "refuse"}
CHURN = Budget("churn", "Churn", Decimal(100))
TENTH = datetime(2026, 3, 10, 12, tzinfo=UTC)
MOMENTS = st.integers(-3 * 1440, 34 * 1440).map(lambda minute: MARCH + minute * MINUTE)
INTERVALS = st.lists(
    st.tuples(
        MOMENTS, st.integers(0, 4000), st.sampled_from(["0", "0.0125", "1", "33.3333"]), st.sampled_from(["open", "ended", "gone"])
    ),
    max_size=12,
)  # fmt: skip


def costs(*amounts: int) -> dict[date, Decimal]:
    """Of the days of March, the first first."""
    return {date(2026, 3, day): Decimal(amount) for day, amount in enumerate(amounts, start=1)}


METERS = {
    "on its way": (costs(5, 0, 0, 10, 10, 10, 10, 10, 10, 5), TENTH),
    "near": (costs(85), TENTH),
    "full": (costs(150), TENTH),
    "just begun": (costs(3), datetime(2026, 3, 1, 5, tzinfo=UTC)),
    "the second day": (costs(3), datetime(2026, 3, 2, 5, tzinfo=UTC)),
}
SPENT_AND_PRICES = ["60 0.50", "99.99 0.50", "0 0.01", "0 0", "100 0.50"]


def test_meters_and_launches_say_what_is_left_as_stored() -> None:
    blocks = []
    for name, (by_day, now) in METERS.items():
        view = budget_view(CHURN, by_day, now)
        heights = [bar.height for bar in view.bars]
        blocks.append(
            f"> {name}\n{view.severity}, {view.share} %: {view.headline}. {view.state} {view.projection} {heights}"
        )
    for numbers in SPENT_AND_PRICES:
        spent, price = map(Decimal, numbers.split())
        blocks.append(f"> ${spent} spent, ${price} an hour\n{left_words(CHURN, spent, price, TENTH)}")
    assert_golden("words-of-meters", "\n".join(blocks), ending="txt")


@pytest.mark.django_db
@pytest.mark.usefixtures("runtime")
class TestPages:
    @pytest.fixture
    def project(self, people: People) -> Project:
        """With one execution that has cost twelve dollars this month."""
        project = make_project(people.owner, people.teammate)
        execution = make_execution(people.owner, project)
        row = make_interval(execution, "u1", price="12", began=0, ended=60)
        month = datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        UsageInterval.objects.filter(pk=row.pk).update(began_at=month, ended_at=month + timedelta(hours=1))
        return project

    def set_by_admin(self, people: People, **changed: str) -> None:
        answer = client_of(people.admin).post(PATH, POSTED | changed)
        assert answer.status_code == 302, answer.content

    def test_admin_sets_budget_in_force_and_audited(self, people: People, project: Project) -> None:
        self.set_by_admin(people)
        stored = ProjectBudget.objects.get()
        assert (stored.amount, stored.warning_percent, stored.at_stop) == (Decimal(100), 80, "refuse")
        self.set_by_admin(people, amount="10", at_stop="stop")
        assert BudgetMonth.objects.get().spent == 12
        created, changed = AuditEntry.objects.filter(object_type="projectbudget").order_by("at")
        assert (created.action, created.actor_name, created.object_id) == ("created", "ada-admin", "churn")
        assert changed.changes == {"amount": ["100.00", "10.00"], "at_stop": ["refuse", "stop"]}
        page = client_of(people.admin).get(PATH).content.decode()
        assert "$12.00 of $10.00 spent" in page
        assert "At the stop line" in page[page.index("History") :]

    def test_empty_amount_takes_it_away(self, people: People, project: Project) -> None:
        self.set_by_admin(people)
        self.set_by_admin(people, amount="")
        assert ProjectBudget.objects.get().amount is None
        page = client_of(people.owner).get(PATH).content.decode()
        assert "This project has no budget." in page

    @pytest.mark.parametrize(
        ("changed", "field"),
        [
            ({"amount": "0"}, "amount"),
            ({"amount": "NaN"}, "amount"),
            ({"amount": "1" * 30}, "amount"),
            ({"stop_percent": "101"}, "stop_percent"),
            ({"warning_percent": "90", "stop_percent": "80"}, "warning_percent"),
            ({"warning_percent": "\0"}, "warning_percent"),
        ],
    )
    def test_wrong_value_is_refused_at_its_field(
        self, people: People, project: Project, changed: dict[str, str], field: str
    ) -> None:
        answer = client_of(people.admin).post(PATH, POSTED | changed)
        assert answer.status_code == 400
        assert field in answer.context["form"].errors
        assert not ProjectBudget.objects.exists()

    def test_members_and_observers_see_it_on_the_projects_page(self, people: People, project: Project) -> None:
        self.set_by_admin(people)
        assert client_of(people.stranger).get("/projects/churn/").status_code == 404
        project.members.add(people.stranger, through_defaults={"role": "viewer"})
        for person in (people.owner, people.teammate, people.stranger, people.operator, people.admin):
            page = client_of(person).get("/projects/churn/").content.decode()
            assert "$12.00 of $100.00 spent" in page, person
            assert f'href="{PATH}"' in page

    def test_launch_card_says_the_rest_and_then_the_refusal(self, people: People, project: Project) -> None:
        client = client_of(people.owner)
        posted = {name: ATTACHED[name] for name in ("kind", "project", "environment", "tier", "token")}
        assert "Budget" not in client.post("/launch/estimate/", posted).content.decode()
        set_budget(ProjectBudget(project=project, amount=Decimal(100)), now=datetime.now(UTC))
        assert "$88.00 of $100.00 left for" in client.post("/launch/estimate/", posted).content.decode()
        set_budget(ProjectBudget(project=project, amount=Decimal(12)), now=datetime.now(UTC))
        count(now=datetime.now(UTC))
        card = client.post("/launch/estimate/", posted).content.decode()
        assert "Not accepted now" in card
        assert "has spent $12.00 of its $12.00" in card
        before = Execution.objects.count()
        answer = client.post("/launch/", posted)
        assert "has spent $12.00 of its $12.00" in answer.content.decode()
        assert Execution.objects.count() == before

    def test_resumed_workspace_and_run_are_refused_with_the_sentence(self, people: People, project: Project) -> None:
        workspace = make_workspace(people.owner, project)
        script = make_environment("script", kind="job", port=None)
        fields = {"project": "churn", "environment": script.pk, "tier": "small", "command": "python train.py"}
        assert client_of(people.owner).post("/launch/", {"kind": "job", "token": "t1", **fields}).status_code == 302
        job = Job.objects.get()
        set_budget(ProjectBudget(project=project, amount=Decimal(12)), now=datetime.now(UTC))
        for answer in (resume(people.owner, workspace), sent(people.owner, f"/jobs/{job.pk}/run/", **fields)):
            assert answer[0] != 302
            assert "has spent $12.00 of its $12.00" in answer[1]
        assert JobRun.objects.count() == 1


@pytest.mark.django_db
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(intervals=INTERVALS, now=MOMENTS)
def test_spending_is_the_sum_of_each_pod_second(
    shop: Shop, intervals: list[tuple[datetime, int, str, str]], now: datetime
) -> None:
    UsageInterval.objects.all().delete()
    DailyUsage.objects.all().delete()
    MonthlyUsage.objects.all().delete()
    Execution.objects.all().delete()
    other = Project.objects.filter(pk="other").first() or Project.objects.start(
        id="other", name="Other", owner=shop.people.owner
    )
    row = shop.launch()
    begin = now.replace(day=1, hour=0, minute=0)
    end = min(now, (begin + 31 * DAY).replace(day=1))
    expected = dict.fromkeys(("churn", "other"), Decimal(0))
    for number, (began, minutes, price, how) in enumerate(intervals):
        ended = None if how == "open" else began + minutes * MINUTE
        if began > now or (ended is not None and ended > now):
            continue  # nothing is recorded before it happens
        project = other.pk if number % 3 == 0 else shop.project.pk
        held = interval(row, began, ended, price=price, project=project)
        seconds = max(timedelta(), min(ended or now, end) - max(began, begin)) / timedelta(seconds=1)
        expected[project] += Decimal(price) * int(seconds) / 3600
        if how == "gone" and ended is not None and ended < now - DAY:
            held.refresh_from_db()
            dailyusage.add_up([held.pk])
            held.delete()
        elif number % 2:
            dailyusage.add_up([held.pk])
    assert spending.spent(["churn", "other"], now) == pytest.approx(expected, abs=Decimal("1e-20"))


@pytest.mark.django_db
def test_counting_reads_a_month_and_not_the_history(shop: Shop) -> None:
    budget(shop)
    spend(shop, "1")
    with CaptureQueriesContext(connection) as queries:
        count(now=NOW)
    assert list(scans(queries)) == []


@in_world
async def test_usage_ended_without_a_leader_is_known_before_counting(shop: Shop) -> None:
    world, execution = World(), shop.launch()
    async with controlled(world):
        await comes_up(world, execution)
    UsageInterval.objects.update(price_per_hour=1)
    budget(shop, "40", at_stop="stop")
    spend(shop, "1")
    world.finish(world.pod_of(execution), 0)
    world.passes(2 * DAY.total_seconds())
    world.cluster.available = False
    async with controlled(world, away=Downtime("controller", NOW, world.now)):
        await passes(5)
        world.cluster.available = True
        await passes(90)
    month = BudgetMonth.objects.get()
    assert month.spent == 1
    assert month.stopped_at is None
    assert notified() == []


@pytest.mark.django_db
def test_stop_line_reached_by_mistake_is_told_anew_later(shop: Shop) -> None:
    runs = running(shop)
    budget(shop, "75", at_stop="stop")
    open_one = interval(runs, NOW - 80 * HOUR, None)
    count(now=NOW)
    assert len(notified("stopping_soon")) == 1
    UsageInterval.objects.filter(pk=open_one.pk).update(ended_at=NOW - 10 * HOUR, seconds=70 * 3600)
    count(now=NOW + 11 * MINUTE)
    spend(shop, "5")
    count(now=NOW + DAY)
    assert fresh(runs).stop_requested_at is None
    assert [len(notified()), len(notified("stopping_soon"))] == [4, 2]
    count(now=NOW + DAY + 10 * MINUTE)
    assert fresh(runs).stop_requested_at is not None
