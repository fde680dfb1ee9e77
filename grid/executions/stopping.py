"""Requests the stop of an execution. A queued one ends at once, and its pair with it as far as that makes sense: a workspace or job takes
the cluster that waits with it along; a cluster goes alone, and the workspace or job goes on without one. The controller ends running ones,
and also a cluster when its workspace or job has ended."""

from datetime import datetime
from typing import Any, Literal

from django.db import transaction
from django.db.models import Q

from grid.core.reasons import Reason
from grid.executions import lifecycle
from grid.executions.lifecycle import Transition, record_change
from grid.models import Execution, State
from grid.models.environment import Kind

LEFT_PROJECT, ONLY_VIEWS, ACCOUNT_CLOSED = "left_project", "only_views", "account_closed"
REPLACED, BUDGET_USED_UP = "replaced", "budget_used_up"
IDLE, LIFETIME = "idle", "lifetime"
RESTART = "restart"
_REASONS = frozenset({LEFT_PROJECT, ONLY_VIEWS, ACCOUNT_CLOSED, REPLACED, BUDGET_USED_UP, IDLE, LIFETIME, RESTART})
REQUESTED, STOPPED = "stop_requested", "stopped"  # by a person
# What a cluster belongs to, by what is recorded as the person who requested its stop.
PARENTS = {f"its {kind.value}": kind for kind in Kind}


def stop_cause(
    step: Literal["queued", "asked", "ended"], *, by: str, reason: str, kind: str, with_: str = ""
) -> Reason:
    """Return the cause of a stop that takes this step; `with_` is the kind of what it is stopped with, if it is another execution, and
    `reason` is as of `request_stop`; one that is not known, from before an upgrade, says nothing."""
    why = reason if reason in _REASONS else ""
    code = why or (REQUESTED if step == "asked" else STOPPED)
    return Reason(code, {"step": step, "by": by, "why": why, "kind": kind, "with": with_ or PARENTS.get(by, "")})


def request_stop(execution: Execution, *, by: str, now: datetime, reason: str = "") -> None:
    """Request the stop of an execution; twice, or after its end, changes nothing. `reason` is a code when no person requested it."""
    asked = {"stop_requested_at": now, "stop_requested_by": by, "stop_reason": reason}
    while True:
        execution.refresh_from_db()
        if execution.is_final or execution.stop_requested_at is not None:
            return
        if _wrote_stop(execution, asked):
            execution.refresh_from_db()
            return


def _wrote_stop(execution: Execution, asked: dict[str, Any]) -> bool:
    now = asked["stop_requested_at"]
    if execution.state != State.QUEUED:
        return lifecycle.update(execution.pk, asked, revision=execution.revision, now=now)
    # The executions of the pair that wait, locked in the order in which admission locks them.
    pair = Q(pk=execution.pk) | Q(attached_to=execution.pk) | Q(pk=execution.attached_to_id)
    rows = Execution.objects.select_for_update(no_key=True).queued().filter(pair).order_by("requested_at", "pk")
    with transaction.atomic():
        unit = {row.pk: row for row in rows}
        done = execution.pk in unit and _leave_queue(execution.pk, unit, asked)
        if not done:
            transaction.set_rollback(True)
    return done


def _leave_queue(stopped: str, unit: dict[str, Execution], asked: dict[str, Any]) -> bool:
    now, by, reason = asked.values()
    for row in unit.values():
        if row.pk != stopped and row.attached_to_id != stopped:
            if not record_change(row, {}, Reason("WithoutCluster", {"by": by}), by=by, now=now):
                return False
            continue
        with_ = "" if row.pk == stopped else unit[stopped].kind
        cause = stop_cause("queued", by=by, reason=reason, kind=row.kind, with_=with_)
        change = Transition(State.STOPPED, cause.code, actor=by, values=cause.values)
        if not lifecycle.enter(row.pk, change, revision=row.revision, left=row.state, now=now, fields=asked):
            return False
    return True
