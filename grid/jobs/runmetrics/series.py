"""The values of one metric within bounds, however many a program writes; pure.

Values are counted in the order in which they came. Once there are many, each bucket of consecutive ones keeps its lowest and its highest,
and buckets double in width as values come. So what is kept depends on the values alone, not on the portions in which they were read: the
first and the last, and the lowest and the highest of all, are always there.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

BUCKETS = 250
MOST_POINTS = 2 * BUCKETS + 2

Point = tuple[int, float, float]  # the number of the value, from 0; its step; the value


@dataclass(frozen=True, slots=True)
class Series:
    """`count` values, of which `points` are kept."""

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
    width = bucket_width(count)
    if width == 1:
        return tuple(points)
    kept = {points[0], points[-1]}
    for _, bucket in groupby(points, lambda point: point[0] // width):
        kept.update(_extremes(bucket))
    return tuple(sorted(kept))


def bucket_width(count: int) -> int:
    """Return how many consecutive values share a bucket: a power of two, so that buckets only ever merge."""
    width = 1
    while -(-count // width) > BUCKETS:
        width *= 2
    return width


def _extremes(bucket: Iterable[Point]) -> Iterator[Point]:
    points = list(bucket)
    yield min(points, key=lambda point: (point[2], point[0]))
    yield max(points, key=lambda point: (point[2], -point[0]))
