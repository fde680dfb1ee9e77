"""Writes state changes of executions: the state, its history entry and the new revision in one transaction, with what is told of it.

Every write is conditional on the revision that its writer has read. So two writers can never both make one change: the second gets False,
and reads again. Nothing else in the product writes an execution's state.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Case, DateTimeField, F, Q, Value, When

from grid.diagnosis.logfindings import LogFinding
from grid.diagnosis.startup import Phase
from grid.logs import knowledge
from grid.models import Execution, ExecutionLog, LifecycleEntry, StartUp, State
from grid.models.execution import FINAL_STATES
from grid.notifications import outbox
from grid.observability import telemetry, tracing
from grid.starts import startdays_store as startdays
from grid.usage import usage

_REASON_LENGTH = 60


@dataclass(frozen=True, slots=True)
class Transition:
    """A new state with its cause; `fields` are further columns to write with it."""

    state: State
    reason: str
    message: str
    actor: str = ""
    level: str = "Normal"


@dataclass(frozen=True, slots=True)
class KeptLog:
    """The end of a program's log, and what is known about its lines."""

    text: str
    findings: Sequence[LogFinding] = ()


def record_request(execution: Execution) -> None:
    """Store a new execution and the first entry of its history; the caller holds the transaction."""
    execution.save(force_insert=True)
    LifecycleEntry.objects.create(
        execution=execution,
        at=execution.requested_at,
        to_state=execution.state,
        reason=execution.reason,
        message=execution.message,
        actor=execution.owner.get_username(),
    )
    tracing.note(tracing.EXECUTION, execution.pk)
    transaction.on_commit(partial(telemetry.launched, execution.kind))


def enter(
    execution_id: str,
    change: Transition,
    *,
    revision: int,
    left: str,
    now: datetime,
    fields: Mapping[str, Any] | None = None,
    log: KeptLog | None = None,
    start_up: StartUp | None = None,
) -> bool:
    """Replace the state `left` by the change's; return False without writing when the row is no longer at `revision`.

    `log` is kept now, if there is one; `start_up` is the record of its start, when the change ends it.
    """
    columns: dict[str, Any] = {
        "state": change.state,
        "state_since": now,
        "reason": change.reason[:_REASON_LENGTH],
        "message": change.message,
        **(fields or {}),
    }
    if change.state in FINAL_STATES:
        columns["ended_at"] = now
    with transaction.atomic():
        if not update(execution_id, columns, revision=revision, now=now):
            return False
        LifecycleEntry.objects.create(
            execution_id=execution_id,
            at=now,
            from_state=left,
            to_state=change.state,
            level=change.level,
            reason=change.reason[:_REASON_LENGTH],
            message=change.message,
            actor=change.actor,
        )
        if log is not None:
            ExecutionLog.objects.update_or_create(execution_id=execution_id, defaults={"text": log.text, "at": now})
            knowledge.record(execution_id, log.findings, now)
        if start_up is not None:
            startdays.record(start_up)
        outbox.record_state(execution_id, change.state, change.message, actor=change.actor, now=now)
        transaction.on_commit(partial(_count, execution_id, change, start_up))
    return True


def _count(execution_id: str, change: Transition, start_up: StartUp | None) -> None:
    telemetry.entered(change.state, change.reason)
    if start_up is not None:
        phases = {phase.value: getattr(start_up, phase.value) for phase in Phase}
        telemetry.started(start_up.kind, start_up.total, phases, ran=start_up.ran)
        taken = list(_in_order(start_up))
        tracing.started(execution_id, start_up.kind, ended_at=start_up.at, phases=taken, ran=start_up.ran)


def _in_order(start_up: StartUp) -> Iterator[tuple[str, float]]:
    """Yield the phases that took time, with those that could not be told apart at the place of the first of them."""
    merged = start_up.merged_phases.split()
    for phase in Phase:
        if merged and phase == merged[0]:
            yield "+".join(merged), start_up.merged or 0.0
        if seconds := getattr(start_up, phase.value):
            yield phase.value, seconds


def update(execution_id: str, columns: Mapping[str, Any], *, revision: int, now: datetime) -> bool:
    """Write columns that change no state; return False when the row is no longer at `revision`.

    Slots are freed when no pod is left, so all usage intervals end with them.
    """
    rows = Execution.objects.filter(pk=execution_id, revision=revision)
    # `update` skips `auto_now`, and pages find changed rows by this time.
    written = {**columns, **_settlement(columns, now), "updated_at": now}
    with transaction.atomic():
        if rows.update(**written, revision=F("revision") + 1) != 1:
            return False
        if columns.get("slots_freed_at") is not None:
            usage.end_all(execution_id, now)
    return True


def _settlement(columns: Mapping[str, Any], now: datetime) -> dict[str, Case | Value]:
    """Return `settled_at` for a write that may be the later of the two: the end, and the freeing of the slots."""
    ends, frees = columns.get("state") in FINAL_STATES, columns.get("slots_freed_at") is not None
    if not ends and not frees:
        return {}
    is_over = Q() if ends else Q(state__in=sorted(FINAL_STATES))
    if not frees:
        is_over &= Q(slots_reserved_at__isnull=True) | Q(slots_freed_at__isnull=False)
    if not is_over:
        return {"settled_at": Value(now)}
    return {"settled_at": Case(When(is_over, then=Value(now)), default=Value(None), output_field=DateTimeField())}
