"""What operators decide about the queue: hold, release, and move; each with an entry in the execution's history and in the audit log.
Every decision locks the rows of the queue as admission does. So it is made of a queue that stands still, two operators decide one after
the other, and what was admitted meanwhile is refused with a sentence that says so. The caller checks rights."""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Literal

from django.db import transaction

from grid.audit.entries import write_entry
from grid.core.errors import Rejected, rejection
from grid.core.reasons import Reason
from grid.core.translation import gettext as _
from grid.core.wording import one_line
from grid.executions.lifecycle import record_change
from grid.models import Execution, QueueOrder, State, User
from grid.queue import quota, snapshot
from grid.queue.gate import held, held_words
from grid.queue.snapshot import Queue

Move = Literal["front", "back", "before", "turn"]
REASON_LONGEST = 200


def hold(execution_id: str, *, by: User, reason: str, now: datetime) -> None:
    """Keep a waiting execution from starting until it is released; all others pass it. Raise Rejected."""
    with transaction.atomic():
        _hold(*_waiting(execution_id, now), by, reason, now)


def hold_several(execution_ids: Collection[str], *, by: User, reason: str, now: datetime) -> int:
    """Hold each that waits and is not held yet; return how many were held."""
    return _decide_each(execution_ids, lambda row, queue: _hold(row, queue, by, reason, now), now)


def _hold(row: Execution, queue: Queue, by: User, reason: str, now: datetime) -> None:
    reason = one_line(reason)[:REASON_LONGEST]
    order = queue.orders.get(row.pk) or QueueOrder(execution=row)
    if order.held_at is not None:
        raise rejection(_("{held} It is held already.", held=_held_words(order)), "held")
    order.held_at, order.held_by, order.held_reason = now, by.get_username(), reason
    order.save()
    hold = held(order.held_by, reason)
    columns = {"reason": hold.code, "reason_values": dict(hold.values), "message": ""}
    cause = Reason("HeldInQueue", {"by": order.held_by, "why": reason.rstrip(".")})
    _write(row, columns, cause, ["waiting", held_words(hold.values)], by, now)


def _held_words(order: QueueOrder) -> str:
    return held_words(held(order.held_by, order.held_reason).values)


def release(execution_id: str, *, by: User, now: datetime) -> None:
    """Let a held execution start when its turn comes. Its wait is counted anew. Raise Rejected."""
    with transaction.atomic():
        _release(*_waiting(execution_id, now), by, now)


def release_several(execution_ids: Collection[str], *, by: User, now: datetime) -> int:
    """Release each that is held; return how many were."""
    return _decide_each(execution_ids, lambda row, queue: _release(row, queue, by, now), now)


def _release(row: Execution, queue: Queue, by: User, now: datetime) -> None:
    order = queue.orders.get(row.pk)
    if order is None or order.held_at is None:
        raise rejection(_("Nobody holds it; it waits for its turn."), "not_held")
    words = _held_words(order)
    order.held_at, order.held_by, order.held_reason, order.released_at = None, "", "", now
    order.save()
    values = {"by": by.get_username()}
    columns = {"reason": "released", "reason_values": values}
    _write(row, columns, Reason("ReleasedInQueue", values), [words, "waiting"], by, now)


def _decide_each(execution_ids: Collection[str], decide: Callable[[Execution, Queue], None], now: datetime) -> int:
    """Decide about each unit of these executions, with one snapshot of the queue; return how many. The refused stay as they are."""
    done = 0
    for data_plane in sorted(set(Execution.objects.filter(pk__in=execution_ids).values_list("data_plane", flat=True))):
        with transaction.atomic():
            queue = snapshot.take(data_plane, now=now)
            for unit in queue.units.values():
                if not {row.pk for row in unit}.isdisjoint(execution_ids):
                    with suppress(Rejected), transaction.atomic():
                        decide(unit[0], queue)
                        done += 1
    return done


def move(execution_id: str, where: Move, *, before: str = "", by: User, now: datetime) -> None:
    """Move a waiting execution to the front, to the back, before another one, or to its turn again. Raise Rejected. What was in front of
    the other one stays in front of both: its order is fixed too."""
    with transaction.atomic():
        row, queue = _waiting(execution_id, now)
        standing = [id for id in quota.order(queue.snapshot) if id != row.pk]
        orders = (order for order in queue.orders.values() if order.pk in queue.units and order.pk != row.pk)
        ranked = [id for _, id in sorted((order.rank, order.pk) for order in orders if order.rank is not None)]
        pinned = ranked
        if where == "before":
            pinned = _before(_head_of(before, queue), row.pk, ranked, standing)
        elif where == "front":
            pinned = [row.pk, *ranked]
        _store(queue, pinned, moved=row.pk, back_at=now if where == "back" else None)
        cause = Reason("MovedInQueue", {"by": by.get_username(), "where": where})
        _write(row, {}, cause, ["", f"{where} {before}" if where == "before" else where], by, now)


def _waiting(execution_id: str, now: datetime) -> tuple[Execution, Queue]:
    """Return the unit's first row and the queue, locked; raise Rejected when it no longer waits."""
    data_plane = Execution.objects.filter(pk=execution_id).values_list("data_plane", flat=True).first()
    queue = snapshot.take(data_plane, now=now) if data_plane is not None else None
    if queue is not None and (head := _head_of(execution_id, queue)):
        return queue.units[head][0], queue
    state = Execution.objects.filter(pk=execution_id).values_list("state", flat=True).first()
    raise rejection(_gone(state), "not_waiting")


def _head_of(execution_id: str, queue: Queue) -> str:
    """Return the id of the unit's first row, of which this is a part."""
    return next((id for id, unit in queue.units.items() if execution_id in {row.pk for row in unit}), "")


def _gone(state: str | None) -> str:
    if state is None:
        return _("This execution no longer exists.")
    if State(state).is_final:
        return _("It has ended in the meantime; nothing was changed.")
    label = State(state).label.lower()
    return _("It has left the queue in the meantime and is {state}; nothing was changed.", state=label)


def _store(queue: Queue, pinned: Sequence[str], *, moved: str, back_at: datetime | None) -> None:
    wanted: dict[str, tuple[int | None, datetime | None]] = {id: (place, None) for place, id in enumerate(pinned, 1)}
    wanted.setdefault(moved, (None, back_at))
    for id, (rank, at) in wanted.items():
        order = queue.orders.get(id) or QueueOrder(execution_id=id)
        if (order.rank, order.back_at) != (rank, at):
            order.rank, order.back_at = rank, at
            order.save()


def _before(other: str, moved: str, ranked: Sequence[str], standing: Sequence[str]) -> list[str]:
    """Return what is put in front when `moved` goes before `other`; raise Rejected when that one is not in the order."""
    if other not in standing:
        sentence = _(
            "The execution to put it before is no longer waiting, is held, or is not in front of a taken-over queue."
        )
        raise rejection(sentence, "before")
    if other in ranked:
        place = ranked.index(other)
        return [*ranked[:place], moved, *ranked[place:]]
    ahead = standing[: standing.index(other)]
    return [*(id for id in ranked if id not in ahead), *ahead, moved]


def _write(
    row: Execution, columns: dict[str, Any], cause: Reason, was_and_is: list[str], by: User, now: datetime
) -> None:
    if not record_change(row, columns, cause, by=by.get_username(), now=now):
        raise rejection(_("It was changed at the same moment; look again."), "changed")
    write_entry(by, row, {"queue": was_and_is}, at=now)
