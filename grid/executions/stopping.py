"""Requests the stop of an execution. A queued one ends at once, and its pair with it as far as that makes sense: a workspace or job takes
the cluster that waits with it along; a cluster goes alone, and the workspace or job goes on without one.

The controller ends running ones, and also a cluster when its workspace or job has ended.
"""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q

from grid.core.translation import gettext as _
from grid.executions import lifecycle
from grid.executions.lifecycle import Transition, record_change
from grid.models import Execution, State

LEFT_PROJECT, ONLY_VIEWS, ACCOUNT_CLOSED = "left_project", "only_views", "account_closed"
REPLACED, OVER_BUDGET = "replaced", "over_budget"
IDLE, LIFETIME = "idle", "lifetime"
RESTART = "restart"
_WHY = {
    LEFT_PROJECT: _("its owner has left the project"),
    ONLY_VIEWS: _("its owner is only a viewer of the project now"),
    ACCOUNT_CLOSED: _("its owner's account was closed"),
    OVER_BUDGET: _("the budget of its project is used up"),
    REPLACED: _("the next run of its schedule replaces it"),
    IDLE: _("nobody used it for too long"),
    LIFETIME: _("its maximum lifetime is over"),
    RESTART: _("it is restarted"),
}


def because(reason: str) -> str:
    """Return the reason as text to append to who requested the stop; "" when that was a person, who needs no reason."""
    return _(", because {why}", why=_WHY[reason]) if reason in _WHY else ""


def request_stop(execution: Execution, *, by: str, now: datetime, reason: str = "") -> None:
    """Request the stop of an execution; a queued one ends at once. Doing it twice, or after its end, changes nothing.

    `reason` is a code when no person requested the stop.
    """
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
    with transaction.atomic():
        unit = _waiting_unit(execution)
        done = execution.pk in unit and _leave_queue(execution.pk, unit, asked)
        if not done:
            transaction.set_rollback(True)
    return done


def _waiting_unit(execution: Execution) -> dict[str, Execution]:
    """Return the executions of the pair that wait, locked in the order in which admission locks them."""
    pair = Q(pk=execution.pk) | Q(attached_to=execution.pk) | Q(pk=execution.attached_to_id)
    rows = Execution.objects.select_for_update(no_key=True).queued().filter(pair).order_by("requested_at", "pk")
    return {row.pk: row for row in rows}


def _leave_queue(stopped: str, unit: dict[str, Execution], asked: dict[str, Any]) -> bool:
    now, by, reason = asked.values()
    for row in unit.values():
        if row.pk == stopped:
            message = _("Stopped by {by} before it started{because}.", by=by, because=because(reason))
        elif row.attached_to_id == stopped:
            message = _(
                "Stopped with the {kind} that it belongs to, by {by}, before it started{because}.",
                kind=unit[stopped].get_kind_display().lower(),
                by=by,
                because=because(reason),
            )
        else:
            if not _go_on_alone(row, by, now):
                return False
            continue
        change = Transition(State.STOPPED, reason or "stopped", message, actor=by)
        entered = lifecycle.enter(row.pk, change, revision=row.revision, left=row.state, now=now, fields=asked)
        if not entered:
            return False
    return True


def _go_on_alone(row: Execution, by: str, now: datetime) -> bool:
    message = _("{by} stopped its cluster before it started; this continues without a cluster.", by=by)
    return record_change(row, {}, reason="WithoutCluster", message=message, by=by, now=now)
