"""Reads and writes usage intervals in the database, in small transactions; see `intervals` for the decisions.

Safe against a second writer: a pod's uid is unique, so the second one writes nothing, and an interval that has ended stays as it is.
"""

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from grid.models import Execution, UsageInterval
from grid.usage.intervals import Changes, Interval

_MEBIBYTE = 2**20


def read_open(execution_id: str) -> dict[str, datetime]:
    """Return the beginnings of an execution's open intervals, by their pods' uids."""
    return dict(_open(execution_id).values_list("pod_uid", "began_at"))


@transaction.atomic
def record(execution_id: str, changes: Changes) -> None:
    """Write the changes; existing records stay."""
    if changes.begun:
        execution = Execution.objects.defer("spec", "status").get(pk=execution_id)
        rows = [_row(execution, held) for held in changes.begun]
        # Only a duplicate uid is ignored: `ignore_conflicts` would ignore every mistake on SQLite.
        UsageInterval.objects.bulk_create(
            rows, batch_size=500, update_conflicts=True, unique_fields=["pod_uid"], update_fields=["pod_uid"]
        )
    # An interval that is new to this writer and over may be open from another writer.
    ends = {held.pod_uid: held.ended_at for held in changes.begun if held.ended_at is not None} | dict(changes.ended)
    if ends:
        _end(execution_id, ends)


def end_all(execution_id: str, at: datetime) -> None:
    """End all open intervals of an execution; the caller has confirmed that it has no pods any more, and holds the transaction."""
    _end(execution_id, dict.fromkeys(_open(execution_id).values_list("pod_uid", flat=True), at))


def _end(execution_id: str, ends: Mapping[str, datetime]) -> None:
    began = {uid: at for uid, at in read_open(execution_id).items() if uid in ends}
    for uid, began_at in began.items():
        ended_at = max(began_at, ends[uid].replace(microsecond=0))
        seconds = round((ended_at - began_at).total_seconds())
        UsageInterval.objects.filter(pod_uid=uid, ended_at__isnull=True).update(ended_at=ended_at, seconds=seconds)


def _open(execution_id: str) -> QuerySet[UsageInterval]:
    return UsageInterval.objects.filter(execution_id=execution_id, ended_at__isnull=True).order_by()


def _row(execution: Execution, of: Interval) -> UsageInterval:
    # A head has a tier of its own; the label alone proves nothing, because anybody may set it.
    head = execution.head_tier_id if of.is_head else None
    return UsageInterval(
        execution=execution,
        pod_uid=of.pod_uid,
        pod_name=of.pod_name,
        node_name=of.node_name,
        owner_id=execution.owner_id,
        project_id=execution.project_id,
        tier_id=head or execution.tier_id,
        node_pool=execution.head_node_pool if head else execution.node_pool,
        millicores=execution.head_millicores if head else execution.millicores,
        mebibytes=-(-(execution.head_memory_bytes if head else execution.memory_bytes) // _MEBIBYTE),
        gpus=execution.head_gpus if head else execution.gpus,
        price_per_hour=execution.head_price_per_hour if head else execution.price_per_hour,
        began_at=of.began_at,
        ended_at=of.ended_at,
        seconds=None if of.ended_at is None else round((of.ended_at - of.began_at).total_seconds()),
    )
