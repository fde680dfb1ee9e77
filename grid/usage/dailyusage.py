"""Adds usage intervals up by day, once each, and says what was held: the one sum of all pages, files and budgets.

An interval counts in `DailyUsage` when it is marked as added up, and by itself until then: while it runs, and until the leader's next
hourly look (`housekeeping`). Sum and mark are written in one transaction, and `held` reads both in one statement, so each counts once
at any moment, whoever is killed where. Added up means a few rows a person and day, instead of one for each pod.
"""

import operator
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import connection, transaction
from django.db.models import BigIntegerField, Count, DateField, F, Func, Model, Q, QuerySet, Sum, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce, Greatest, Least

from grid.models import DailyUsage, Execution, MonthlyUsage, UsageInterval, User
from grid.usage.budgets.rules import beginning

_DAY = timedelta(days=1)
_DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class DayKey:
    """The key of `DailyUsage`: intervals with the same key are added up."""

    day: date
    owner_id: int
    project_id: str
    tier_id: str
    node_pool: str
    kind: str
    price_per_hour: Decimal


@dataclass(frozen=True, slots=True)
class Sums:
    """Seconds, multiplied by the resources that were held during them."""

    pod_seconds: int = 0
    millicore_seconds: int = 0
    mebibyte_seconds: int = 0
    gpu_seconds: int = 0

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(*map(operator.add, astuple(self), astuple(other)))


def by_day(began_at: datetime, ended_at: datetime) -> Iterator[tuple[date, int]]:
    """Split a time at each midnight UTC; yield each day and its seconds, nothing for an empty time. Pure."""
    at, end = began_at.astimezone(UTC), ended_at.astimezone(UTC)
    while at < end:
        midnight = datetime(at.year, at.month, at.day, tzinfo=UTC) + timedelta(days=1)
        until = min(midnight, end)
        yield at.date(), round((until - at).total_seconds())
        at = until


def added_up(intervals: Iterable[UsageInterval], kinds: Mapping[str, str]) -> Mapping[DayKey, Sums]:
    """Return the sums of ended intervals, each split by day; `kinds` are those of the executions. Pure."""
    sums: defaultdict[DayKey, Sums] = defaultdict(Sums)
    for row in intervals:
        assert row.ended_at is not None, "only ended intervals are added up"
        who = (row.owner_id, row.project_id, row.tier_id, row.node_pool, kinds[row.execution_id], row.price_per_hour)
        for day, seconds in by_day(row.began_at, row.ended_at):
            sums[DayKey(day, *who)] += Sums(
                seconds, seconds * row.millicores, seconds * row.mebibytes, seconds * row.gpus
            )
    return sums


_COLUMNS = [column.name for column in (*fields(DayKey), *fields(Sums))]
_KEY = ", ".join(column.name for column in fields(DayKey))
# One statement per row: reading first would double the statements, and lose concurrent writes.
_ADD = (
    f"INSERT INTO {{table}} ({', '.join(_COLUMNS)}) VALUES ({', '.join(['%s'] * len(_COLUMNS))}) "
    f"ON CONFLICT ({_KEY}) DO UPDATE SET "
    + ", ".join(f"{column.name} = {{table}}.{column.name} + excluded.{column.name}" for column in fields(Sums))
)


@transaction.atomic
def add_up(ids: Sequence[int]) -> None:
    """Add those of these intervals that have ended, and are not added up yet, to the sums of their days, and mark them."""
    # Locked, so that a second controller waits, and then finds them marked.
    due = UsageInterval.objects.filter(pk__in=ids, added_up=False, ended_at__isnull=False)
    rows = list(due.select_for_update(no_key=True).order_by("pk"))
    executions = Execution.objects.filter(pk__in={row.execution_id for row in rows}).order_by()
    sums = added_up(rows, dict(executions.values_list("pk", "kind")))
    months: defaultdict[DayKey, Sums] = defaultdict(Sums)
    for key, each in sums.items():
        months[replace(key, day=key.day.replace(day=1))] += each
    with connection.cursor() as cursor:
        # Each in one order, so that two writers never wait for each other.
        for model, totals in ((DailyUsage, sums), (MonthlyUsage, months)):
            values = sorted((*astuple(key), *astuple(each)) for key, each in totals.items())
            cursor.executemany(_ADD.format(table=model._meta.db_table), values)
    UsageInterval.objects.filter(pk__in=[row.pk for row in rows]).update(added_up=True)


def add_up_ended(now: datetime, at_most: int) -> int:
    """Do one step of adding up what has ended; return the number of intervals."""
    due = UsageInterval.objects.filter(added_up=False, ended_at__isnull=False).order_by()
    ids = list(due.values_list("pk", flat=True)[:at_most])
    add_up(ids)
    return len(ids)


class UtcDay(Func):
    """The day of a moment. Django's own truncation calls Python for each row on SQLite."""

    output_field = DateField()

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(compiler, connection, template="substr(%(expressions)s, 1, 10)", **context)

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(compiler, connection, template="((%(expressions)s) AT TIME ZONE 'UTC')::date", **context)


class Epoch(Func):
    """The seconds of a moment since 1970, whose rest by 86,400 are those since midnight UTC."""

    output_field = BigIntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(
            compiler, connection, template="CAST(strftime('%%%%s', %(expressions)s) AS INTEGER)", **context
        )

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(compiler, connection, template="extract(epoch from %(expressions)s)::bigint", **context)


