"""Sums up what projects have spent in a month: what has ended, by SQL; what runs, up to now; and the sums of deleted executions.

What ended before today does not change any more, so `settled` is read seldom; `recent` costs what ran today. Each is one statement, which
sees one moment: what ends, or is deleted, meanwhile is counted once.
"""

from collections import defaultdict
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import DateTimeField, QuerySet, Sum, Value

from grid.models import DailyUsage, UsageInterval
from grid.usage.budgets.rules import beginning, month_of, next_month

Spent = dict[str, Decimal]  # by project
_HOUR = 3600
_COLUMNS = ("project_id", "price_per_hour", "seconds", "began_at", "ended_at")
_NEVER = Value(None, output_field=DateTimeField())


def spent(projects: Collection[str], now: datetime) -> Spent:
    """Return what each project has spent in the month of `now` until then."""
    earlier, today = settled(projects, now), recent(projects, now)
    return {project: earlier[project] + today[project] for project in projects}


def settled(projects: Collection[str], now: datetime) -> Spent:
    """Return what ended before the day of `now`, in its month, has cost in that month."""
    month = month_of(now)
    begin, until = beginning(month), _today(now)
    ended = UsageInterval.objects.filter(project__in=projects, ended_at__gt=begin, ended_at__lt=until)
    deleted = DailyUsage.objects.filter(project__in=projects, day__gte=month, day__lt=next_month(month)).order_by()
    whole, cut = _whole_and_cut(ended, begin)
    return _added_up(projects, cut.union(whole, _sums(deleted, "pod_seconds"), all=True), begin, now)


def recent(projects: Collection[str], now: datetime) -> Spent:
    """Return what ended on the day of `now`, or has not ended, has cost in its month until then."""
    begin, since = beginning(month_of(now)), _today(now)
    ended = UsageInterval.objects.filter(project__in=projects, ended_at__gte=since)
    whole, cut = _whole_and_cut(ended, begin)
    open_ones = UsageInterval.objects.filter(project__in=projects, ended_at__isnull=True).order_by()
    return _added_up(projects, open_ones.values_list(*_COLUMNS).union(cut, whole, all=True), begin, now)


def _whole_and_cut(ended: QuerySet[UsageInterval], begin: datetime) -> tuple[Any, Any]:
    """Return in the same columns the sums of those that began in the month, and the few that began before, of which a part counts."""
    cut = ended.filter(began_at__lt=begin).order_by()
    return _sums(ended.filter(began_at__gte=begin).order_by(), "seconds"), cut.values_list(*_COLUMNS)


def _sums(rows: QuerySet[Any], seconds: str) -> Any:
    """Return the sums by project and price, in the columns of what is not summed up."""
    grouped = rows.values("project_id", "price_per_hour").annotate(total=Sum(seconds), from_=_NEVER, until=_NEVER)
    return grouped.values_list("project_id", "price_per_hour", "total", "from_", "until")


def _added_up(projects: Collection[str], rows: Any, begin: datetime, now: datetime) -> Spent:
    sums: defaultdict[str, Decimal] = defaultdict(Decimal)
    for project, price, seconds, began_at, ended_at in rows:
        if began_at is not None:
            seconds = max(0, int((min(ended_at or now, now) - max(began_at, begin)) / timedelta(seconds=1)))
        sums[project] += price * (seconds or 0)
    return {project: sums[project] / _HOUR for project in projects}


def _today(now: datetime) -> datetime:
    return beginning(now.astimezone(UTC).date())
