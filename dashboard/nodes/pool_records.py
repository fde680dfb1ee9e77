"""Reads the stored samples of the node pools, synchronously, as values for pages."""

from typing import Any

from django.db.models import F, Max, QuerySet

from dashboard.nodes.viewmodels.pool_history import COLUMNS, PoolPoint
from dashboard.nodes.viewmodels.pool_trends import TREND_COLUMNS, Trends
from grid.models import PoolSample


def read_points(pool: str, first: int, last: int) -> list[PoolPoint]:
    """Return a pool's samples of the minutes after `first` until `last`, oldest first."""
    rows = _between(first, last).filter(pool=pool).order_by("minute")
    return [PoolPoint(*row) for row in rows.values_list("minute", *COLUMNS)]


def read_trends(first: int, last: int, width: int) -> Trends:
    """Return the highest values of each `width` minutes, and the newest sample of each pool that has one of the newest minute."""
    highest: dict[str, Any] = {f"most_{name}": Max(name) for name in TREND_COLUMNS}
    stretches = (
        _between(first, last).annotate(stretch=F("minute") / width).values("pool", "stretch").annotate(**highest)
    )
    trends = Trends({}, {})
    for pool, stretch, *values in stretches.order_by("stretch").values_list("pool", "stretch", *highest):
        trends.stretches.setdefault(pool, []).append((stretch * width, *values))
    newest = _between(first, last).aggregate(Max("minute"))["minute__max"]
    for pool, *row in PoolSample.objects.filter(minute=newest).values_list("pool", "minute", *COLUMNS):
        trends.newest[pool] = PoolPoint(*row)
    return trends


def _between(first: int, last: int) -> QuerySet[PoolSample]:
    return PoolSample.objects.filter(minute__gt=first, minute__lte=last).order_by()
