"""Changes by a person to a running cluster, each with an entry in its history: resizing, restarting its head. The caller checks rights.

A cluster may be resized down at once, and gives its slots back only when its workers are confirmed gone (`clusters.slots`). So nobody holds
more pods than slots, apart from the cases in docs/clusters.md.
"""

from datetime import datetime

from django.db import transaction
from django.db.models import Sum

from grid.clusters.request import beyond_limit, beyond_slots, wrong_counts
from grid.configuration import MAXIMUM_EXECUTIONS_PER_USER, cluster_policy, value_of
from grid.core.errors import Problem, Rejected, rejection
from grid.core.reasons import Reason
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.executions import lifecycle
from grid.executions.spec import ClusterSpec, parse_spec
from grid.models import Execution, State
from grid.models.environment import Kind

RESTARTABLE = frozenset({State.PREPARING, State.RUNNING})


def resize(execution: Execution, *, minimum: int, maximum: int, by: str, now: datetime) -> None:
    """Set the minimum and maximum of a cluster's workers. Raise Rejected; `execution` is refreshed.
    Scaling up takes the slots here, so they must be free now. Scaling down leaves `slots` as they are; see `slots_to_keep`.
    """
    while True:
        with transaction.atomic():
            row, cluster = _locked_cluster(execution)
            before, after = [cluster.workers_minimum, cluster.workers_maximum], [minimum, maximum]
            if before == after:
                break
            wanted = max(row.slots if row.holds_slots else 0, 1 + maximum)
            if problems := [*_wrong_size(cluster, minimum, maximum), *_without_room(row, wanted)]:
                raise Rejected(problems)
            columns = {"workers_minimum": minimum, "workers_maximum": maximum, "slots": wanted}
            cause = Reason("Resized", {"by": by, "before": before, "after": after})
            if lifecycle.record_change(row, columns, cause, by=by, now=now):
                break
    execution.refresh_from_db()


def restart_head(execution: Execution, *, by: str, now: datetime) -> None:
    """Request a new head: the controller records which head it finds and replaces that one, once. Raise Rejected."""
    while True:
        with transaction.atomic():
            row, _cluster = _locked_cluster(execution)
            if row.state not in RESTARTABLE:
                raise rejection(_("Its head is not running yet, so there is nothing to restart."), "too_early")
            cause = Reason("HeadRestarted", {"by": by})
            if lifecycle.record_change(row, {"restart_requested_at": now}, cause, by=by, now=now):
                break
    execution.refresh_from_db()


def slots_to_keep(slots: int, *, workers_maximum: int, worker_pods: int) -> int:
    """Return the slots that a cluster holding `slots` still needs, as observed; never more than it holds.
    For the controller, after Kubernetes' autoscaler (or the Deployment's replicas) got the new maximum: before that workers may still be
    added. `worker_pods` includes pods that are ending or only desired. Write the result on the revision that was read.
    """
    return min(slots, 1 + max(workers_maximum, worker_pods))


def _locked_cluster(execution: Execution) -> tuple[Execution, ClusterSpec]:
    """Return the living cluster's row as it is now, locked. Rows of the queue are locked before their users, by admission as well."""
    row = Execution.objects.select_for_update(no_key=True).get(pk=execution.pk)
    lifecycle.lock_holder(row.owner_id)
    try:
        cluster = parse_spec(row).cluster if row.kind == Kind.CLUSTER else None
    except ValueError as error:
        raise rejection(str(error), "unreadable") from error
    if cluster is None:
        raise rejection(_("Only a cluster has workers and a head."), "kind")
    if row.is_final or row.stop_requested_at is not None or row.state in (State.STOPPING, State.FINISHING):
        raise rejection(_("This cluster has ended or is being stopped; launch a new one."), "ended")
    return row, cluster


def _wrong_size(cluster: ClusterSpec, minimum: int, maximum: int) -> list[Problem]:
    problems = list(wrong_counts(minimum, maximum))
    policy = cluster_policy(cluster.framework)
    if maximum > max(policy.maximum_workers, cluster.workers_maximum):  # scaling down is always allowed
        problems.append(beyond_limit("workers_maximum", policy))
    if not cluster.scaling.autoscale and minimum != maximum and not problems:
        sentence = _("This cluster does not scale by itself; enter the same minimum and maximum.")
        problems.append(Problem("workers_maximum", sentence, "fixed"))
    return problems


def _without_room(row: Execution, wanted: int) -> list[Problem]:
    """Return a problem when the user lacks the slots: one that holds some needs the rest free now, one in the queue must fit the limit."""
    limit = value_of(MAXIMUM_EXECUTIONS_PER_USER)
    if not row.holds_slots:
        pair = Execution.objects.queued().filter(pk=row.attached_to_id).first()
        return list(beyond_slots("workers_maximum", wanted, limit, pair.kind if pair else ""))
    held = Execution.objects.in_data_plane(row.data_plane_id).holding_slots().filter(owner_id=row.owner_id)
    free = max(limit - (held.order_by().aggregate(Sum("slots"))["slots__sum"] or 0), 0)
    more = wanted - row.slots
    if more <= free:
        return []
    more_slots = plural(more, "more slot", "more slots")
    sentence = _(
        "This takes {more_slots}, and of {limit} only {free} are free. "
        "Choose at most {workers}, or stop something that you no longer need."
    ).format(more_slots=more_slots, limit=limit, free=free, workers=plural(row.slots + free - 1, "worker", "workers"))
    return [Problem("workers_maximum", sentence, "slots")]
