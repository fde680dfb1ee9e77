"""One look at one execution: compare what is recorded with what the cluster shows, and take the next step.

Every step may be repeated, and may be the last thing this process does: the next look, by whichever controller, goes on from
what the database and the cluster then say. Deciding is in `progress`, writing in `ledger`, the cluster in `apply`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ParamSpec, Protocol, TypeVar

from grid.errors import ClusterUnavailable, GridError, NotAllowed, NotFound, Rejected
from grid.kube.api import KubeApi
from grid.kube.objects import Event, Pod
from grid.launch import apply, ledger, progress
from grid.launch.caches import EventCache, PodCache
from grid.launch.ledger import Noted, Row
from grid.launch.lifecycle import Change
from grid.launch.manifests import CONTAINER, Storage
from grid.launch.progress import CREATED, Seen
from grid.launch.spec import thaw
from grid.models import State

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

LOG_BYTES = 64 * 1024
LOG_LINES = 5000
LOG_SECONDS = 10.0
# Between two looks at pods that are asked to end; the watch usually tells sooner.
ENDING_LOOK_SECONDS = 5.0
RETRY_SECONDS = 10.0


class Database(Protocol):
    """Runs a synchronous function of `ledger` or `admission`, with its own connection to the database."""

    def __call__(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]: ...


@dataclass(frozen=True, slots=True)
class Place:
    """Where executions live in the cluster, and how their program is reached."""

    namespace: str
    token: Callable[[str], str]
    storage: Storage = field(default_factory=Storage)


class Reconciler:
    """`look` is called by one worker at a time for one execution; it returns seconds until it wants to look again, or None."""

    def __init__(
        self,
        api: KubeApi,
        database: Database,
        place: Place,
        *,
        pods: PodCache,
        events: EventCache,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float],
    ) -> None:
        self._api = api
        self._database = database
        self._place = place
        self._pods = pods
        self._events = events
        self._clock = clock
        self._monotonic = monotonic
        self._noted: dict[str, list[tuple[str, int]]] = {}
        self._doubted: set[str] = set()

    async def look(self, execution_id: str) -> float | None:
        """The whole procedure:

        1. Read the row. Without one there is nothing to do: objects of another installation are none of ours.
        2. Keep its new Kubernetes events in its history.
        3. Queued: nothing; admission is decided for all at once.
        4. Ended: remove what is left in the cluster, and free the slots when nothing is left.
        5. Stopping or finishing: the same, and then enter the final state.
        6. Stop wanted: enter stopping, which keeps the log first.
        7. Deploying without objects: create them.
        8. Otherwise look at the pod and enter the next state, if it is time.
        """
        row = await self._database(ledger.read, execution_id)
        if row is None:
            self._noted.pop(execution_id, None)
            return None
        await self._note_events(row)
        if row.state == State.QUEUED:
            return None
        if row.is_final:
            return await self._clear(row)
        if row.state in (State.STOPPING, State.FINISHING):
            return await self._end(row)
        if row.stop_wanted:
            message = f"{row.stop_wanted_by} asked to stop it; the program is given time to close its files."
            change = Change(State.STOPPING, "stop_requested", message, actor=row.stop_wanted_by)
            return await self._enter(row, change, await self._find_pod(row))
        if row.state == State.DEPLOYING and row.reason != CREATED:
            return await self._create(row)
        return await self._follow(row)

    def doubt(self, execution_id: str) -> None:
        """What the cache knows of its pod has turned out wrong: the next look asks the cluster."""
        self._doubted.add(execution_id)

    def forget(self, execution_id: str) -> None:
        """It is settled; nothing needs to be remembered."""
        self._noted.pop(execution_id, None)
        self._doubted.discard(execution_id)

    # --- Steps ---

    async def _create(self, row: Row) -> float | None:
        try:
            spec = thaw(row.spec)
            token = self._place.token(row.id)
            namespace, storage = self._place.namespace, self._place.storage
            await apply.create_all(self._api, spec, namespace=namespace, token=token, storage=storage)
        except (ValueError, Rejected, apply.NameTaken) as error:
            change = Change(State.ERROR, "not_created", f"The cluster did not take it: {error}", level="Warning")
            return await self._enter(row, change, None)
        except NotAllowed as error:
            return await self._not_allowed(row, error)
        except NotFound:
            await apply.ensure_namespace(self._api, self._place.namespace)
            return 1.0
        columns = {"reason": CREATED, "message": "Its objects are created; the cluster looks for a node."}
        await self._database(ledger.update, row, columns, now=self._clock())
        return 0.0

    async def _not_allowed(self, row: Row, error: NotAllowed) -> float | None:
        """Perhaps a quota of the namespace that is used up for the moment: try again until it is too late."""
        timeouts, now = await self._database(ledger.timeouts), self._clock()
        message = f"The cluster does not allow it: {error}"
        if (now - row.state_since).total_seconds() > timeouts[State.DEPLOYING]:
            return await self._enter(row, Change(State.ERROR, "not_allowed", message, level="Warning"), None)
        if row.message != message:
            logger.warning("not allowed to create execution=%s reason=%s", row.id, error)
            await self._database(ledger.update, row, {"reason": "not_allowed", "message": message}, now=now)
        return RETRY_SECONDS

    async def _follow(self, row: Row) -> float | None:
        seen = Seen(await self._find_pod(row), self._events_of(row))
        timeouts = await self._database(ledger.timeouts)
        change = progress.next_change(row, seen, timeouts=timeouts, now=self._clock())
        return None if change is None else await self._enter(row, change, seen.pod)

    async def _enter(self, row: Row, change: Change, pod: Pod | None) -> float:
        """Write the change, with all that becomes true with it; look again at once, whether it was written or not."""
        now = self._clock()
        fields: dict[str, Any] = {}
        if change.state == State.PREPARING and pod is not None:
            fields["node_name"] = pod.spec.node_name
        if change.state == State.RUNNING and pod is not None:
            fields["started_at"] = progress.ran_since(pod) or now
        if change.state in (State.STOPPING, State.FINISHING, State.ERROR) and pod is not None and pod.spec.node_name:
            fields["final_log"] = await self._log_of(pod)
        await self._write(row, change, now, fields)
        return 0.0

    async def _end(self, row: Row) -> float:
        left = await self._delete(row)
        if left:
            return ENDING_LOOK_SECONDS
        if row.state == State.FINISHING:
            change = progress.outcome(row)
        else:
            by = row.stop_wanted_by
            change = Change(State.STOPPED, "stopped", f"Stopped by {by}. The project's files are kept.", actor=by)
        now = self._clock()
        await self._write(row, change, now, {"slots_freed_at": now} if row.holds_slots else {})
        return 0.0

    async def _clear(self, row: Row) -> float | None:
        """After an error the pod may live on for a while; its slots are free only when it has been seen gone."""
        if not row.holds_slots and not self._pods.by("execution", row.id):
            return None
        if await self._delete(row):
            return ENDING_LOOK_SECONDS
        if row.holds_slots:
            now = self._clock()
            await self._database(ledger.update, row, {"slots_freed_at": now}, now=now)
            logger.info("slots freed execution=%s", row.id)
        return None

    # --- The cluster ---

    async def _delete(self, row: Row) -> bool:
        """True while pods are left."""
        return bool(await apply.delete_all(self._api, row.object_name, row.id, namespace=self._place.namespace))

    async def _find_pod(self, row: Row) -> Pod | None:
        """From the cache, or from the cluster itself before anything is concluded from its absence."""
        known = self._pods.by("execution", row.id)
        if not known or row.id in self._doubted or not self._pods.freshness(self._monotonic()).synced:
            known = await apply.find_pods(self._api, row.id, namespace=self._place.namespace)
            self._doubted.discard(row.id)
        return next((pod for pod in known if pod.metadata.name == row.object_name), None)

    async def _log_of(self, pod: Pod) -> str:
        """The end of the log, as far as there is one. An unreachable cluster is an error, so that it is tried again."""
        kept = bytearray()
        try:
            async with asyncio.timeout(LOG_SECONDS):
                meta = pod.metadata
                lines = self._api.logs(meta.name, namespace=meta.namespace, container=CONTAINER, tail_lines=LOG_LINES)
                async for chunk in lines:
                    kept += chunk
                    del kept[:-LOG_BYTES]
        except ClusterUnavailable:
            if pod.metadata.deletion_timestamp is None:
                raise
        except (GridError, TimeoutError) as error:
            # The container never ran, or its node is gone: what we have is all there will be.
            logger.info("log not kept pod=%s reason=%s", pod.metadata.key, str(error) or "no answer in time")
        return kept.decode(errors="replace").replace("\x00", "")

    # --- The record ---

    async def _write(self, row: Row, change: Change, now: datetime, fields: Mapping[str, Any]) -> None:
        if await self._database(ledger.enter, row, change, now=now, fields=fields):
            logger.info("execution=%s %s -> %s reason=%s", row.id, row.state, change.state, change.reason)
        else:
            logger.debug("execution=%s was written by somebody else meanwhile", row.id)

    def _events_of(self, row: Row) -> list[Event]:
        return list(self._events.about(kind="Pod", name=row.object_name, namespace=self._place.namespace))

    async def _note_events(self, row: Row) -> None:
        events = self._events_of(row)
        counts = [(_uid(event), event.times) for event in events]
        if counts and counts != self._noted.get(row.id):
            await self._database(ledger.note_events, row.id, [_noted(event, row, self._clock()) for event in events])
            self._noted[row.id] = counts


def _uid(event: Event) -> str:
    return (event.metadata.uid or event.metadata.name)[:64]


def _noted(event: Event, row: Row, now: datetime) -> Noted:
    about = event.involved_object
    at = event.first_timestamp or event.last_seen or now
    return Noted(
        uid=_uid(event),
        # Kubernetes counts whole seconds: without this, what follows the admission would be told before it.
        at=max(at, row.admitted_at) if row.admitted_at else at,
        object=f"{about.kind}/{about.name}",
        level=event.type,
        reason=event.reason,
        message=event.message,
        count=event.times,
    )
