"""Keeps the metrics of executions in the database, synchronously: a portion of a log and how far it reaches, both or neither."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from django.db import IntegrityError, transaction
from django.db.models import F

from grid.jobs.runmetrics.lines import Measurements
from grid.logs.logplace import START, LogPlace
from grid.models import Execution, MetricReading, RunMetric

BUCKETS = 250
MOST_POINTS = 2 * BUCKETS + 2

Point = tuple[int, float, float]  # the number of the value, from 0; its step; the value
MOST_NAMES = 50
_WRITTEN = ["points", "count", "last", "lowest", "highest", "at"]


@dataclass(frozen=True, slots=True)
class Series:
    """`count` values of one metric, in the order in which they came, of which `points` are kept: once there are many, the lowest and the
    highest of each bucket of consecutive ones. Buckets double in width as values come, so what is kept depends on the values alone, not on
    the portions in which they were read; the first and the last, and the lowest and the highest of all, are always there."""

    count: int = 0
    points: Sequence[Point] = ()


def extended(series: Series, values: Iterable[tuple[float | None, float]]) -> Series:
    """Return the series with further values, each with its step; where that is None, the number of the value stands for it."""
    points, count = list(series.points), series.count
    for step, value in values:
        points.append((count, float(count) if step is None else step, value))
        count += 1
    return Series(count, thinned(points, count))


def thinned(points: Sequence[Point], count: int) -> Sequence[Point]:
    """Return at most `MOST_POINTS` of the points of a series with `count` values."""
    width = 1  # how many consecutive values share a bucket: a power of two, so that buckets only ever merge
    while -(-count // width) > BUCKETS:
        width *= 2
    if width == 1:
        return tuple(points)
    kept = {points[0], points[-1]}
    for _, group in groupby(points, lambda point: point[0] // width):
        bucket = list(group)
        kept.add(min(bucket, key=lambda point: (point[2], point[0])))
        kept.add(max(bucket, key=lambda point: (point[2], -point[0])))
    return tuple(sorted(kept))


@dataclass(frozen=True, slots=True)
class KnownPlace:
    """How far a log was read, and the revision of the row that says so; 0 without one."""

    place: LogPlace = START
    revision: int = 0


def read_place(execution_id: str) -> KnownPlace:
    row = MetricReading.objects.filter(pk=execution_id).first()
    return KnownPlace(LogPlace(row.second, row.lines, row.latest), row.revision) if row else KnownPlace()


def add(execution_id: str, known: KnownPlace, place: LogPlace, new: Measurements, *, now: datetime) -> bool:
    """Add what is new up to `place`. Return False without writing when another process has read on, or the execution was deleted."""
    try:
        with transaction.atomic():
            if not _move_on(execution_id, known, place):
                return False
            unkept = _extend(execution_id, new, now)
            counts = {"refused": F("refused") + new.refused, "unkept": F("unkept") + unkept}
            MetricReading.objects.filter(pk=execution_id).update(**counts)
    except IntegrityError:
        return False
    return True


def _move_on(execution_id: str, known: KnownPlace, place: LogPlace) -> bool:
    columns = {"second": place.second, "lines": place.lines, "latest": place.latest}
    if known.revision:
        rows = MetricReading.objects.filter(pk=execution_id, revision=known.revision)
        return rows.update(**columns, revision=F("revision") + 1) == 1
    if not Execution.objects.filter(pk=execution_id).exists():
        return False
    return MetricReading.objects.get_or_create(pk=execution_id, defaults=columns)[1]


def _extend(execution_id: str, new: Measurements, now: datetime) -> int:
    rows = RunMetric.objects.filter(execution=execution_id)
    names = set(rows.values_list("name", flat=True))
    for name in new.values:
        if name in names or len(names) < MOST_NAMES:
            names.add(name)
    stored = {row.name: row for row in rows.filter(name__in=[name for name in new.values if name in names])}
    changed = []
    for name, values in new.values.items():
        if name in names:
            row = stored.get(name)
            points = [(int(number), step, value) for number, step, value in row.points] if row else []
            changed.append(_row(execution_id, name, extended(Series(row.count if row else 0, points), values), now))
    RunMetric.objects.bulk_create(
        changed, update_conflicts=True, unique_fields=["execution", "name"], update_fields=_WRITTEN
    )
    return sum(len(values) for name, values in new.values.items() if name not in names)


def _row(execution_id: str, name: str, series: Series, now: datetime) -> RunMetric:
    values = [value for _, _, value in series.points]
    measured = {"last": values[-1], "lowest": min(values), "highest": max(values)}
    return RunMetric(execution_id=execution_id, name=name, points=series.points, count=series.count, at=now, **measured)
