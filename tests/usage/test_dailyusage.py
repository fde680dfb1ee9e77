"""What was held in any days: the same, whichever intervals are added up by day and whichever are not."""

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from hypothesis import HealthCheck, given, settings, strategies as st

from grid.models import DailyUsage, Execution, MonthlyUsage, UsageInterval
from grid.usage.dailyusage import add_up, held
from tests.support.shop import NOW, Shop
from tests.usage.budgeting import interval

KEYS = ("day", "owner_id", "project_id", "tier_id", "node_pool", "kind", "price_per_hour")
# Hours apart rather than seconds, so that some begin and end on a midnight, and some in one second of it.
MOMENTS = st.builds(
    lambda hours, seconds: datetime(2026, 2, 20, tzinfo=UTC) + timedelta(hours=hours, seconds=seconds),
    st.integers(0, 20 * 24),
    st.sampled_from([0, 0, 1, 59, 3599]),
)
HELD = st.lists(
    st.tuples(MOMENTS, st.integers(0, 5 * 86_400), st.sampled_from(["1", "0.05"]), st.sampled_from(["open", "added", "gone"])),
    max_size=8,
)  # fmt: skip

# In days since then: any, February and March.
SPANS = st.one_of(st.tuples(st.integers(-5, 25), st.integers(0, 30)), st.sampled_from([(-19, 27), (9, 30)]))


def expected(rows: list[UsageInterval], keys: tuple[str, ...], first: date, last: date, now: datetime) -> Counter[Any]:
    """The three sums by the keys, of each interval on each day."""
    sums = Counter[Any]()
    for row in rows:
        for number in range((last - first).days + 1):
            day = first + timedelta(days=number)
            begin = datetime(day.year, day.month, day.day, tzinfo=UTC)
            until = min(row.ended_at or now, begin + timedelta(days=1), now)
            seconds = int((until - max(row.began_at, begin)).total_seconds())
            known = {"day": day, "kind": row.execution.kind} | {
                key: getattr(row, key) for key in KEYS if key not in ("day", "kind")
            }
            key = tuple(known[name] for name in keys)
            for name, size in (("pods", 1), ("cores", row.millicores), ("cards", row.gpus)):
                sums[key, name] += max(0, seconds) * size
    return +sums


@pytest.mark.django_db
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(intervals=HELD, now=MOMENTS, span=SPANS, keys=st.sets(st.sampled_from(KEYS)))
def test_any_days_hold_each_second_once(
    shop: Shop, intervals: list[tuple[datetime, int, str, str]], now: datetime, span: tuple[int, int], keys: set[str]
) -> None:  # fmt: skip
    for model in (UsageInterval, DailyUsage, MonthlyUsage, Execution):
        model.objects.all().delete()
    execution, rows = shop.launch(), []
    for number, (began, seconds, price, how) in enumerate(intervals):
        ended = None if how == "open" else began + timedelta(seconds=seconds)
        if max(began, ended or began) > now:
            continue  # nothing is recorded before it happens
        row = interval(execution, began, ended, price=price)
        row.gpus, row.millicores = number % 3, 500 * number
        row.save()
        row.refresh_from_db()
        rows.append(row)
        if how != "open" and number % 2:
            add_up([row.pk])
            add_up([row.pk])  # the second time nothing
            if how == "gone":
                UsageInterval.objects.filter(pk=row.pk).delete()
    first = date(2026, 2, 20) + timedelta(days=span[0])
    last, asked = first + timedelta(days=span[1]), tuple(key for key in KEYS if key in keys)
    sums = Counter[Any]()
    for *key, pods, cores, cards in held(asked, first, last, now):
        sums |= Counter({(tuple(key), "pods"): pods, (tuple(key), "cores"): cores, (tuple(key), "cards"): cards})
    assert +sums == expected(rows, asked, first, last, now)


@pytest.mark.django_db
def test_migrating_back_leaves_what_is_deleted_in_the_sums(shop: Shop) -> None:
    execution = shop.launch()
    kept, gone = (interval(execution, NOW - timedelta(hours=began), NOW - timedelta(hours=1)) for began in (50, 2))
    add_up([kept.pk, gone.pk])
    gone.delete()
    migration = import_module("grid.migrations.0044_usage_added_up")
    migration.take_back(apps, SimpleNamespace(connection=connection))
    assert list(DailyUsage.objects.values_list("day", "kind", "pod_seconds")) == [(NOW.date(), "", 3600)]


@pytest.mark.django_db
def test_killed_while_adding_up_leaves_nothing_counted_twice(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    row = interval(shop.launch(), NOW - timedelta(hours=1), NOW)
    with monkeypatch.context() as patch, pytest.raises(OSError, match="killed"):
        patch.setattr(
            "django.db.models.query.QuerySet.update", lambda *_args, **_values: (_ for _ in ()).throw(OSError("killed"))
        )
        add_up([row.pk])
    assert not DailyUsage.objects.exists()
    add_up([row.pk])
    assert [sums[0] for sums in held((), NOW.date(), NOW.date(), NOW)] == [3600]
