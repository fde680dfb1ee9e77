"""Reconciles one execution: compares its row with its objects in the cluster, and takes the next step. Every step may be repeated, and may
be the last thing that this process does: the next reconcile, by any controller, continues from the state of database and cluster. The
strategy of its kind knows the objects of an execution: its one pod (`runs`), or the objects of a cluster (`clusters.reconcile`). Decisions
are in their `progress`, writes in `ledger`, calls to the cluster in `apply`. Other rooms observe."""

import logging
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol

from grid.core.errors import ClusterUnavailable, GridError, NotAllowed, NotFound, Rejected, TooManyRequests
from grid.core.translation import gettext as _
from grid.core.wording import duration
from grid.database.trouble import trouble_of
from grid.diagnosis.refusals import THROTTLED, explain_refusal
from grid.executions import apply, ledger, progress
from grid.executions.apply import end_of_log
from grid.executions.context import Context, NotYet
from grid.executions.kinds import all_kinds
from grid.executions.ledger import EventRecord, LedgerRecord
from grid.executions.lifecycle import Transition
from grid.executions.manifests import CONTAINER
from grid.executions.progress import CREATED, Finding
from grid.executions.runs import AWAITS_CLUSTER, AwaitsCluster, ClusterFailed
from grid.executions.stopping import stop_cause
from grid.kube.errors import answer_of, trimmed
from grid.kube.objects import Event, Pod
from grid.models import StartUp, State
from grid.secrets.storedsecrets import SecretMissing

logger = logging.getLogger(__name__)

# Between two checks of pods that are ending; the watch usually reports their end sooner.
ENDING_LOOK_SECONDS = 5.0
RETRY_SECONDS = 10.0
NOT_YET_SECONDS = 1.0
NAMESPACE_SECONDS = 1.0
SEEN_SECONDS = 1.0  # in which the watch shows what was created, and has it reconciled: before, only the API server would know of it
NOT_ALLOWED = "not_allowed"


class Objects(Protocol):
    """The objects of one sort of execution in the cluster. Every method may be repeated, and interrupted at any call."""

    async def create(self, row: LedgerRecord) -> Mapping[str, Any]:
        """Create missing objects and return the columns to write when all exist. Raise NotYet, or the API server's error."""

    async def follow(self, row: LedgerRecord) -> Finding:
        """Observe, repair, record what is no change of state, and return whether it is time for one."""

    async def main_pod(self, row: LedgerRecord) -> Pod | None:
        """Return the pod whose node and log are the execution's."""

    async def delete(self, row: LedgerRecord) -> bool:
        """Delete everything. Return True while anything is left that uses a slot, or may come to use one."""

    def is_seen(self, row: LedgerRecord) -> bool:
        """Return True when the caches show any of its objects."""

    def exit_columns(self, pod: Pod) -> Mapping[str, Any]:
        """Return the columns that its main pod tells of its program's end; {} while it has not ended."""

    async def audit(self) -> set[str]:
        """Return the executions to reconcile, because an object of theirs is missing or was changed."""

    def forget(self, execution_id: str) -> None:
        """Drop what is remembered of an execution that is settled."""


class ReconcileObserver:
    """Observes the reconciles of one term of leadership. A room overrides what it needs; the controller hands them to the reconciler."""

    async def observe(self, row: LedgerRecord, *, has_new_events: bool) -> None:
        """Record what has changed since the last reconcile. Raise GridError for what a retry may resolve: the reconcile is repeated."""

    async def pod_ends(self, row: LedgerRecord, pod: Pod) -> None:
        """Read what is left of a pod that is to go, or whose program has ended. Raise GridError while a retry may still read it."""

    async def start_record(self, row: LedgerRecord, change: Transition, pod: Pod | None) -> StartUp | None:
        """Return the record of the start that the change ends, to be written with it; None for other changes."""
        return None

    def forget(self, execution_id: str) -> None:
        """Drop what is remembered of an execution that is settled."""