# Behind the keys of each row: its sums; or the seconds of several intervals of one size, and what splits them by day.
_SUMS = ("pods", "cores", "cards", "first_day", "last_day", "count", "at_last", "size", "size_gpus")
_NO_DAY = Value(None, output_field=DateField())
_ZERO, _NO_SIZE = (Value(number, output_field=BigIntegerField()) for number in (0, None))


def held(keys: Sequence[str], first: date, last: date, now: datetime, **where: Any) -> list[tuple[Any, ...]]:
    """Return what was held from the first day to the last (UTC), of what runs up to now: the values of the keys, then the seconds of
    pods, the millicore seconds and the GPU seconds. The keys are columns of `DailyUsage`, of whose others `where` are conditions."""
    last = min(last, now.astimezone(UTC).date())
    if last < first:
        return []
    is_by_day = "day" in keys
    # A month that is not over has nothing after `last` either.
    is_whole = (last + _DAY).day == 1 or last == now.astimezone(UTC).date()
    is_month = is_whole and first == last.replace(day=1) and not is_by_day
    asked = _Asked([key for key in keys if key != "day"], is_by_day, is_month, first, last, where)
    totals: dict[tuple[Any, ...], tuple[int, int, int]] = {}
    for row in _of_days(asked).union(_not_added_up(asked, now), all=True):
        known = dict(zip(asked.names, row, strict=False))
        for day, pods, cores, cards in _split(row[len(asked.names) :]):
            key = tuple(day if name == "day" else known[name] for name in keys)
            before = totals.get(key, (0, 0, 0))
            totals[key] = (before[0] + pods, before[1] + cores, before[2] + cards)
    return [(*key, *sums) for key, sums in totals.items()]


@dataclass(frozen=True, slots=True)
class _Asked:
    """What `held` is asked for; `names` are its keys without the day, and `is_month` says that the days are one month as a whole."""

    names: Sequence[str]
    is_by_day: bool
    is_month: bool
    first: date
    last: date
    where: Mapping[str, Any]


def _of_days(asked: _Asked) -> QuerySet[Any]:
    """Return the sums of what is added up."""
    days = [asked.first + number * _DAY for number in range((asked.last - asked.first).days + 1)]
    when = Q(day__range=(asked.first, asked.last))
    if asked.is_month:
        when = Q(day=asked.first)
    elif "owner" in asked.where:
        when = Q(day__in=days)  # day by day, because the index begins with the day
    day = F("day") if asked.is_by_day else _NO_DAY
    model: type[Model] = MonthlyUsage if asked.is_month else DailyUsage
    rows = (
        model._default_manager.filter(when, **asked.where).order_by().values(*asked.names, first_day=day, last_day=day)
    )
    sums = {"pods": Sum("pod_seconds"), "cores": Sum("millicore_seconds"), "cards": Sum("gpu_seconds")}
    rows = rows.annotate(**sums, count=_ZERO, at_last=_ZERO, size=_NO_SIZE, size_gpus=_NO_SIZE)
    summed: QuerySet[Any] = rows.values_list(*asked.names, *_SUMS)
    return summed


def _not_added_up(asked: _Asked, now: datetime) -> QuerySet[Any]:
    """Return the seconds by size, and of several days also by the first and the last: all days between are whole."""
    begin, end = beginning(asked.first), min(beginning(asked.last + _DAY), now.replace(microsecond=0))
    rows = UsageInterval.objects.filter(Q(ended_at=None) | Q(ended_at__gt=begin), began_at__lt=end, added_up=False)
    if not any(name.startswith(("owner", "project")) for name in asked.where):
        # Person by person, because there is no index without either.
        rows = rows.filter(owner__in=User.objects.order_by().values("pk"))
    rows = rows.filter(**asked.where).order_by()
    if "kind" in asked.names:
        rows = rows.annotate(kind=F("execution__kind"))
    since = Greatest(Epoch("began_at"), _seconds(begin))
    until = Least(Coalesce(Epoch("ended_at"), _seconds(end)), _seconds(end))
    first_day: Combinable = _NO_DAY
    last_day: Combinable = _NO_DAY
    at_last: Combinable = _ZERO
    if asked.is_by_day:
        end_day = Value(end.astimezone(UTC).date(), output_field=DateField())
        first_day = Greatest(UtcDay("began_at"), Value(asked.first, output_field=DateField()))
        last_day = Least(Coalesce(UtcDay("ended_at"), end_day), end_day)
        at_last = Sum(until % Value(_DAY_SECONDS, output_field=BigIntegerField()))
    columns = {"first_day": first_day, "last_day": last_day, "size": F("millicores"), "size_gpus": F("gpus")}
    rows = rows.values(*asked.names, **columns)
    rows = rows.annotate(pods=Sum(until - since), cores=_ZERO, cards=_ZERO, count=Count("pk"), at_last=at_last)
    summed: QuerySet[Any] = rows.values_list(*asked.names, *_SUMS)
    return summed


def _seconds(moment: datetime) -> Value:
    return Value(int(moment.timestamp()), output_field=BigIntegerField())


def _split(row: Sequence[Any]) -> Iterator[tuple[date | None, int, int, int]]:
    """Yield the sums of a row of `_SUMS` by day, without empty ones. Pure."""
    pods, cores, cards, first, last, count, at_last, size, gpus = row
    if not pods:
        return
    if size is None:
        yield first, pods, cores, cards
        return
    parts = [(first, pods)]
    if first != last:
        whole, between = count * _DAY_SECONDS, [first + number * _DAY for number in range(1, (last - first).days)]
        parts = [(first, pods - at_last - whole * len(between)), *((day, whole) for day in between), (last, at_last)]
    yield from ((day, seconds, seconds * size, seconds * gpus) for day, seconds in parts if seconds)
