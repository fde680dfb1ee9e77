"""Records how long each execution took to start, in the transaction of the change that ends the start. The kubelet's events may come after
the pod's state: what was not known is filled in then, as long as the same controller lives."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import partial, reduce
from operator import attrgetter, or_
from typing import Any

import msgspec
from django.db import transaction
from django.db.models import Q

from grid.core.decoding import prepared
from grid.core.errors import GridError
from grid.core.labels import APP_COMPONENT, WORKER
from grid.diagnosis.startup import TOLERANCE, Phase, StartFacts, start_phases, true_since
from grid.diagnosis.startupevents import start_events
from grid.executions import ledger
from grid.executions.context import Context
from grid.executions.ledger import LedgerRecord
from grid.executions.lifecycle import Entered, Transition
from grid.executions.reconcile import ReconcileObserver
from grid.executions.spec import parse_spec
from grid.kube.objects import Node, Pod
from grid.kube.resources import NODES
from grid.models import Execution, Kind, StartDay, StartUp, State
from grid.models.execution import FINAL_STATES
from grid.observability import telemetry, tracing
from grid.starts.startdays import MERGED, WHOLE, StartSums, count, read_sums, sums_text

logger = logging.getLogger(__name__)

STARTING_STATES = frozenset({State.DEPLOYING, State.PREPARING})
# A start waits no longer than this for what would only complete its record.
NODE_SECONDS = 2.0
# Until then late events complete the record; after that they are about restarts.
LATE_EVENTS = timedelta(seconds=30)
# A pod that was bound sooner than this did not wait for a node to be made.
_AT_ONCE = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class _Incomplete:
    """The record of a start whose events may still come."""

    facts: StartFacts
    known: Mapping[str, Any]
    at: datetime


class StartUps(ReconcileObserver):
    """Makes the records of one term of leadership."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._incomplete: dict[str, _Incomplete] = {}

    async def start_record(self, row: LedgerRecord, change: Transition, pod: Pod | None) -> StartUp | None:
        """Return the record to write with a change that ends the start; None for others, and after a bug here, which is logged."""
        if row.state not in STARTING_STATES or change.state in STARTING_STATES:
            return None
        try:
            facts = await self._facts(row, pod, ran=change.state == State.RUNNING)
            columns = measured(facts)
        except Exception:
            logger.exception("execution=%s how long it took to start was not recorded", row.id)
            return None
        if facts.ran and (columns["image_cached"] is None or columns["merged_phases"]):
            self._incomplete[row.id] = _Incomplete(facts, columns, self._context.clock())
        reason = "" if facts.ran else change.reason
        return StartUp(execution_id=row.id, ran=facts.ran, reason=reason, **_about(row), **columns)

    async def observe(self, row: LedgerRecord, *, has_new_events: bool) -> None:
        """Complete the record after new events, if they say what was not known."""
        incomplete = self._incomplete.get(row.id) if has_new_events else None
        if incomplete is None or incomplete.facts.pod is None:
            return
        if self._context.clock() - incomplete.at > LATE_EVENTS:
            self._incomplete.pop(row.id)
            return
        events = start_events(self._context.events.of(row.id), incomplete.facts.pod)
        columns = measured(replace(incomplete.facts, events=events))
        if columns != incomplete.known and columns["image_cached"] is not None:
            await self._context.database(recount_start, row.id, columns)
            self._incomplete[row.id] = replace(incomplete, known=columns)

    def forget(self, execution_id: str) -> None:
        """Drop what is remembered of an execution that is settled."""
        self._incomplete.pop(execution_id, None)

    async def _facts(self, row: LedgerRecord, pod: Pod | None, *, ran: bool) -> StartFacts:
        context, is_cluster = self._context, row.kind == Kind.CLUSTER
        name, until = pod.metadata.name if pod is not None else None, context.clock()
        events = [event for event in context.events.of(row.id) if event.involved_object.name == name]
        if is_cluster and ran:
            until = _first_worker_ready(context.pods.by("execution", row.id), pod, until)
        return StartFacts(
            requested_at=row.requested_at,
            admitted_at=row.admitted_at,
            until=until,
            ran=ran,
            pod=pod,
            events=start_events(events, pod),
            node=await self._node(pod) if pod is not None else None,
            is_cluster=is_cluster,
            has_cluster=row.kind == Kind.JOB and await context.database(ledger.attached_cluster, row.id) is not None,
        )

    async def _node(self, pod: Pod) -> Node | None:
        """Return the node of a pod that had to wait for one; None when it did not, or the cluster does not say."""
        created, bound = pod.metadata.creation_timestamp, true_since(pod, "PodScheduled")
        if not pod.spec.node_name or (created and bound and bound - created <= _AT_ONCE):
            return None
        try:
            async with asyncio.timeout(NODE_SECONDS):
                return msgspec.convert(await self._context.api.get(NODES, pod.spec.node_name), prepared(Node))
        except (GridError, TimeoutError, msgspec.ValidationError) as error:
            logger.info("node not read node=%s reason=%s", pod.spec.node_name, str(error) or "no answer in time")
            return None


