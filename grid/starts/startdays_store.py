"""Writes the starts of each day, added up by tier, environment, pool and image, with the `StartUp` that is added.

A group's row is read, added to and written under its lock. All rows are locked in the order of their keys, so no two writers wait for each
other.
"""

from collections.abc import Mapping
from datetime import UTC
from typing import Any

from django.db import transaction
from django.db.models import Q

from grid.diagnosis.startup import Phase
from grid.models import StartDay, StartUp
from grid.starts.startdays import MERGED, WHOLE, count, read_sums, sums_text

_MEASURED = (WHOLE, *Phase, MERGED)


def record(start: StartUp) -> None:
    """Store a start and count it, unless the execution has one already: only its first is kept. The caller holds the transaction, and the
    lock of the execution."""
    if StartUp.objects.filter(pk=start.pk).exists():
        return
    start.save(force_insert=True)
    _add(start, 1)


def replace(execution_id: str, columns: Mapping[str, Any]) -> None:
    """Write what became known of a start after it had ended, and count that instead of what was known."""
    with transaction.atomic():
        start = StartUp.objects.select_for_update().filter(pk=execution_id).order_by().first()
        if start is None:
            return
        _add(start, -1)
        for name, value in columns.items():
            setattr(start, name, value)
        start.save(update_fields=columns)
        _add(start, 1)


def _add(start: StartUp, times: int) -> None:
    if not start.ran:
        return
    rows = _locked(start)
    seconds = {str(name): value for name in _MEASURED if (value := getattr(start, name)) is not None}
    for row in rows:
        sums = read_sums(row.sums)
        count(sums, start.pk, seconds, image_cached=start.image_cached, node_started=start.node_started, times=times)
        row.starts, row.sums = sums.starts, sums_text(sums)
    StartDay.objects.bulk_update(rows, ["starts", "sums"])


def _locked(start: StartUp) -> list[StartDay]:
    """Return the rows that count a start, made where there were none."""
    by = StartDay.Grouping
    groups = [
        (by.ALL, ""),
        (by.ENVIRONMENT, start.environment_id),
        (by.IMAGE, start.image),
        (by.POOL, start.node_pool),
        (by.TIER, start.tier_id),
    ]
    day = start.at.astimezone(UTC).date()
    wanted = Q()
    for grouping, group in groups:
        wanted |= Q(grouping=grouping, group=group)
    rows = StartDay.objects.filter(wanted, day=day).select_for_update().order_by("grouping", "group")
    counted = list(rows)
    if len(counted) < len(groups):
        StartDay.objects.bulk_create(
            (StartDay(day=day, grouping=grouping, group=group) for grouping, group in groups), ignore_conflicts=True
        )
        counted = list(rows.all())
    return counted
