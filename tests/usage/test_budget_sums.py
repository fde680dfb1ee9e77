"""What a project has spent: each second of each pod, counted without reading the history."""

from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings, strategies as st

from grid.models import DailyUsage, Execution, Project, UsageInterval
from grid.usage import dailyusage
from grid.usage.budgets import keeper as spending
from grid.usage.budgets.keeper import SettledSpending, count
from grid.usage.budgets.rules import Budget
from tests.support.shop import NOW, Shop
from tests.test_query_plans import scans
from tests.usage.budgeting import APRIL, DAY, MARCH, MINUTE, budget, interval, spend

MOMENTS = st.integers(-3 * 1440, 34 * 1440).map(lambda minute: MARCH + minute * MINUTE)
INTERVALS = st.lists(
    st.tuples(
        MOMENTS, st.integers(0, 4000), st.sampled_from(["0", "0.0125", "1", "33.3333"]), st.sampled_from(["open", "ended", "gone"])
    ),
    max_size=12,
)  # fmt: skip


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
            dailyusage.add(dailyusage.added_up([held]))
            held.delete()
    assert spending.spent(["churn", "other"], now) == pytest.approx(expected, abs=Decimal("1e-20"))


@pytest.mark.django_db
def test_counting_reads_a_month_and_not_the_history(shop: Shop) -> None:
    budget(shop)
    spend(shop, "1")
    with CaptureQueriesContext(connection) as queries:
        earlier = count(None, now=NOW)
        count(earlier, now=NOW)
    assert list(scans(queries)) == []


def test_earlier_spending_is_reread_daily_and_for_new_projects() -> None:
    earlier = SettledSpending(NOW, {"churn": Decimal(1)})
    known = {"churn": Budget("churn", "Churn", Decimal(1))}
    assert earlier.serves(known, NOW + 9 * MINUTE)
    assert not earlier.serves(known, NOW + 10 * MINUTE)
    assert not earlier.serves({**known, "new": known["churn"]}, NOW)
    assert not SettledSpending(APRIL - MINUTE, earlier.spent).serves(known, APRIL)
    assert not earlier.serves(known, NOW - MINUTE), "the clock went back"
