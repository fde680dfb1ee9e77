"""The controller's reads and writes in the database, as plain values and small transactions. Synchronous: the controller runs each
function in its own thread for the database. See `lifecycle` for how two writers are kept apart."""

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Count, Min, Q, QuerySet

from grid.configuration import DEPLOYING_TIMEOUT, PREPARING_TIMEOUT, all_values
from grid.core.reasons import Reader, Values, words_of
from grid.diagnosis.logfindings import findings
from grid.executions import lifecycle
from grid.executions.lifecycle import Transition
from grid.models import Execution, LifecycleEntry, StartUp, State
from grid.models.environment import Kind
from grid.models.execution import FINAL_STATES, ExecutionQuerySet

MOST_NOTED = 500
_AT_ONCE = 500  # databases limit how many values one query names
_MESSAGE_LENGTH = 4000
_REASON_LENGTH = 80


@dataclass(frozen=True, slots=True)
class LedgerRecord:
    """An execution as the controller sees it. `holds_slots` is True until its pods are confirmed gone; `attached_to` is "" for most."""

    id: str
    data_plane: str
    kind: str
    object_name: str
    state: State
    state_since: datetime
    requested_at: datetime
    revision: int
    reason: str
    message: str
    stop_wanted: bool
    stop_wanted_by: str
    holds_slots: bool
    admitted_at: datetime | None
    spec: object
    workers_minimum: int = 0
    workers_maximum: int = 0
    status: object = None
    restart_requested_at: datetime | None = None
    slots: int = 1
    attached_to: str = ""
    node_name: str = ""
    stop_reason: str = ""
    reason_values: Values | None = None

    @property
    def cause(self) -> list[Any]:
        """Its code, values and text, as `words_of` reads them."""
        return [self.reason, self.reason_values, self.message]

    def words(self, reader: Reader) -> str:
        return words_of(self.reason, self.reason_values, self.message, reader)

    @property
    def is_final(self) -> bool:
        return self.state in FINAL_STATES


@dataclass(frozen=True, slots=True)
class RunningCluster:
    """A running cluster, whose framework can be polled."""

    id: str
    revision: int
    spec: object
    workers_minimum: int
    workers_maximum: int


@dataclass(frozen=True, slots=True)
class EventRecord:
    """An event for an execution's history, from Kubernetes or of our own."""

    uid: str
    at: datetime
    object: str
    level: str
    reason: str
    message: str
    count: int


def row_versions(data_plane: str, ids: Collection[str] | None = None) -> dict[str, int]:
    """Return the revision of every unsettled execution of the data plane, or of those with these ids, in the order of request."""
    rows = Execution.objects.in_data_plane(data_plane).unsettled().order_by("requested_at", "pk")
    rows = rows if ids is None else rows.filter(pk__in=ids)
    return dict(rows.values_list("pk", "revision"))


def may_change_queue(ids: Collection[str]) -> bool:
    """Return False when admission decides as before these writes: each holds its slots, and as many while it runs (not so clusters)."""
    unchanged = Execution.objects.filter(pk__in=ids).holding_slots().exclude(kind=Kind.CLUSTER)
    return unchanged.count() < len(ids)


@dataclass(frozen=True, slots=True)
class UnsettledWork:
    """The unsettled executions by kind and state, and for how long the one that waits longest has been queued."""

    counts: Mapping[tuple[str, str], int]
    queue_oldest_seconds: float


def unsettled_work(data_planes: Collection[str], *, now: datetime) -> UnsettledWork:
    """Return what there is to do in the data planes."""
    unsettled = Execution.objects.filter(data_plane__in=data_planes).unsettled().order_by()
    rows = list(unsettled.values_list("kind", "state").annotate(Count("pk"), Min("state_since")))
    counts = {(kind, state): count for kind, state, count, _since in rows}
    oldest = min([now, *(since for _kind, state, _count, since in rows if state == State.QUEUED)])
    return UnsettledWork(counts, (now - oldest).total_seconds())


def overdue(data_plane: str, *, now: datetime) -> tuple[Mapping[State, int], Sequence[str]]:
    """Return the timeouts as configured now, and the ids of executions that exceed the one of their state."""
    limits = timeouts()
    return limits, list(too_long(data_plane, limits, now).values_list("pk", flat=True))


def too_long(data_plane: str, limits: Mapping[State, int], now: datetime) -> ExecutionQuerySet:
    """Return the executions that are in a state for longer than its limit, of which there is at least one."""
    late = Q()
    for state, seconds in limits.items():
        late |= Q(state=state, state_since__lt=now - timedelta(seconds=seconds))
    return Execution.objects.in_data_plane(data_plane).unsettled().filter(late).order_by()


def clusters_that_run(data_plane: str) -> ExecutionQuerySet:
    unsettled = Execution.objects.in_data_plane(data_plane).unsettled()
    return unsettled.filter(kind=Kind.CLUSTER, state=State.RUNNING, stop_requested_at__isnull=True).order_by()


def running_clusters(data_plane: str, known: Mapping[str, int]) -> tuple[Set[str], Sequence[RunningCluster]]:
    """Return the ids of the running clusters, and those whose revision is not the known one: only their large specs are read."""
    running = clusters_that_run(data_plane)
    revisions = dict(running.values_list("pk", "revision"))
    changed = [id for id, revision in revisions.items() if known.get(id) != revision]
    columns = running.values_list("pk", "revision", "spec", "workers_minimum", "workers_maximum")
    clusters: list[RunningCluster] = []
    for start in range(0, len(changed), _AT_ONCE):
        clusters += (RunningCluster(*row) for row in columns.filter(pk__in=changed[start : start + _AT_ONCE]))
    return revisions.keys(), clusters


