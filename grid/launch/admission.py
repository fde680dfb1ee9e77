"""Gives free slots to those who wait, in one transaction: reads a snapshot, lets `quota` decide, writes the decisions.

Two processes may run this at the same time and no slot is given twice; see `snapshot.take` for why.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction

from grid.centralconfig import OVER_QUOTA_TIMEOUT, value_of
from grid.diagnosis.diagnosis import duration
from grid.launch import lifecycle, snapshot
from grid.launch.lifecycle import Change
from grid.launch.quota import Refused, admit
from grid.models import Execution, State

ADMITTED = Change(State.DEPLOYING, "admitted", "Has a slot; its objects are being created in the cluster.")


def admit_waiting(*, now: datetime) -> Sequence[str]:
    """The ids of those admitted, in order. Who waits too long ends as an error; everybody else learns why and where he stands."""
    if not Execution.objects.filter(state=State.QUEUED).exists():
        return []
    with transaction.atomic():
        queue = snapshot.take()
        decisions = admit(queue.snapshot)
        timeout = timedelta(seconds=value_of(OVER_QUOTA_TIMEOUT))
        admitted = [id for id in decisions.admitted if _reserve(queue.rows[id], now)]
        for id, refused in decisions.refused.items():
            _keep_waiting(queue.rows[id], refused, timeout, now)
    return admitted


def _reserve(row: Execution, now: datetime) -> bool:
    fields = {"slots_reserved_at": now}
    return lifecycle.enter(row.pk, ADMITTED, revision=row.revision, left=row.state, now=now, fields=fields)


def _keep_waiting(row: Execution, refused: Refused, timeout: timedelta, now: datetime) -> None:
    if now - row.state_since > timeout:
        message = f"No slot became free within {duration(timeout)}. Launch it again when there is room."
        change = Change(State.ERROR, "over_quota_timeout", message, level="Warning")
        lifecycle.enter(row.pk, change, revision=row.revision, left=row.state, now=now)
    elif (row.reason, row.message) != (refused.code, refused.message):
        columns = {"reason": refused.code, "message": refused.message}
        lifecycle.update(row.pk, columns, revision=row.revision, now=now)
