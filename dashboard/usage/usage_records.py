"""Reads what people used of the cluster, synchronously: ended intervals by SQL, what runs up to now, and the sums of deleted executions.
For one person the cost follows that person's own intervals and days, for everybody the intervals that ended since the days begin."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from operator import add
from typing import Any, TypeVar

from django.db.models import DateField, F, Func, Model, Q, QuerySet, Sum

from dashboard.usage.viewmodels.budgets import BudgetView, PastMonth, budget_view, left_words, past_month
from dashboard.usage.viewmodels.usage import HeldTime
from grid.models import BudgetMonth, DailyUsage, HardwareTier, Project, UsageInterval, User
from grid.usage.budgets.closing import budgets, counted
from grid.usage.budgets.rules import beginning, month_of
from grid.usage.dailyusage import by_day

_DAY = timedelta(days=1)
# What rows are read by; they have None for what is left out.
_WHO = ("owner_id", "project_id", "tier_id", "node_pool")
_ALL = ("day", *_WHO, "kind", "price_per_hour")
_EVERYTHING: Mapping[str, str] = {}
_Row = tuple[Any, ...]
_Deleted = TypeVar("_Deleted")
_Held = TypeVar("_Held")
_TRIES = 5
_PAST_MONTHS = 6


class UtcDay(Func):
    """The day of a moment. Django's own truncation calls Python for each row on SQLite."""

    output_field = DateField()

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(compiler, connection, template="substr(%(expressions)s, 1, 10)", **context)

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(compiler, connection, template="((%(expressions)s) AT TIME ZONE 'UTC')::date", **context)


def read_usage(
    first: date, last: date, now: datetime, user_id: int | None = None, only: Mapping[str, str] = _EVERYTHING
) -> list[HeldTime]:
    """Return what the user held on each of these days, or all users, whose kinds are not read; `only` are the values of some columns."""
    keys = ("day", *_WHO, "price_per_hour") if user_id is None else _ALL
    deleted, held = _of_one_moment(
        lambda: list(_deleted(first, last, keys, user_id, only)),
        lambda: [*_ended(first, last, keys, user_id, only), *_across_days(first, last, now, user_id, only)],
    )
    return _named([*held, *deleted])


def read_everybody(
    first: date, last: date, now: datetime, only: Mapping[str, str] = _EVERYTHING
) -> tuple[list[HeldTime], list[HeldTime]]:
    """Return what everybody held in all of these days, by person, project, tier and pool, and on each day: both keys at once would be as
    many rows as the two multiplied. `only` are the values of some of these columns."""
    by_whom, by_day = (*_WHO, "price_per_hour"), ("day", "price_per_hour")
    deleted, held = _of_one_moment(
        lambda: [list(_deleted(first, last, keys, None, only)) for keys in (by_whom, by_day)],
        lambda: (
            *(list(_ended(first, last, keys, None, only)) for keys in (by_whom, by_day)),
            list(_across_days(first, last, now, None, only)),
        ),
    )
    ended, ended_by_day, across = held
    whole = _added_up((first, *row[1:]) for row in (*ended, *deleted[0], *across))
    nobody = (None,) * (len(_ALL) - 2)
    days = _added_up([*ended_by_day, *deleted[1], *((row[0], *nobody, *row[len(_ALL) - 1 :]) for row in across)])
    return _named(whole), _named(days)


def _added_up(rows: Iterable[_Row]) -> list[_Row]:
    """Add up the rows that differ in their sums only: a page costs what it shows."""
    totals: dict[_Row, _Row] = {}
    for row in rows:
        key, sums = row[: len(_ALL)], row[len(_ALL) :]
        totals[key] = tuple(map(add, totals[key], sums)) if key in totals else sums
    return [(*key, *sums) for key, sums in totals.items()]


def _of_one_moment(read_deleted: Callable[[], _Deleted], read_held: Callable[[], _Held]) -> tuple[_Deleted, _Held]:
    """Return both as of one moment: again, when rows were deleted between two reads. A transaction would keep writers waiting on SQLite."""
    deleted = read_deleted()
    for _unused in range(_TRIES):
        held, then = read_held(), deleted
        deleted = read_deleted()
        if deleted == then:
            break
    return deleted, held


def _ended(
    first: date, last: date, keys: Sequence[str], user_id: int | None, only: Mapping[str, str]
) -> Iterator[_Row]:
    """Yield the sums by these keys, made by the database, of intervals that ended on the day on which they began: most of them."""
    begin, end = beginning(first), beginning(last + _DAY)
    ended: Any = _of(UsageInterval.objects.filter(ended_at__gt=begin, ended_at__lt=end), user_id, only)
    held = {
        "pods": Sum("seconds"),
        "cores": Sum(F("millicores") * F("seconds")),
        "cards": Sum(F("gpus") * F("seconds")),
    }
    same_day = ended.annotate(day=UtcDay("began_at")).filter(day=UtcDay("ended_at"))
    if "kind" in keys:
        same_day = same_day.annotate(kind=F("execution__kind"))
    yield from _grouped(same_day, keys, held)


