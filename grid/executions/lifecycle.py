"""Writes state changes of executions: the state, its history entry and the new revision in one transaction, with what other rooms add.
Every write is conditional on the revision that its writer has read. So two writers can never both make one change: the second gets False,
and reads again. Nothing else in the product writes an execution's state. Rooms that keep something of a change register a hook
(`grid.composition`): notifications, start-up statistics, logs and usage."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Case, DateTimeField, F, Q, Value, When

from grid.core.reasons import ANYBODY, Reader, Reason, Values, words_of
from grid.diagnosis.logfindings import LogFinding
from grid.models import Execution, LifecycleEntry, StartUp, State, User
from grid.models.execution import FINAL_STATES
from grid.observability import telemetry, tracing

_REASON_LENGTH = 60


@dataclass(frozen=True, slots=True)
class Transition:
    """A new state with its cause: the code with the values of its sentence, or a text that is quoted as `message`."""

    state: State
    reason: str
    message: str = ""
    actor: str = ""
    level: str = "Normal"
    values: Values | None = None

    def words(self, reader: Reader) -> str:
        return words_of(self.reason, self.values, self.message, reader)


@dataclass(frozen=True, slots=True)
class KeptLog:
    """The end of a program's log, and what is known about its lines."""

    text: str
    findings: Sequence[LogFinding] = ()


@dataclass(frozen=True, slots=True)
class Entered:
    """A change of state from `left` that was written, with the end of the program's log if it ended, and its start if that ended."""

    execution_id: str
    left: str
    change: Transition
    now: datetime
    log: KeptLog | None = None
    start_up: StartUp | None = None


# In the order in which they were added, each once.
_on_enter: dict[Callable[[Entered], None], None] = {}
_on_slots_freed: dict[Callable[[str, datetime], None], None] = {}


def on_enter(hook: Callable[[Entered], None]) -> None:
    """Call `hook` with each change of state, inside its transaction: an error undoes the change. What has to wait until the change is
    committed, the hook gives to `transaction.on_commit`."""
    _on_enter[hook] = None


def on_slots_freed(hook: Callable[[str, datetime], None]) -> None:
    """Call `hook` with an execution's id and the time when its slots are freed, inside the transaction: no pod of it is left."""
    _on_slots_freed[hook] = None


def record_request(execution: Execution) -> None:
    """Store a new execution and the first entry of its history; the caller holds the transaction."""
    execution.save(force_insert=True)
    cause = {name: getattr(execution, name) for name in ("reason", "reason_values", "message")}
    at, actor = execution.requested_at, execution.owner.get_username()
    LifecycleEntry.objects.create(execution=execution, at=at, to_state=execution.state, actor=actor, **cause)
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
    """Replace the state `left` by the change's; return False without writing when the row is no longer at `revision`. `log` is kept now,
    if there is one; `start_up` is the record of its start, when the change ends it."""
    cause: dict[str, Any] = {"reason": change.reason[:_REASON_LENGTH], "reason_values": change.values}
    cause["message"] = change.message
    columns: dict[str, Any] = {"state": change.state, "state_since": now, **cause, **(fields or {})}
    if change.state in FINAL_STATES:
        columns["ended_at"] = now
        columns["message"] = change.words(ANYBODY)  # the history is searched for it
    with transaction.atomic():
        if not update(execution_id, columns, revision=revision, now=now):
            return False
        cause |= {"level": change.level, "actor": change.actor}
        LifecycleEntry.objects.create(
            execution_id=execution_id, at=now, from_state=left, to_state=change.state, **cause
        )
        entered = Entered(execution_id, left, change, now, log, start_up)
        for hook in _on_enter:
            hook(entered)
        transaction.on_commit(partial(telemetry.entered, change.state, change.reason))
    return True


def update(execution_id: str, columns: Mapping[str, Any], *, revision: int, now: datetime) -> bool:
    """Write columns that change no state; return False when the row is no longer at `revision`."""
    rows = Execution.objects.filter(pk=execution_id, revision=revision)
    # `update` skips `auto_now`, and pages find changed rows by this time.
    written = {**columns, **_settlement(columns, now), "updated_at": now}
    if "reason" in columns:  # what belongs to the cause of before goes with it
        written = {"reason_values": None, "message": "", **written}
    with transaction.atomic():
        if rows.update(**written, revision=F("revision") + 1) != 1:
            return False
        if columns.get("slots_freed_at") is not None:
            for hook in _on_slots_freed:
                hook(execution_id, now)
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


def record_change(row: Execution, columns: dict[str, Any], cause: Reason, *, by: str, now: datetime) -> bool:
    """Write the columns with an entry in the history; return False without writing when the row was written meanwhile."""
    with transaction.atomic():
        if not update(row.pk, columns, revision=row.revision, now=now):
            return False
        entry = LifecycleEntry(execution_id=row.pk, at=now, source=LifecycleEntry.Source.CHANGE, actor=by)
        entry.event_uid, entry.reason, entry.reason_values = f"change-{row.revision}", cause.code, cause.values
        entry.save(force_insert=True)
    return True


def lock_holder(user_id: int) -> None:
    """Lock the user's row, so that until the transaction ends nobody else gives this user slots. SQLite has one writer at a time anyway."""
    list(User.objects.select_for_update(no_key=True).filter(pk=user_id).values_list("pk"))