def measured(facts: StartFacts) -> dict[str, Any]:
    """Return the columns of `StartUp` that come from the facts."""
    phases = start_phases(facts)
    seconds, node, (names, together) = phases.seconds, phases.node, phases.merged
    return {
        "at": facts.requested_at + timedelta(seconds=phases.total),
        "total": _rounded(phases.total),
        **{phase.value: _rounded(seconds.get(phase)) for phase in Phase},
        "merged": _rounded(together) if names else None,
        "merged_phases": " ".join(names),
        "node_started": node.is_new,
        "node_decision": _rounded(node.decision),
        "node_creation": _rounded(node.creation),
        "node_joining": _rounded(node.joining),
        "image_cached": phases.image_cached,
        "image_bytes": phases.image_bytes,
    }


def record_start(entered: Entered) -> None:
    """Record the start that a change of state has ended, inside its transaction, and measure it once that is committed."""
    start_up = entered.start_up
    if start_up is None and entered.left == State.QUEUED and entered.change.state in FINAL_STATES:
        start_up = never_admitted(entered.execution_id, entered.change.reason, entered.now)
    if start_up is not None:
        count_start(start_up)
        transaction.on_commit(partial(_measure, start_up))


def _measure(start_up: StartUp) -> None:
    phases = {phase.value: getattr(start_up, phase.value) for phase in Phase}
    telemetry.started(start_up.kind, start_up.total, phases, ran=start_up.ran)
    taken = list(_in_order(start_up))
    tracing.started(start_up.pk, start_up.kind, ended_at=start_up.at, phases=taken, ran=start_up.ran)


def _in_order(start_up: StartUp) -> Iterator[tuple[str, float]]:
    """Yield the phases that took time, with those that could not be told apart at the place of the first of them."""
    merged = start_up.merged_phases.split()
    for phase in Phase:
        if merged and phase == merged[0]:
            yield "+".join(merged), start_up.merged or 0.0
        if seconds := getattr(start_up, phase.value):
            yield phase.value, seconds


def never_admitted(execution_id: str, reason: str, now: datetime) -> StartUp:
    """Return the record of an execution that ended while it was queued."""
    row = Execution.objects.get(pk=execution_id)
    facts = StartFacts(requested_at=row.requested_at, admitted_at=None, until=now, ran=False)
    is_cluster = row.kind == Kind.CLUSTER
    return StartUp(
        execution_id=row.pk,
        ran=False,
        reason=reason,
        kind=row.kind,
        framework=row.framework,
        tier_id=row.head_tier_id or row.tier_id,
        environment_id=row.environment_id,
        node_pool=row.head_node_pool if is_cluster else row.node_pool,
        image=str(row.spec.get("environment", {}).get("image", "")),
        **measured(facts),
    )