def timeouts() -> Mapping[State, int]:
    """Return the seconds after which an execution times out in a state, as configured now."""
    values = all_values()
    return {State.DEPLOYING: values[DEPLOYING_TIMEOUT.key], State.PREPARING: values[PREPARING_TIMEOUT.key]}


def read(execution_id: str) -> LedgerRecord | None:
    return _row(Execution.objects.filter(pk=execution_id).first())


def attached_cluster(execution_id: str) -> LedgerRecord | None:
    """Return the cluster of a workspace or job; None when it has none."""
    return _row(Execution.objects.filter(attached_to=execution_id).order_by("-requested_at").first())


def _row(row: Execution | None) -> LedgerRecord | None:
    if row is None:
        return None
    return LedgerRecord(
        id=row.pk,
        data_plane=row.data_plane_id,
        kind=row.kind,
        object_name=row.object_name,
        state=State(row.state),
        state_since=row.state_since,
        requested_at=row.requested_at,
        revision=row.revision,
        reason=row.reason,
        message=row.message,
        stop_wanted=row.stop_requested_at is not None,
        stop_wanted_by=row.stop_requested_by,
        holds_slots=row.holds_slots,
        admitted_at=row.slots_reserved_at,
        spec=row.spec,
        workers_minimum=row.workers_minimum,
        workers_maximum=row.workers_maximum,
        status=row.status,
        restart_requested_at=row.restart_requested_at,
        slots=row.slots,
        attached_to=row.attached_to_id or "",
        node_name=row.node_name,
        stop_reason=row.stop_reason,
        reason_values=row.reason_values,
    )


def enter(
    row: LedgerRecord,
    change: Transition,
    *,
    now: datetime,
    fields: Mapping[str, Any],
    log: str = "",
    start_up: StartUp | None = None,
) -> bool:
    """Enter the state of the change. Return False when the execution was written since `row` was read. The log of a program that failed is
    searched for what is known; a program that ended well, or was stopped, has no cause to find."""
    kept = lifecycle.KeptLog(log, findings(log) if change.level == "Warning" else ()) if log else None
    more: dict[str, Any] = {"fields": fields, "log": kept, "start_up": start_up}
    return lifecycle.enter(row.id, change, revision=row.revision, left=row.state, now=now, **more)


def update(row: LedgerRecord, columns: Mapping[str, Any], *, now: datetime) -> bool:
    return lifecycle.update(row.id, columns, revision=row.revision, now=now)


def note_events(execution_id: str, events: Sequence[EventRecord]) -> None:
    """Add new events to the history, and increase the counts of repeated ones; a count never goes down. An execution keeps at most
    `MOST_NOTED` of them: a cluster that is scaled for weeks makes events without end. The least telling go first, and do not come back:
    events about single pods without a warning, and of those the oldest."""
    with transaction.atomic():
        rows = LifecycleEntry.objects.filter(execution_id=execution_id, source=LifecycleEntry.Source.KUBERNETES)
        known: dict[str, int] = {}
        uids = [event.uid for event in events]
        for start in range(0, len(uids), _AT_ONCE):
            known |= rows.filter(event_uid__in=uids[start : start + _AT_ONCE]).values_list("event_uid", "count")
        new = {event.uid: event for event in events if event.uid not in known}
        dropped = _make_room(rows, new)
        for event in events:
            if event.uid in new and event.uid not in dropped:
                key = {"execution_id": execution_id, "event_uid": event.uid}
                rows.get_or_create(**key, defaults=_entry(event))
            elif event.count > known.get(event.uid, event.count):
                rows.filter(event_uid=event.uid).update(count=event.count, message=_entry(event)["message"])


def note_for_all(data_plane: str, event: EventRecord) -> None:
    """Add the event to the history of each unsettled execution of the data plane, with its launch as the earliest time."""
    unsettled = Execution.objects.in_data_plane(data_plane).unsettled()
    rows = unsettled.order_by("requested_at", "pk").values_list("pk", "requested_at")
    lines = [LifecycleEntry(execution_id=id, **_entry(event) | {"at": max(event.at, since)}) for id, since in rows]
    LifecycleEntry.objects.bulk_create(lines, batch_size=500, ignore_conflicts=True)


def _make_room(rows: QuerySet[LifecycleEntry], new: Mapping[str, EventRecord]) -> Set[str]:
    """Delete entries to make room for the new events; return the uids that did not fit, old and new."""
    if not new or rows.count() + len(new) <= MOST_NOTED:
        return frozenset()
    stored = rows.only("event_uid", "at", "level", "object")
    order = [(*_weight(entry), entry.at, entry.event_uid) for entry in stored]
    order += [(*_weight(event), event.at, event.uid) for event in new.values()]
    dropped = frozenset(uid for *_, uid in sorted(order)[: max(0, len(order) - MOST_NOTED)])
    gone = [entry.pk for entry in stored if entry.event_uid in dropped]
    LifecycleEntry.objects.filter(pk__in=gone).delete()
    return dropped


def _entry(event: EventRecord) -> dict[str, Any]:
    return {
        "source": LifecycleEntry.Source.KUBERNETES,
        "event_uid": event.uid,
        "at": event.at,
        "object": event.object[:300],
        "level": event.level[:10],
        # PostgreSQL stores no NUL.
        "reason": event.reason.replace("\x00", "")[:_REASON_LENGTH],
        "message": event.message.replace("\x00", "")[:_MESSAGE_LENGTH],
        "count": event.count,
    }


def _weight(line: LifecycleEntry | EventRecord) -> tuple[bool, bool]:
    return line.level != "Normal", not line.object.startswith("Pod/")
