"""A cluster that was launched with a workspace or job lives and dies with it."""

from collections.abc import Sequence
from datetime import datetime

from django.db.models import Q

from grid.launch.request import request_stop
from grid.models import Execution, State
from grid.models.environment import Kind
from grid.models.execution import ACTIVE_STATES, FINAL_STATES

_ENDING = (State.STOPPING, State.FINISHING, *FINAL_STATES)
_BY = {kind: f"its {kind.value}" for kind in Kind}
# Who asks for the stop, in the record.
PARENTS = frozenset(_BY.values())


def stop_with_parents(*, now: datetime) -> Sequence[str]:
    """Ask for the end of each cluster whose workspace or job ends or has ended, however it did; their ids.

    Asked of the database each time and not told by an event, so nothing that dies in between is forgotten.
    """
    ends = Q(attached_to__state__in=_ENDING) | Q(attached_to__stop_requested_at__isnull=False)
    found = Execution.objects.filter(
        ends, kind=Kind.CLUSTER, state__in=ACTIVE_STATES, stop_requested_at__isnull=True
    ).select_related("attached_to")
    stopped = []
    for cluster in found:
        parent = cluster.attached_to
        assert parent is not None, "the filter asked for it"
        request_stop(cluster, by=_BY[Kind(parent.kind)], now=now)
        stopped.append(cluster.pk)
    return stopped