def _about(row: LedgerRecord) -> dict[str, Any]:
    spec = parse_spec(row)
    tier = spec.cluster.head_tier if spec.cluster is not None else spec.tier
    return {
        "kind": row.kind,
        "framework": spec.cluster.framework if spec.cluster is not None else "",
        "tier_id": tier.id,
        "environment_id": spec.environment.id,
        "node_pool": tier.node_pool,
        "image": spec.environment.image,
    }


def _first_worker_ready(pods: Sequence[Pod], head: Pod | None, now: datetime) -> datetime:
    """Return when head and first worker were ready, if that was noticed late; otherwise now."""
    workers = [true_since(pod, "Ready") for pod in pods if pod.metadata.labels.get(APP_COMPONENT) == WORKER]
    ready, head_ready = min(filter(None, workers), default=None), true_since(head, "Ready")
    both = max(ready, head_ready) if ready is not None and head_ready is not None else now
    return both if now - both > TOLERANCE else now


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def count_start(start: StartUp) -> None:
    """Store an execution's first start and count it. The caller holds the transaction, and the lock of the execution."""
    if not StartUp.objects.filter(pk=start.pk).exists():
        start.save(force_insert=True)
        _add(start, 1)


def recount_start(execution_id: str, columns: Mapping[str, Any]) -> None:
    """Write what became known of a start after it had ended, and count that instead of what was known."""
    with transaction.atomic():
        start = StartUp.objects.select_for_update().filter(pk=execution_id).order_by().first()
        if start is None:
            return
        _add(start, -1)
        for name, value in columns.items():
            setattr(start, name, value)
        start.save(update_fields=columns)
        _add(start, 1)


def count_starts(starts: Sequence[StartUp]) -> None:
    """Store many starts and count them, in few statements, where nobody else counts: in a database that is being filled."""
    StartUp.objects.bulk_create(starts, batch_size=500)
    sums: defaultdict[tuple[date, str, str], StartSums] = defaultdict(StartSums)
    for start in filter(attrgetter("ran"), starts):
        for grouping, group in _groups_of(start).items():
            _count(sums[start.at.astimezone(UTC).date(), grouping, group], start, 1)
    StartDay.objects.bulk_create(
        StartDay(day=day, grouping=grouping, group=group, starts=each.starts, sums=sums_text(each))
        for (day, grouping, group), each in sums.items()
    )


def _add(start: StartUp, times: int) -> None:
    if not start.ran:
        return
    rows = _locked(start)
    for row in rows:
        sums = read_sums(row.sums)
        _count(sums, start, times)
        row.starts, row.sums = sums.starts, sums_text(sums)
    StartDay.objects.bulk_update(rows, ["starts", "sums"])


def _count(sums: StartSums, start: StartUp, times: int) -> None:
    seconds = {str(name): value for name in (WHOLE, *Phase, MERGED) if (value := getattr(start, name)) is not None}
    count(sums, start.pk, seconds, image_cached=start.image_cached, node_started=start.node_started, times=times)


def _groups_of(start: StartUp) -> dict[StartDay.Grouping, str]:
    by = StartDay.Grouping
    groups = {by.ALL: "", by.ENVIRONMENT: start.environment_id, by.IMAGE: start.image}
    return groups | {by.POOL: start.node_pool, by.TIER: start.tier_id}


def _locked(start: StartUp) -> list[StartDay]:
    """Return the rows that count a start, made where there were none, and locked in the order of their keys, so that no two
    writers wait for each other."""
    day = start.at.astimezone(UTC).date()
    wanted = [StartDay(day=day, grouping=grouping, group=group) for grouping, group in _groups_of(start).items()]
    is_wanted = reduce(or_, (Q(grouping=row.grouping, group=row.group) for row in wanted))
    rows = StartDay.objects.filter(is_wanted, day=day).select_for_update().order_by("grouping", "group")
    counted = list(rows)
    if len(counted) < len(wanted):
        StartDay.objects.bulk_create(wanted, ignore_conflicts=True)
        counted = list(rows.all())
    return counted
