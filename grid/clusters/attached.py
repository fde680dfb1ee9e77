"""A cluster that was launched with a workspace or job ends with it; when the cluster ends first, the other's history says so."""

from collections.abc import Sequence
from datetime import datetime

from django.db.models import Q

from grid.core.reasons import ANYBODY
from grid.core.translation import gettext as _
from grid.executions.ledger import EventRecord, LedgerRecord
from grid.executions.stopping import PARENTS, request_stop
from grid.models import Execution, State
from grid.models.environment import Kind
from grid.models.execution import ACTIVE_STATES, FINAL_STATES

_ENDING = (State.STOPPING, State.FINISHING, *FINAL_STATES)


def stop_with_parents(data_plane: str, *, now: datetime) -> Sequence[str]:
    """Request the stop of each cluster in the data plane whose workspace or job ends or has ended; return their ids.
    The database is asked each time instead of relying on an event, so nothing is forgotten when a process dies in between.
    """
    ends = Q(attached_to__state__in=_ENDING) | Q(attached_to__stop_requested_at__isnull=False)
    due = (
        Execution.objects.in_data_plane(data_plane)
        .unsettled()
        .filter(ends, kind=Kind.CLUSTER, state__in=ACTIVE_STATES, stop_requested_at__isnull=True)
    )
    if not due.exists():  # mostly so; Django takes longer to ask for whole rows than the database to find them
        return []
    stopped = []
    for cluster in due.select_related("attached_to"):
        assert cluster.attached_to is not None, "the filter asked for it"
        request_stop(cluster, by=f"its {cluster.attached_to.kind}", now=now)
        stopped.append(cluster.pk)
    return stopped


def goes_on_alone(cluster: LedgerRecord, parent: LedgerRecord, *, now: datetime) -> EventRecord | None:
    """Return the history entry of a workspace or job whose cluster ends before it does; None when it ends too, or never starts."""
    if cluster.stop_wanted_by in PARENTS or parent.stop_wanted or parent.state in _ENDING:
        return None
    if cluster.state != State.ERROR:
        level = "Normal"
        message = _("{by} stopped its cluster; it continues without a cluster.", by=cluster.stop_wanted_by)
    elif parent.kind != Kind.JOB:  # a job that waits for its cluster is not started at all
        level, again = "Warning", _("If you need a cluster, launch both again.")
        sentence = _("Its cluster has failed, and it continues without a cluster. The cluster: {message} {again}")
        message = sentence.format(message=cluster.words(ANYBODY), again=again)
    else:
        return None
    uid = f"{cluster.id}/without_cluster"[-64:]
    return EventRecord(uid, now, f"Cluster/{cluster.object_name}", level, "WithoutCluster", message, 1)
