"""Reconciles the objects of a cluster, as a strategy of `grid.executions.reconcile`: besides deciding about the state it creates deleted
objects again, applies a changed size, executes a request for a new head once, and records incidents in the history."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from grid.clusters import attached, incidents, objects, progress, slots, status
from grid.clusters.changes import slots_to_keep
from grid.clusters.drift import DriftRepair
from grid.clusters.frameworks.base import cluster_of
from grid.clusters.progress import ObservedCluster
from grid.executions import apply, ledger
from grid.executions.context import Context
from grid.executions.ledger import LedgerRecord
from grid.executions.progress import Finding, waits_for_a_node
from grid.executions.spec import ExecutionSpec, parse_spec
from grid.kube.objects import Pod
from grid.models import State

logger = logging.getLogger(__name__)

# The autoscaler may act on a maximum that it read before we lowered it; after two of its rounds it no longer can.
SETTLE_SECONDS = 30.0
# The new head starts at once, beside the old one, whose memory is lost however long its grace period is.
RESTART_GRACE_SECONDS = 5


class Clusters:
    """Implements `reconcile.Objects`."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._drift = DriftRepair(context)
        self._within_slots = slots.WithinSlots(context)
        self._noted: dict[str, set[tuple[str, int]]] = {}
        self._lowered: dict[str, tuple[int, float]] = {}  # the lowered maximum, and when it was lowered

    async def create(self, row: LedgerRecord) -> Mapping[str, Any]:
        address = await self._drift.create(row, parse_spec(row))
        return {"reason_values": {"kind": row.kind}, "status": status.with_changes(row.status, head_address=address)}

    async def follow(self, row: LedgerRecord) -> Finding:
        """Enter the next state if it is time, else: 1. Record incidents. 2. Repair the objects, with the workers within the slots. 3.
        Write the status. 4. Execute a request for a new head. 5. Give back slots after the maximum was lowered."""
        context = self._context
        seen = ObservedCluster(await context.find_pods(row.id), context.events.of(row.id))
        change = progress.next_change(row, seen, timeouts=context.limits, now=context.clock())
        pod = progress.awaited(row, seen)
        if pod is not None and waits_for_a_node(change, pod):
            seen = replace(seen, scheduling=await context.nodes.of(pod))
            change = progress.next_change(row, seen, timeouts=context.limits, now=context.clock())
        if change is not None:
            return Finding(change, seen.head)
        spec = parse_spec(row)
        if row.state == State.RUNNING:
            await self._record_incidents(row, seen)
        is_bare = row.state != State.DEPLOYING and not (seen.head and seen.workers)
        sized, again = await self._within_slots.apply(row, spec, slots.count(seen.pods))
        address = await self._drift.keep(row, sized, invalidated=is_bare)
        if await self._remember(row, seen, address) or await self._restart_head(row, seen):
            return Finding(None, again=0.0)
        later = await self._give_back_slots(row, spec)
        return Finding(None, again=min((seconds for seconds in (again, later) if seconds is not None), default=None))

    async def main_pod(self, row: LedgerRecord) -> Pod | None:
        return ObservedCluster(await self._context.find_pods(row.id)).head

    async def delete(self, row: LedgerRecord) -> bool:
        context = self._context
        # The parent is told before the cluster's end is written, so that no crash in between loses it.
        parent = await context.database(ledger.read, row.attached_to) if row.attached_to else None
        line = attached.goes_on_alone(row, parent, now=context.clock()) if parent is not None else None
        if line is not None:
            await context.database(ledger.note_events, row.attached_to, [line])
        return await objects.delete_all(context.api, row.object_name, row.id, namespace=context.namespace)

    def is_seen(self, row: LedgerRecord) -> bool:
        return any(cache.by("execution", row.id) for cache in (self._context.pods, self._context.autoscalers))

    def exit_columns(self, pod: Pod) -> Mapping[str, Any]:
        """Return none: how its head ended says little about a cluster."""
        return {}

    def forget(self, execution_id: str) -> None:
        self._drift.forget(execution_id)
        self._within_slots.forget(execution_id)
        self._noted.pop(execution_id, None)
        self._lowered.pop(execution_id, None)

    async def audit(self) -> set[str]:
        return await self._drift.audit()

    async def _record_incidents(self, row: LedgerRecord, seen: ObservedCluster) -> None:
        deleted = [gone.pod for gone in self._context.pods.deleted_pods.get(row.id, {}).values()]
        lines = incidents.of_pods(seen, deleted, since=row.state_since, now=self._context.clock())
        head = status.read(row.status).head_pod
        if seen.head is not None and seen.head_is_ready and head not in ("", seen.head.metadata.uid):
            lines.append(incidents.head_replaced(seen.head, self._context.clock()))
        known = self._noted.setdefault(row.id, set())
        if new := [line for line in lines if (line.uid, line.count) not in known]:
            await self._context.database(ledger.note_events, row.id, new)
            known.update((line.uid, line.count) for line in new)
            for line in new:
                logger.info("incident execution=%s reason=%s object=%s", row.id, line.reason, line.object)
        for pod in deleted:
            self._context.pods.deleted_pods[row.id].pop(pod.metadata.uid, None)

    async def _remember(self, row: LedgerRecord, seen: ObservedCluster, address: str) -> bool:
        """Write the head's address and uid, and what the cluster waits for. Return True when anything was written."""
        columns: dict[str, Any] = {}
        standing = progress.standing(row, seen)
        if standing is not None and standing != row.reason:
            columns |= {"reason": standing, "reason_values": {}}
        known, head = status.read(row.status), seen.head
        changes = {} if address == known.head_address else {"head_address": address}
        if row.state == State.RUNNING and head is not None and seen.head_is_ready:
            if head.metadata.uid != known.head_pod:
                changes["head_pod"] = head.metadata.uid
            if head.spec.node_name != row.node_name:
                columns["node_name"] = head.spec.node_name
        if changes:
            columns["status"] = status.with_changes(row.status, **changes)
        if columns:
            await self._context.database(ledger.update, row, columns, now=self._context.clock())
        return bool(columns)

    async def _restart_head(self, row: LedgerRecord, seen: ObservedCluster) -> bool:
        """Record which head the request is for, then delete it: so each is executed once, on that head. Return True when recorded."""
        requested, known = row.restart_requested_at, status.read(row.status)
        if requested is None:
            return False
        if requested != known.restart_taken_up:
            pod = seen.head.metadata.uid if seen.head is not None else ""
            columns = {"status": status.with_changes(row.status, restart_taken_up=requested, restart_pod=pod)}
            await self._context.database(ledger.update, row, columns, now=self._context.clock())
            return True
        head = seen.head
        if head is None or head.metadata.uid != known.restart_pod or head.metadata.deletion_timestamp is not None:
            return False
        await apply.delete_pod(self._context.api, head, grace_seconds=RESTART_GRACE_SECONDS)
        logger.info("head is replaced as asked execution=%s pod=%s", row.id, head.metadata.name)
        return False

    async def _give_back_slots(self, row: LedgerRecord, spec: ExecutionSpec) -> float | None:
        """Give back the slots that no pod uses or can come to use, after the maximum was lowered; return seconds until the next check.
        The pods are counted from the API server, never from a cache."""
        context, most = self._context, cluster_of(spec).workers_maximum
        if row.slots <= 1 + most:
            self._lowered.pop(row.id, None)
            return None
        now = context.monotonic()
        if self._lowered.get(row.id, (None,))[0] != most:
            self._lowered[row.id] = (most, now)  # lowered again: the autoscaler may act on the maximum before this one
        waited = now - self._lowered[row.id][1]
        if waited < SETTLE_SECONDS:
            return SETTLE_SECONDS - waited
        workers = slots.count(await apply.find_pods(context.api, row.id, namespace=context.namespace))
        wanted = await objects.worker_replicas(context.api, row.id, context.namespace)
        in_use = max(workers.staying, wanted) + workers.ending
        kept = slots_to_keep(row.slots, workers_maximum=most, worker_pods=in_use)
        if kept < row.slots and await context.database(ledger.update, row, {"slots": kept}, now=context.clock()):
            logger.info("slots given back execution=%s slots=%d", row.id, row.slots - kept)
        return None if kept == 1 + most else SETTLE_SECONDS
