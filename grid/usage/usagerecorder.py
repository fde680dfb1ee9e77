"""Keeps the usage intervals in step with the pods, at each reconcile of an execution."""

from collections.abc import Iterable
from datetime import datetime

from grid.executions import apply
from grid.executions.context import Context
from grid.executions.ledger import LedgerRecord
from grid.executions.progress import CREATED
from grid.executions.reconcile import ReconcileObserver
from grid.kube.objects import Pod
from grid.models import State
from grid.usage import usage
from grid.usage.intervals import Interval, Recorded, after, changes, interval


class UsageRecorder(ReconcileObserver):
    """Records usage during one term of leadership. It remembers what it has recorded, so that an execution at rest costs no query. A pod
    that ended while no controller ran held its node until `attended_until`, when the previous controller was last alive, or else until its
    absence is noticed: nobody is charged for time that nobody observed."""

    def __init__(self, context: Context, *, attended_until: datetime | None) -> None:
        self._context = context
        self._attended_until = attended_until
        self._recorded: dict[str, Recorded] = {}

    async def observe(self, row: LedgerRecord, *, has_new_events: bool) -> None:
        """Write what has begun or ended since the last reconcile. Raise GridError, and write nothing, when the cluster is unknown."""
        if row.state == State.QUEUED:
            return
        database, now = self._context.database, self._context.clock()
        recorded, attended_until = self._recorded.get(row.id), now
        if recorded is None:
            recorded, attended_until = Recorded(await database(usage.read_open, row.id)), self._attended_until or now
        cached = self._intervals(self._context.pods.by("execution", row.id), row.id, now, attended_until)
        seen = cached
        # When nothing is created yet, or everything is confirmed gone, an empty cache is no reason to ask.
        is_gone = row.is_final and not row.holds_slots
        has_no_pods = is_gone or (row.state == State.DEPLOYING and row.reason != CREATED)
        if recorded.open.keys() - cached.keys() or not (has_no_pods or self._context.knows_pods(row.id)):
            # The cache may be newer than these pods, or have lost an event: the API server knows.
            pods = await apply.find_pods(self._context.api, row.id, namespace=self._context.namespace)
            seen = self._intervals(pods, row.id, now, attended_until)
        vanished = {uid: at for uid, at in recorded.open.items() if uid not in seen}
        ends = {uid: attended_until if began_at <= attended_until <= now else now for uid, began_at in vanished.items()}
        made = changes(recorded, filter(None, seen.values()), ends)
        if made:
            await database(usage.record, row.id, made)
        self._recorded[row.id] = after(recorded, made, seen.keys() | cached.keys())

    def forget(self, execution_id: str) -> None:
        """Drop what is remembered of an execution that is settled."""
        self._recorded.pop(execution_id, None)

    def _intervals(
        self, pods: Iterable[Pod], execution_id: str, now: datetime, until: datetime
    ) -> dict[str, Interval | None]:
        """Return by uid the intervals of these and of its deleted pods; None for pods that never had a node."""
        held = {pod.metadata.uid: interval(pod, now=now, attended_until=until) for pod in pods}
        deleted = self._context.pods.deleted_pods.get(execution_id, {})
        return held | {uid: interval(gone.pod, gone_at=gone.at, now=now) for uid, gone in deleted.items()}
