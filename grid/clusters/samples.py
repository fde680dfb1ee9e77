"""The samples of clusters over time: written every 15 seconds while they run, and thinned as they grow old.

All of the last hour are kept, one a minute of the last day, and one in ten minutes of older times; besides, at any age, both samples of
each change of the ready or wanted workers, so that no change moves in time. A week of a steady cluster is some 2,500 rows.
"""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from django.db import transaction

from grid.clusters.progress import ObservedCluster
from grid.database.trouble import trouble_of
from grid.kube.objects import Autoscaler
from grid.models import ClusterSample

logger = logging.getLogger(__name__)

_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
_MINUTE, _TEN_MINUTES = 60, 600
_LARGEST = 2**31 - 1  # the column's maximum; a head runs user code, so it may report any number


def sample_of(
    seen: ObservedCluster, autoscaler: Autoscaler | None, *, minimum: int, pending_tasks: int | None
) -> ClusterSample:
    """Return the present sample, of no cluster and time yet. Without an autoscaler's status the minimum of workers is wanted."""
    wanted = autoscaler.status.desired_replicas if autoscaler else 0
    return ClusterSample(
        ready=seen.ready_workers,
        wanted=wanted if wanted > 0 else minimum,
        cpu_percent=_percent(autoscaler, "cpu"),
        memory_percent=_percent(autoscaler, "memory"),
        pending_tasks=None if pending_tasks is None else min(max(0, pending_tasks), _LARGEST),
    )


def record(taken: Sequence[ClusterSample]) -> None:
    """Store the samples in one transaction. One that cannot be stored is dropped with a line in the log, and the others are stored. Raise
    the error of a database that is full, read-only, busy or away before any is stored."""
    try:
        with transaction.atomic():
            ClusterSample.objects.bulk_create(taken)
    except Exception as error:
        if trouble_of(error):
            raise
        # Each in its own transaction: a database may refuse a row only at the end of one.
        for sample in taken:
            sample.pk, id = None, sample.execution_id  # else it has the key that the failed transaction gave it
            try:
                with transaction.atomic():
                    sample.save(force_insert=True)
            except Exception as alone:
                logger.warning("a sample cannot be stored, it is dropped execution=%s reason=%s", id, alone)


def thin(execution_id: str, *, now: datetime) -> int:
    rows = ClusterSample.objects.filter(execution_id=execution_id).order_by("at").only("at", "ready", "wanted")
    gone = superfluous(list(rows), now=now)
    for start in range(0, len(gone), 500):  # databases limit how many values one query names
        ClusterSample.objects.filter(pk__in=gone[start : start + 500]).delete()
    return len(gone)


def superfluous(samples: Sequence[ClusterSample], *, now: datetime) -> list[int]:
    """Return the keys of the samples to delete; `samples` are oldest first."""
    kept: set[int] = set()
    for before, after in pairwise(samples):
        if (before.ready, before.wanted) != (after.ready, after.wanted):
            kept |= {before.pk, after.pk}
    gone: list[int] = []
    last: tuple[int, float] | None = None
    for sample in samples:
        age = now - sample.at
        if age <= _HOUR:
            break
        width = _MINUTE if age <= _DAY else _TEN_MINUTES
        stretch = (width, sample.at.timestamp() // width)
        if stretch == last and sample.pk not in kept:
            gone.append(sample.pk)
        last = stretch
    return gone


def _percent(autoscaler: Autoscaler | None, name: str) -> int | None:
    for metric in (autoscaler.status.current_metrics or ()) if autoscaler else ():
        if metric.resource is not None and metric.resource.name == name:
            percent = metric.resource.current.average_utilization
            return None if percent is None else max(0, percent)
    return None
