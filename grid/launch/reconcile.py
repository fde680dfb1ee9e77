"""One look at one execution: compare what is recorded with what the cluster shows, and take the next step.

Every step may be repeated, and may be the last thing this process does: the next look, by whichever controller, goes on from
what the database and the cluster then say. What an execution consists of in the cluster is a strategy's matter: the one pod of a
workspace, job or app (`runs`), or the objects of a cluster (`clusters.reconcile`). Deciding is in their `progress`, writing in
`ledger`, the cluster in `apply`.
"""

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol

from grid.databasetrouble import trouble_of
from grid.errors import GridError, NotAllowed, NotFound, Rejected
from grid.kube.objects import Event, Pod
from grid.launch import apply, ledger, progress
from grid.launch.clusters.reconcile import Clusters
from grid.launch.context import Context, NotYet
from grid.launch.ledger import EventRecord, LedgerRecord
from grid.launch.lifecycle import Transition
from grid.launch.progress import CREATED, Finding
from grid.launch.runs import AwaitsCluster, ClusterFailed, Runs
from grid.launch.usagerecorder import UsageRecorder
from grid.models import State
from grid.models.environment import Kind
from grid.wording import duration

logger = logging.getLogger(__name__)

# Between two looks at pods that are asked to end; the watch usually tells sooner.
ENDING_LOOK_SECONDS = 5.0
RETRY_SECONDS = 10.0
NOT_YET_SECONDS = 1.0
AWAITS_CLUSTER = "awaits_cluster"  # the cluster's clock runs meanwhile, and not this one's


class Objects(Protocol):
    """What executions of one sort consist of in the cluster. Every method may be repeated, and killed in any call."""

    async def create(self, row: LedgerRecord) -> Mapping[str, Any]:
        """Create what is missing; the columns to write when all is there. Raises NotYet, or what the API server says."""
        ...

    async def follow(self, row: LedgerRecord) -> Finding:
        """See how they are, repair and record what is not a change of state, and say whether it is time for one."""
        ...

    async def main_pod(self, row: LedgerRecord) -> Pod | None:
        """The pod whose node and log are the execution's."""
        ...

    async def delete(self, row: LedgerRecord) -> bool:
        """Ask for the end of everything. True while anything is left that uses a slot, or could come to."""
        ...

    def is_seen(self, row: LedgerRecord) -> bool:
        """Whether the caches show anything of it."""
        ...

    def stopping(self, row: LedgerRecord) -> str:
        """The sentence for a stop that was asked for."""
        ...

    def stopped(self, row: LedgerRecord) -> str:
        """The sentence for its end."""
        ...


