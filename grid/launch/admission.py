"""Admits queued executions in one transaction: takes a snapshot, lets `quota` decide, writes the decisions.

Two processes may run this at the same time and no slot is given twice; see `snapshot.take` for why.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction

from grid import telemetry
from grid.centralconfig import OVER_QUOTA_TIMEOUT, value_of
from grid.launch import lifecycle, snapshot, startups, takeover
from grid.launch.budgets.closing import closed_projects
from grid.launch.lifecycle import Transition
from grid.launch.maintenance.gate import current_maintenance, last_end
from grid.launch.maintenance.rules import waiting_sentence
from grid.launch.quota import Deferred, QuotaSnapshot, admit
from grid.launch.snapshot import Queue, Unit
from grid.models import Execution, LastAdmission, QueueOrder, State
from grid.models.environment import Kind
from grid.translation import gettext as _
from grid.wording import duration

ADMITTED = Transition(State.DEPLOYING, "admitted", _("Has a slot; creating its objects in the cluster."))


def admit_waiting(data_plane: str, *, now: datetime) -> Sequence[str]:
    """Admit executions to the data plane and return their ids in order, a workspace or job and its cluster one after the other.

    An execution that has waited too long ends as an error; the others get a message with the reason and their place in the queue.
    """
    if not Execution.objects.in_data_plane(data_plane).queued().exists():
        return []
    with transaction.atomic():
        queue = snapshot.take(data_plane)
        decisions = admit(_with_gates(queue, now))
        timeout = timedelta(seconds=value_of(OVER_QUOTA_TIMEOUT))
        opened_at = max(filter(None, (last_end(now), takeover.last_end(now))), default=None)
        admitted = [row for id in decisions.admitted for row in _reserve(queue.units[id], now)]
        _remember_turns(admitted, now)
        _forget_orders(queue, admitted)
        for id, refused in decisions.refused.items():
            since = _waits_since(queue.units[id], queue.orders.get(id), opened_at)
            is_late = refused.code not in ("held", "maintenance", "taken_over") and now - since > timeout
            _keep_waiting(queue.units[id], refused, is_late, timeout, now)
        transaction.on_commit(partial(telemetry.asked_for_slots, "admitted", len(admitted)))
    return [row.pk for row in admitted]


def _with_gates(queue: Queue, now: datetime) -> QuotaSnapshot:
    """Return the snapshot with what keeps units from starting whatever is free: maintenance, an operator
    who has taken over the queue, and a used up budget of their project."""
    maintenance = current_maintenance(now)
    until = waiting_sentence(maintenance) if maintenance is not None else ""
    taken = takeover.current_takeover(now)
    by_hand = takeover.waiting_sentence(taken) if taken is not None else ""
    project_of = {id: unit[0].project_id for id, unit in queue.units.items()}
    closed = closed_projects(set(project_of.values()), now)
    waiting = (
        replace(one, maintenance=until, taken_over=by_hand, over_budget=closed.get(project_of[one.execution_id], ""))
        for one in queue.snapshot.waiting
    )
    return replace(queue.snapshot, waiting=tuple(waiting))


def _remember_turns(admitted: Sequence[Execution], now: datetime) -> None:
    served = {(row.owner_id, tier) for row in admitted for tier in snapshot.tiers_of(row)}
    LastAdmission.objects.bulk_create(
        [LastAdmission(user_id=user, tier_id=tier, at=now) for user, tier in sorted(served)],
        update_conflicts=True,
        unique_fields=["user", "tier"],
        update_fields=["at"],
    )


def _forget_orders(queue: Queue, admitted: Sequence[Execution]) -> None:
    """Delete what operators decided about executions that no longer wait."""
    left = (queue.orders.keys() - queue.units.keys()) | (queue.orders.keys() & {row.pk for row in admitted})
    if left:
        QueueOrder.objects.filter(pk__in=left).delete()


def _waits_since(unit: Unit, order: QueueOrder | None, opened_at: datetime | None) -> datetime:
    """Return since when it waits for a slot: being held does not count, nor does what was before the end of maintenance or of a
    takeover, `opened_at`."""
    released_at = order.released_at if order is not None else None
    return max(moment for moment in (unit[0].state_since, released_at, opened_at) if moment is not None)


def _reserve(unit: Unit, now: datetime) -> Unit:
    """Admit every execution of the unit atomically; return () if any revision changed."""
    with transaction.atomic():
        fields = {"slots_reserved_at": now}
        for row in unit:
            if not lifecycle.enter(row.pk, ADMITTED, revision=row.revision, left=row.state, now=now, fields=fields):
                transaction.set_rollback(True)
                return ()
    return unit


def _keep_waiting(unit: Unit, refused: Deferred, is_late: bool, timeout: timedelta, now: datetime) -> None:
    """Write the refusal to the whole unit in one transaction: its executions wait, and time out, together."""
    with transaction.atomic():
        for row in unit:
            if not _wrote(row, refused, is_late, timeout, now):
                transaction.set_rollback(True)
                return


def _wrote(row: Execution, refused: Deferred, is_late: bool, timeout: timedelta, now: datetime) -> bool:
    if is_late:
        if refused.code == "over_budget":
            message = _("It has waited {timeout} and could not start. {why}")
        elif row.kind == Kind.WORKSPACE:
            message = _("No slot became free within {timeout}. Resume it when there is room.")
        else:
            message = _("No slot became free within {timeout}. Launch it again when there is room.")
        message = message.format(timeout=duration(timeout), why=refused.message)
        change = Transition(State.ERROR, "over_quota_timeout", message, level="Warning")
        start_up = startups.never_admitted(row.pk, change.reason, now)
        transaction.on_commit(partial(telemetry.asked_for_slots, "timed_out"))
        return lifecycle.enter(row.pk, change, revision=row.revision, left=row.state, now=now, start_up=start_up)
    if (row.reason, row.message) == (refused.code, refused.message):
        return True
    if row.reason != refused.code:  # else it only moved in the queue
        transaction.on_commit(partial(telemetry.asked_for_slots, "deferred"))
    columns = {"reason": refused.code, "message": refused.message}
    return lifecycle.update(row.pk, columns, revision=row.revision, now=now)
