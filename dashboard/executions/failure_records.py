"""Reads from the database what failed on a node, whose pods may be gone, synchronously."""

from datetime import datetime

from dashboard.usage.viewmodels.failure_moments import SHOWN_AT_MOST, FailedExecution
from grid.models import Execution, State
from grid.models.dataplane import LOCAL


def failed_on(node_name: str, since: datetime) -> list[FailedExecution]:
    """Return the executions that failed on the node since then, the newest first, at most as many as are shown. The index of the history
    by end bounds what is read to those that ended since."""
    rows = Execution.objects.filter(
        ended_at__gte=since, state__in=(State.FAILED, State.ERROR), node_name=node_name, data_plane=LOCAL
    ).order_by("-ended_at", "-id")
    read = rows.only("kind", "title", "ended_at", "message")[:SHOWN_AT_MOST]
    return [FailedExecution(one.pk, str(one), one.ended_at, one.message) for one in read if one.ended_at is not None]