class Reconciler:
    """Reconciles executions. `reconcile` is called by one worker at a time for one execution."""

    def __init__(self, context: Context, observers: Iterable[ReconcileObserver] = ()) -> None:
        self._context = context
        self._database = context.database
        self._observers = [*observers]
        self._strategies = {kind.name: kind.strategy(context) for kind in all_kinds()}
        self._noted: dict[str, dict[str, int]] = {}
        self._exits: dict[str, dict[str, Any]] = {}  # what the last pods of executions that are stopping have told

    async def reconcile(self, execution_id: str) -> float | None:
        """Take the next step and return the seconds until the next reconcile, None without any:

        1. Read the row. Without a row of this data plane there is nothing to do: the execution is another installation's, or another
           data plane's.
        2. Record its new Kubernetes events, and have the observers record theirs, such as the intervals in which its pods held nodes.
        3. Queued: nothing; admission is decided for all at once.
        4. Ended: delete what is left in the cluster, and free the slots when nothing is left.
        5. Stopping or finishing: the same, and then enter the final state.
        6. Stop requested: enter stopping, which keeps the log first.
        7. Deploying without objects: create them.
        8. Otherwise observe the pods and enter the next state, if it is time.
        """
        row = await self._database(ledger.read, execution_id)
        if row is None or row.data_plane != self._context.target.data_plane:
            self.forget(execution_id)
            return None
        has_new_events = await self._note_events(row)
        if row.state == State.STOPPING:
            self._note_exit(row)
        await self._observe(row, has_new_events=has_new_events)
        if row.state == State.QUEUED:
            return None
        if row.is_final:
            return await self._clear(row)
        if row.state in (State.STOPPING, State.FINISHING):
            return await self._end(row)
        objects = self._objects(row)
        if row.stop_wanted:
            cause = stop_cause("asked", by=row.stop_wanted_by, reason=row.stop_reason, kind=row.kind)
            change = Transition(State.STOPPING, cause.code, actor=row.stop_wanted_by, values=cause.values)
            return await self._enter(row, change, await objects.main_pod(row))
        if row.state == State.DEPLOYING and row.reason != CREATED:
            return await self._create(row)
        finding = await objects.follow(row)
        return finding.again if finding.change is None else await self._enter(row, finding.change, finding.pod)

    def add_observer(self, observer: ReconcileObserver) -> None:
        self._observers.append(observer)

    def invalidate(self, execution_id: str) -> None:
        """Mark the execution's cached pods as wrong: the next reconcile reads them from the cluster."""
        self._context.invalidated.add(execution_id)

    def forget(self, execution_id: str) -> None:
        """Drop what is remembered of an execution that is settled."""
        self._noted.pop(execution_id, None)
        self._exits.pop(execution_id, None)
        self._context.invalidated.discard(execution_id)
        self._context.pods.deleted_pods.pop(execution_id, None)
        for strategy in self._strategies.values():
            strategy.forget(execution_id)
        for observer in self._observers:
            observer.forget(execution_id)

    async def audit(self) -> set[str]:
        """Return the executions to reconcile, because an object of theirs is missing or was changed."""
        audits = [await strategy.audit() for strategy in self._strategies.values()]
        return set[str]().union(*audits)

    async def _create(self, row: LedgerRecord) -> float | None:
        try:
            columns = await self._objects(row).create(row)
        except AwaitsCluster as error:
            return await self._try_again(row, [AWAITS_CLUSTER, error.cause.values, ""], NOT_YET_SECONDS)
        except NotYet as error:
            return await self._try_again(row, ["waiting", None, str(error)], NOT_YET_SECONDS)
        except ClusterFailed as error:
            change = Transition(State.ERROR, error.cause.code, level="Warning", values=error.cause.values)
            return await self._enter(row, change, None)
        except SecretMissing as error:
            change = Transition(State.ERROR, "secret_missing", str(error), level="Warning")
            return await self._enter(row, change, None)
        except NotFound as error:
            return await self._not_found(row, error)
        except (ValueError, Rejected, apply.NameTaken, NotAllowed, TooManyRequests, ClusterUnavailable) as error:
            return await self._refused(row, error)
        now = self._context.clock()
        written = {"reason": CREATED, **columns, **_clock(row, CREATED, now)}
        await self._database(ledger.update, row, written, now=now)
        return 0.0 if self._objects(row).is_seen(row) else SEEN_SECONDS

    async def _not_found(self, row: LedgerRecord, error: NotFound) -> float:
        """Create the namespace, which is what is missing as a rule; say so of a kind of object that the cluster does not know."""
        self._context.claims.clear()  # which have gone with it
        try:
            await apply.ensure_namespace(self._context.api, self._context.namespace)
        except NotAllowed as refused:
            return await self._refused(row, refused)
        known = explain_refusal(answer_of(error).message)
        return await self._refused(row, error) if known and known.code == "unknown_kind" else NAMESPACE_SECONDS

    async def _refused(self, row: LedgerRecord, error: Exception) -> float:
        """Say who can act, and try again where waiting may help, as for a quota; raise what the cluster says nothing about."""
        answer = answer_of(error).message
        known = explain_refusal(answer)
        if known is None and isinstance(error, TooManyRequests):
            known = THROTTLED
        if known is None and isinstance(error, ClusterUnavailable):
            raise error
        # A right or a policy may be changed while it waits; what is wrong with the object itself stays wrong.
        if not isinstance(error, NotAllowed) and (known is None or known.for_good):
            change = Transition(State.ERROR, "not_created", level="Warning", values={"error": trimmed(answer)})
            return await self._enter(row, change, None)
        message = _("The cluster does not allow it: {error}", error=error)
        if known is not None:
            message = f"{known.sentence} {known.next_step}"
        if row.reason != NOT_ALLOWED:
            logger.warning("not allowed to create execution=%s reason=%s", row.id, error)
        pause = max(RETRY_SECONDS, getattr(error, "retry_after", 0.0))
        return await self._try_again(row, [NOT_ALLOWED, None, message], pause)

    async def _try_again(self, row: LedgerRecord, cause: list[Any], seconds: float) -> float:
        """Record why the execution waits (a code with its values and text) and return the seconds until the next try, or give up after the
        timeout; while it waits for its cluster, the cluster's timeouts count."""
        seconds_allowed, now = self._context.limits.get(State.DEPLOYING), self._context.clock()
        limit = timedelta.max if seconds_allowed is None else timedelta(seconds=seconds_allowed)
        reason, values, text = cause
        if AWAITS_CLUSTER not in (reason, row.reason) and now - row.state_since > limit:
            text = _("Gave up after {limit}. Last known: {message}", limit=duration(limit), message=text)
            return await self._enter(row, Transition(State.ERROR, reason, text, level="Warning"), None)
        if row.cause != cause:
            columns = {"reason": reason, "reason_values": values, "message": text, **_clock(row, reason, now)}
            await self._database(ledger.update, row, columns, now=now)
        return seconds

    async def _enter(self, row: LedgerRecord, change: Transition, pod: Pod | None) -> float:
        """Write the change, with the columns that belong to it, and reconcile again at once, whether it was written or not."""
        now, log = self._context.clock(), ""
        fields = dict(self._objects(row).exit_columns(pod)) if pod is not None else {}
        if change.state == State.PREPARING and pod is not None:
            fields["node_name"] = pod.spec.node_name
        if change.state == State.RUNNING and pod is not None:
            fields["started_at"] = progress.ran_since(pod) or now
        if change.state in (State.STOPPING, State.FINISHING, State.ERROR) and pod is not None and pod.spec.node_name:
            for observer in self._observers:
                await observer.pod_ends(row, pod)
            log = await end_of_log(self._context.api, pod, CONTAINER)
            if log:
                # In a thread: searching 64 KiB for dozens of patterns takes milliseconds.
                change = await self._context.database(progress.explained_by_log, change, pod, log, now=now)
        records = [await observer.start_record(row, change, pod) for observer in self._observers]
        start_up = next((record for record in records if record is not None), None)
        await self._write(row, change, now=now, fields=fields, log=log, start_up=start_up)
        return 0.0

    async def _end(self, row: LedgerRecord) -> float:
        if await self._objects(row).delete(row):
            return ENDING_LOOK_SECONDS
        if row.state == State.FINISHING:
            change = progress.outcome(row)
        else:
            cause = stop_cause("ended", by=row.stop_wanted_by, reason=row.stop_reason, kind=row.kind)
            change = Transition(State.STOPPED, cause.code, actor=row.stop_wanted_by, values=cause.values)
        now = self._context.clock()
        fields = {"slots_freed_at": now} if row.holds_slots else {}
        await self._write(row, change, now=now, fields=fields | self._exits.pop(row.id, {}))
        return 0.0

    async def _clear(self, row: LedgerRecord) -> float | None:
        """Delete what is left after the end: after an error pods may live on, and slots are freed only when they are confirmed gone."""
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
        return self._strategies[row.kind]

    async def _observe(self, row: LedgerRecord, *, has_new_events: bool) -> None:
        """Have each observer record what has changed. Raise errors that a retry may resolve; log any other, because a bug there must not
        keep an execution from going on, or from stopping."""
        for observer in self._observers:
            try:
                await observer.observe(row, has_new_events=has_new_events)
            except GridError:
                raise
            except Exception as error:
                if trouble_of(error) is not None:
                    raise
                logger.exception("execution=%s not recorded by %s", row.id, type(observer).__name__)

    async def _write(self, row: LedgerRecord, change: Transition, **more: Any) -> None:
        """Enter the change, with `more` arguments of `ledger.enter`."""
        if await self._database(ledger.enter, row, change, **more):
            logger.info("execution=%s %s -> %s reason=%s", row.id, row.state, change.state, change.reason)
        else:
            logger.debug("execution=%s was written by somebody else meanwhile", row.id)

    def _note_exit(self, row: LedgerRecord) -> None:
        """Remember what the pod tells of its program's end until the end is written: by then the pod is gone. It may be gone already."""
        pods, gone = self._context.pods, self._context.pods.deleted_pods.get(row.id, {})
        for pod in (*(last.pod for last in gone.values()), *pods.by("execution", row.id)):
            if pod.metadata.name == row.object_name and (columns := self._objects(row).exit_columns(pod)):
                self._exits[row.id] = dict(columns)

    async def _note_events(self, row: LedgerRecord) -> bool:
        events = {_uid(event): event for event in self._context.events.of(row.id)}
        known = self._noted.get(row.id, {})
        new = [event for uid, event in events.items() if known.get(uid) != event.times]
        if new:
            now = self._context.clock()
            await self._database(ledger.note_events, row.id, [_noted(event, row, now) for event in new])
            self._noted[row.id] = {uid: event.times for uid, event in events.items()}
        return bool(new)


def _clock(row: LedgerRecord, reason: str, now: datetime) -> dict[str, datetime]:
    """Restart the deploying timeout when the wait for a cluster is over."""
    return {"state_since": now} if row.reason == AWAITS_CLUSTER != reason else {}


def _uid(event: Event) -> str:
    return (event.metadata.uid or event.metadata.name)[:64]


def _noted(event: Event, row: LedgerRecord, now: datetime) -> EventRecord:
    about = event.involved_object
    at = event.first_timestamp or event.last_seen or now
    return EventRecord(
        uid=_uid(event),
        # Kubernetes truncates to whole seconds: without this, an event after the admission would be listed before it.
        at=max(at, row.admitted_at) if row.admitted_at else at,
        object=f"{about.kind}/{about.name}",
        level=event.type,
        reason=event.reason,
        message=event.message,
        count=event.times,
    )
