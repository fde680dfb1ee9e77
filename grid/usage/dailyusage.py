"""Adds usage intervals up by day, so that usage stays known when the executions are deleted."""

import operator
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, fields
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from django.db import connection

from grid.models import DailyUsage, UsageInterval


@dataclass(frozen=True, slots=True)
class DayKey:
    """The key of `DailyUsage`: intervals with the same key are added up."""

    day: date
    owner_id: int
    project_id: str
    tier_id: str
    node_pool: str
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


def added_up(intervals: Iterable[UsageInterval]) -> Mapping[DayKey, Sums]:
    """Return the sums of ended intervals, each split by day. Pure."""
    sums: defaultdict[DayKey, Sums] = defaultdict(Sums)
    for row in intervals:
        assert row.ended_at is not None, "only ended intervals are added up"
        for day, seconds in by_day(row.began_at, row.ended_at):
            key = DayKey(day, row.owner_id, row.project_id, row.tier_id, row.node_pool, row.price_per_hour)
            sums[key] += Sums(seconds, seconds * row.millicores, seconds * row.mebibytes, seconds * row.gpus)
    return sums


_COLUMNS = [column.name for column in (*fields(DayKey), *fields(Sums))]
_KEY = ", ".join(column.name for column in fields(DayKey))
# One statement per row: reading first would double the statements, and lose concurrent writes.
_ADD = (
    f"INSERT INTO {{table}} ({', '.join(_COLUMNS)}) VALUES ({', '.join(['%s'] * len(_COLUMNS))}) "
    f"ON CONFLICT ({_KEY}) DO UPDATE SET "
    + ", ".join(f"{column.name} = {{table}}.{column.name} + excluded.{column.name}" for column in fields(Sums))
)


def add(sums: Mapping[DayKey, Sums]) -> None:
    """Add to the stored sums of these days; the caller deletes the intervals in the same transaction."""
    rows = [(*astuple(key), *astuple(each)) for key, each in sums.items()]
    with connection.cursor() as cursor:
        cursor.executemany(_ADD.format(table=DailyUsage._meta.db_table), rows)