def _deleted(
    first: date, last: date, keys: Sequence[str], user_id: int | None, only: Mapping[str, str]
) -> Iterator[_Row]:
    """Yield the sums by these keys of deleted intervals; of one person day by day, because their index begins with the day."""
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    when = Q(day__range=(first, last)) if user_id is None else Q(day__in=days, owner=user_id)
    deleted = {"pods": Sum("pod_seconds"), "cores": Sum("millicore_seconds"), "cards": Sum("gpu_seconds")}
    yield from _grouped(DailyUsage.objects.filter(when, **only), [key for key in keys if key != "kind"], deleted)


def _grouped(rows: Any, keys: Sequence[str], sums: Mapping[str, Any]) -> Iterator[_Row]:
    # In an order, so that two readings of the same are equal.
    for row in rows.order_by(*keys).values(*keys).annotate(**sums):
        yield (*(row.get(key) for key in _ALL), *(row[name] for name in sums))


def _across_days(
    first: date, last: date, now: datetime, user_id: int | None, only: Mapping[str, str]
) -> Iterator[_Row]:
    """Yield what each interval over a midnight, or without an end, held on each day: split as its sums will be when it is deleted."""
    begin, end = beginning(first), min(beginning(last + _DAY), now)
    ended: Any = _of(UsageInterval.objects.filter(ended_at__gt=begin, began_at__lt=end), user_id, only)
    ended = ended.annotate(day=UtcDay("began_at")).exclude(day=UtcDay("ended_at"))
    for rows in (ended, _of(UsageInterval.objects.filter(ended_at=None, began_at__lt=end), user_id, only)):
        kind = () if user_id is None else ("execution__kind",)
        columns = rows.order_by().values_list(
            *_WHO, "price_per_hour", "millicores", "gpus", "began_at", "ended_at", *kind
        )
        for owner, project, tier, pool, price, millicores, gpus, began_at, ended_at, *kinds in columns.iterator():
            key = (owner, project, tier, pool, kinds[0] if kinds else None, price)
            for day, seconds in by_day(max(began_at, begin), min(ended_at or end, end)):
                yield day, *key, seconds, seconds * millicores, seconds * gpus


def _of(rows: QuerySet[UsageInterval], user_id: int | None, only: Mapping[str, str]) -> QuerySet[UsageInterval]:
    """Return the rows of one user, or of all: without a project's index user by user, because the other index begins with the owner."""
    rows = rows.filter(**only)
    if user_id is not None:
        return rows.filter(owner=user_id)
    return rows if "project_id" in only else rows.filter(owner__in=User.objects.order_by().values("pk"))


def _named(rows: Sequence[_Row]) -> list[HeldTime]:
    usernames, projects, tiers = (
        _names(model, field, {row[column] for row in rows})
        for column, model, field in ((1, User, "username"), (2, Project, "name"), (3, HardwareTier, "name"))
    )
    return [
        HeldTime(
            *(day, owner or 0, usernames.get(owner, ""), project or "", projects.get(project, "")),
            *(tier or "", tiers.get(tier, ""), pool or "", kind or "", *rest),
        )
        for day, owner, project, tier, pool, kind, *rest in rows
    ]


def _names(model: type[Model], field: str, keys: set[Any]) -> Mapping[Any, str]:
    return dict(model._default_manager.filter(pk__in=keys - {None}).order_by().values_list("pk", field))


def budget_of_project(project: Project, now: datetime) -> BudgetView | None:
    """Return the budget with what was spent until now; None for a project without one."""
    budget = budgets([project.pk]).get(project.pk)
    return budget_view(budget, costs_by_day(project.pk, now), now) if budget is not None else None


def past_months(project: Project, now: datetime) -> list[PastMonth]:
    """Return the latest earlier months in which the project had a budget, as the controller counted them last."""
    rows = BudgetMonth.objects.filter(project=project, month__lt=month_of(now)).order_by("-month")[:_PAST_MONTHS]
    return [past_month(row.month, row.spent, warned_at=row.warned_at, stopped_at=row.stopped_at) for row in rows]


def costs_by_day(project_id: str, now: datetime) -> dict[date, Decimal]:
    """Return what the project has spent on each day of this month until now; days without any are left out."""
    _, days = read_everybody(month_of(now), now.date(), now, {"project_id": project_id})
    costs: defaultdict[date, Decimal] = defaultdict(Decimal)
    for row in days:
        costs[row.day] += row.price_per_hour * row.pod_seconds / 3600
    return dict(costs)


def left_of_budget(project_id: str, price: Decimal, now: datetime) -> str:
    """Return what is left for a launch in the project at a price per hour; "" without a budget, and when nothing is."""
    budget = budgets([project_id]).get(project_id)
    return left_words(budget, counted([project_id], now).get(project_id, Decimal(0)), price, now) if budget else ""
