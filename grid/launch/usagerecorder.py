"""Keeps the record of who held which node in step with the pods, at each look at an execution."""

from collections.abc import Set
from datetime import datetime

from grid.launch import apply, usage
from grid.launch.context import Context
from grid.launch.intervals import Interval, Recorded, after, changes, interval
from grid.launch.ledger import Row
from grid.models import State


class UsageRecorder:
    """One per term of leadership. It remembers what it has recorded, so that an execution at rest costs no query.

    A pod that ended while nobody looked held its node until `attended_until`, when the controller before this one was last alive:
    nobody is charged for what nobody saw. Without that moment it is taken to have ended when its absence is noticed.
    """

    def __init__(self, context: Context, *, attended_until: datetime | None) -> None:
        self._context = context
        self._attended_until = attended_until
        self._recorded: dict[str, Recorded] = {}

    async def record(self, row: Row) -> None:
        """Write down what has begun or ended since the last look. Raises GridError when the cluster has to be asked and does not
        answer: then nothing is written, and the next look does it all."""
        if row.state == State.QUEUED:
            return
        database, now = self._context.database, self._context.clock()
        recorded, attended_until = self._recorded.get(row.id), now
        if recorded is None:
            recorded, attended_until = Recorded(await database(usage.read_open, row.id)), self._attended_until or now
        seen = self._seen(row.id, now)
        if absent := recorded.open.keys() - seen.keys():
            seen |= await self._ask_for(row.id, absent, now)
        vanished = {uid: at for uid, at in recorded.open.items() if uid not in seen}
        ends = {uid: attended_until if began_at <= attended_until <= now else now for uid, began_at in vanished.items()}
        made = changes(recorded, [one for one in seen.values() if one is not None], ends)
        if made:
            await database(usage.record, row.id, made)
        self._recorded[row.id] = after(recorded, made, seen.keys())

    def forget(self, execution_id: str) -> None:
        """It is settled; nothing needs to be remembered."""
        self._recorded.pop(execution_id, None)

    def _seen(self, execution_id: str, now: datetime) -> dict[str, Interval | None]:
        """By uid, what the cache shows of its pods and of those that went; None for those that never had a node."""
        pods = self._context.pods
        found = {pod.metadata.uid: interval(pod, now=now) for pod in pods.by("execution", execution_id)}
        for uid, gone in pods.deleted_pods.get(execution_id, {}).items():
            found[uid] = interval(gone.pod, gone_at=gone.at, now=now)
        return found

    async def _ask_for(self, execution_id: str, uids: Set[str], now: datetime) -> dict[str, Interval | None]:
        """The cache may be younger than these pods, or have lost an event: whether they are gone is for the API server to say."""
        actual = await apply.find_pods(self._context.api, execution_id, namespace=self._context.namespace)
        return {pod.metadata.uid: interval(pod, now=now) for pod in actual if pod.metadata.uid in uids}
