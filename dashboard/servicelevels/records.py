"""Reads, synchronously, how service levels stood on each of the last days as far as the database knows: starts and failures."""

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta

from django.db.models import Count, Q
from django.db.models.functions import TruncDate

from grid.diagnosis.startup import Phase
from grid.metrics.levels import LevelDays
from grid.models import Execution, StartDay, State
from grid.servicelevels import LevelDay, LevelTarget
from grid.servicelevels.levels import NOT_PLATFORM
from grid.starts.startdays import WHOLE, StartSums, read_sums, seconds_of


def read_level_days(targets: Mapping[str, LevelTarget], now: datetime) -> dict[str, LevelDays]:
    """Return what is known of these levels, by id; days are those of UTC, and the share of bad ones lately is that of today."""
    today = now.astimezone(UTC).date()
    readers: dict[str, Callable[[LevelTarget, date], list[LevelDay]]] = {
        "start-time": lambda target, first: _starts(target, first, WHOLE),
        "queue-time": lambda target, first: _starts(target, first, Phase.QUEUED),
        "failure-rate": lambda target, first: _failures(first),
    }
    levels = {}
    for id in readers.keys() & targets.keys():
        target = targets[id]
        days = readers[id](target, today - timedelta(days=target.window_days - 1))
        lately = next((day.bad / day.total for day in days if day.day == today and day.total), None)
        levels[id] = LevelDays(tuple(days), lately)
    return levels


def _starts(target: LevelTarget, first: date, column: str) -> list[LevelDay]:
    rows = StartDay.objects.filter(grouping=StartDay.Grouping.ALL, group="", day__gte=first, starts__gt=0)
    bound = target.measured_threshold
    read = ((day, read_sums(sums)) for day, sums in rows.order_by("day").values_list("day", "sums"))
    return [LevelDay(day, _slower(sums, column, bound), sums.starts) for day, sums in read]


def _slower(sums: StartSums, column: str, bound: float) -> int:
    return sum(count for bucket, count in sums.times.get(column, {}).items() if seconds_of(bucket) > bound)


def _failures(first: date) -> list[LevelDay]:
    since = datetime(first.year, first.month, first.day, tzinfo=UTC)
    bad = Count("pk", filter=Q(state=State.ERROR) & ~Q(reason__in=NOT_PLATFORM))
    ended = Execution.objects.filter(ended_at__gte=since).order_by()
    rows = ended.annotate(day=TruncDate("ended_at", tzinfo=UTC)).values("day").annotate(bad=bad, total=Count("pk"))
    return sorted((LevelDay(row["day"], row["bad"], row["total"]) for row in rows), key=lambda day: day.day)