class Reconciler:
    """`look` is called by one worker at a time for one execution; it returns seconds until it wants to look again, or None."""

    def __init__(self, context: Context, *, attended_until: datetime | None = None) -> None:
        """`attended_until`: when a controller before this one was last alive."""
        self._context = context
        self._database = context.database
        self._usage = UsageRecorder(context, attended_until=attended_until)
        self._runs = Runs(context)
        self._clusters = Clusters(context)
        self._noted: dict[str, dict[str, int]] = {}

    async def reconcile(self, execution_id: str) -> float | None:
        """The whole procedure:

        1. Read the row. Without one of this data plane there is nothing to do: what is another installation's, or another data
           plane's, is none of ours.
        2. Keep its new Kubernetes events in its history, and the times for which its pods held nodes.
        3. Queued: nothing; admission is decided for all at once.
        4. Ended: remove what is left in the cluster, and free the slots when nothing is left.
        5. Stopping or finishing: the same, and then enter the final state.
        6. Stop wanted: enter stopping, which keeps the log first.
        7. Deploying without objects: create them.
        8. Otherwise look at the pods and enter the next state, if it is time.
        """
        row = await self._database(ledger.read, execution_id)
        if row is None or row.data_plane != self._context.target.data_plane:
            self.forget(execution_id)
            return None
        await self._note_events(row)
        await self._record_usage(row)
        if row.state == State.QUEUED:
            return None
        if row.is_final:
            return await self._clear(row)
        if row.state in (State.STOPPING, State.FINISHING):
            return await self._end(row)
        objects = self._objects(row)
        if row.stop_wanted:
            change = Transition(
                State.STOPPING, row.stop_reason or "stop_requested", objects.stopping(row), actor=row.stop_wanted_by
            )
            return await self._enter(row, change, await objects.main_pod(row))
        if row.state == State.DEPLOYING and row.reason != CREATED:
            return await self._create(row)
        return await self._follow(row)

    def invalidate(self, execution_id: str) -> None:
        """What the cache knows of its pods has turned out wrong: they are read from the cluster the next time."""
        self._context.invalidated.add(execution_id)

    def forget(self, execution_id: str) -> None:
        """It is settled; nothing needs to be remembered."""
        self._noted.pop(execution_id, None)
        self._context.invalidated.discard(execution_id)
        self._context.pods.deleted_pods.pop(execution_id, None)
        self._clusters.forget(execution_id)
        self._usage.forget(execution_id)

    async def audit(self) -> set[str]:
        """The clusters of which an object is missing or was changed by somebody; they are to be looked at."""
        return await self._clusters.audit()

    # --- Steps ---

    async def _create(self, row: LedgerRecord) -> float | None:
        try:
            columns = await self._objects(row).create(row)
        except AwaitsCluster as error:
            return await self._try_again(row, AWAITS_CLUSTER, str(error), NOT_YET_SECONDS)
        except NotYet as error:
            return await self._try_again(row, "waiting", str(error), NOT_YET_SECONDS)
        except ClusterFailed as error:
            change = Transition(State.ERROR, "cluster_failed", f"{error} Launch both again.", level="Warning")
            return await self._enter(row, change, None)
        except (ValueError, Rejected, apply.NameTaken) as error:
            change = Transition(State.ERROR, "not_created", f"The cluster did not take it: {error}", level="Warning")
            return await self._enter(row, change, None)
        except NotAllowed as error:
            # Perhaps a quota of the namespace that is used up for the moment.
            message = f"The cluster does not allow it: {error}"
            if row.message != message:
                logger.warning("not allowed to create execution=%s reason=%s", row.id, error)
            return await self._try_again(row, "not_allowed", message, RETRY_SECONDS)
        except NotFound:
            await apply.ensure_namespace(self._context.api, self._context.namespace)
            return 1.0
        now = self._context.clock()
        written = {"reason": CREATED, **columns, **_clock(row, CREATED, now)}
        await self._database(ledger.update, row, written, now=now)
        return 0.0

    async def _try_again(self, row: LedgerRecord, reason: str, message: str, seconds: float) -> float:
        """Until it is too late for it; while its cluster is on its way, that is the cluster's matter."""
        seconds_allowed, now = self._context.limits.get(State.DEPLOYING), self._context.clock()
        limit = timedelta.max if seconds_allowed is None else timedelta(seconds=seconds_allowed)
        if AWAITS_CLUSTER not in (reason, row.reason) and now - row.state_since > limit:
            message = f"Gave up after {duration(limit)}. Last known: {message}"
            return await self._enter(row, Transition(State.ERROR, reason, message, level="Warning"), None)
        if (row.reason, row.message) != (reason, message):
            columns = {"reason": reason, "message": message, **_clock(row, reason, now)}
            await self._database(ledger.update, row, columns, now=now)
        return seconds

    async def _follow(self, row: LedgerRecord) -> float | None:
        found = await self._objects(row).follow(row)
        return found.again if found.change is None else await self._enter(row, found.change, found.pod)

    async def _enter(self, row: LedgerRecord, change: Transition, pod: Pod | None) -> float:
        """Write the change, with all that becomes true with it; look again at once, whether it was written or not."""
        now = self._context.clock()
        fields: dict[str, Any] = {}
        log = ""
        if change.state == State.PREPARING and pod is not None:
            fields["node_name"] = pod.spec.node_name
        if change.state == State.RUNNING and pod is not None:
            fields["started_at"] = progress.ran_since(pod) or now
        if change.state in (State.STOPPING, State.FINISHING, State.ERROR) and pod is not None and pod.spec.node_name:
            log = await self._context.log_of(pod)
        await self._write(row, change, now, fields, log)
        return 0.0

    async def _end(self, row: LedgerRecord) -> float:
        if await self._objects(row).delete(row):
            return ENDING_LOOK_SECONDS
        if row.state == State.FINISHING:
            change = progress.outcome(row)
        else:
            message = f"{self._objects(row).stopped(row)} The project's files are kept."
            change = Transition(State.STOPPED, row.stop_reason or "stopped", message, actor=row.stop_wanted_by)
        now = self._context.clock()
        await self._write(row, change, now, {"slots_freed_at": now} if row.holds_slots else {})
        return 0.0

    async def _clear(self, row: LedgerRecord) -> float | None:
        """After an error the pods may live on for a while; its slots are free only when they have been seen gone."""
        if not row.holds_slots and not self._objects(row).is_seen(row):
            return None
        if await self._objects(row).delete(row):
            return ENDING_LOOK_SECONDS
        if row.holds_slots:
            now = self._context.clock()
            await self._database(ledger.update, row, {"slots_freed_at": now}, now=now)
            logger.info("slots freed execution=%s", row.id)
        return None

    def _objects(self, row: LedgerRecord) -> Objects:
        return self._clusters if row.kind == Kind.CLUSTER else self._runs

    # --- The record ---

    async def _record_usage(self, row: LedgerRecord) -> None:
        """Raises what trying again helps against; a fault of ours must not keep an execution from going on, and from its stop."""
        try:
            await self._usage.record(row)
        except GridError:
            raise
        except Exception as error:
            if trouble_of(error) is not None:
                raise
            logger.exception("execution=%s what its pods use was not recorded", row.id)

    async def _write(
        self, row: LedgerRecord, change: Transition, now: datetime, fields: Mapping[str, Any], log: str = ""
    ) -> None:
        if await self._database(ledger.enter, row, change, now=now, fields=fields, log=log):
            logger.info("execution=%s %s -> %s reason=%s", row.id, row.state, change.state, change.reason)
        else:
            logger.debug("execution=%s was written by somebody else meanwhile", row.id)

    async def _note_events(self, row: LedgerRecord) -> None:
        events = {_uid(event): event for event in self._context.events.of(row.id)}
        known = self._noted.get(row.id, {})
        new = [event for uid, event in events.items() if known.get(uid) != event.times]
        if new:
            now = self._context.clock()
            await self._database(ledger.note_events, row.id, [_noted(event, row, now) for event in new])
            self._noted[row.id] = {uid: event.times for uid, event in events.items()}


def _clock(row: LedgerRecord, reason: str, now: datetime) -> dict[str, datetime]:
    """The deploying timeout is for what comes after the wait for a cluster."""
    return {"state_since": now} if row.reason == AWAITS_CLUSTER != reason else {}


def _uid(event: Event) -> str:
    return (event.metadata.uid or event.metadata.name)[:64]


def _noted(event: Event, row: LedgerRecord, now: datetime) -> EventRecord:
    about = event.involved_object
    at = event.first_timestamp or event.last_seen or now
    return EventRecord(
        uid=_uid(event),
        # Kubernetes counts whole seconds: without this, what follows the admission would be told before it.
        at=max(at, row.admitted_at) if row.admitted_at else at,
        object=f"{about.kind}/{about.name}",
        level=event.type,
        reason=event.reason,
        message=event.message,
        count=event.times,
    )
