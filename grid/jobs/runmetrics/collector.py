"""Collects the metrics of jobs from their logs: now and then while they run, and at their end before the pod goes. Only what is new in a
log is read. A program that has written no metric is asked more and more rarely, a few at once, and never by the workers that move
executions on; these only read what is left at the end. How far a log was read is stored with the values, so a new leader goes on there."""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import cast

from grid.core.errors import ClusterUnavailable, GridError
from grid.core.labels import APP_COMPONENT
from grid.database.periodic import PeriodicTask
from grid.database.trouble import TroubleLog, trouble_of
from grid.executions.apply import LOG_SECONDS
from grid.executions.caches import execution_of
from grid.executions.context import Context
from grid.executions.ledger import LedgerRecord
from grid.executions.manifests import CONTAINER
from grid.executions.reconcile import ReconcileObserver
from grid.jobs.runmetrics import store
from grid.jobs.runmetrics.lines import LogReading
from grid.jobs.runmetrics.store import KnownPlace
from grid.kube.objects import Pod
from grid.models.environment import Kind

logger = logging.getLogger(__name__)

TICK_SECONDS = 5.0
REST = 3.0  # pause after a turn, in multiples of its duration: however many jobs measure, others get the database, too
PERIOD_SECONDS = 15.0  # between two readings of a log that had values the last time
LONGEST_SECONDS = 300.0  # of one that has none, after the period has doubled a few times
AT_ONCE = 4
MOST_BYTES = 1024 * 1024  # new ones in one reading; the rest comes with the next
MOST_BYTES_AT_END = 16 * 1024 * 1024  # more than a kubelet keeps in one file
_SLICE = 16 * 1024  # bytes between which others run
_TRIES = 3


@dataclass(slots=True)
class _Followed:
    """A job whose pod runs. `known` is None until the database was asked."""

    next_at: float
    wait: float = PERIOD_SECONDS
    known: KnownPlace | None = None


class MetricCollector(ReconcileObserver):
    """Follows the pods of jobs during one term of leadership."""

    def __init__(self, context: Context, *, rng: random.Random | None = None) -> None:
        self._context = context
        self._troubles = TroubleLog(context.monotonic)
        self._rng = rng or random.Random()
        self._followed: dict[str, _Followed] = {}

    def periodic(self) -> PeriodicTask:
        return PeriodicTask("run metrics", TICK_SECONDS, self.run_once, first_after=TICK_SECONDS, rest=REST)

    async def run_once(self) -> None:
        """Read the logs that are due. A failure is logged, and the log is read again later."""
        running = {execution_of(pod): pod for pod in self._context.pods.values() if _runs_a_job(pod)}
        for id in self._followed.keys() - running.keys():
            del self._followed[id]
        now, turn = self._context.monotonic(), asyncio.Semaphore(AT_ONCE)
        for id in running.keys() - self._followed.keys():
            self._followed[id] = _Followed(now + self._rng.uniform(0, PERIOD_SECONDS))
        due = [(id, running[id]) for id, followed in self._followed.items() if followed.next_at <= now]

        async def read(id: str, pod: Pod) -> None:
            async with turn:
                await self._read_now_and_then(id, pod)

        await asyncio.gather(*(read(id, pod) for id, pod in due))

    async def pod_ends(self, row: LedgerRecord, pod: Pod) -> None:
        """Read what is left of the log of a program that has ended, or whose pod is to go. Raise ClusterUnavailable while the pod may still
        be read, so that it is tried again, and what is wrong with the database; a bug here must not keep an execution from ending."""
        id, statuses = row.id, pod.status.container_statuses
        has_run = any(status.name == CONTAINER and status.state.waiting is None for status in statuses)
        if row.kind != Kind.JOB or not has_run:
            return
        try:
            await self._read(id, pod, at_end=True)
        except ClusterUnavailable:
            if pod.metadata.deletion_timestamp is None:
                raise
        except (GridError, TimeoutError) as error:
            logger.info("metrics not read to the end execution=%s reason=%s", id, str(error) or "no answer in time")
        except Exception as error:
            if trouble_of(error) is not None:
                raise
            logger.exception("metrics not read to the end execution=%s", id)
        self._followed.pop(id, None)

    async def _read_now_and_then(self, id: str, pod: Pod) -> None:
        followed = self._followed.get(id)
        if followed is None:
            return  # it has ended while this waited for its turn
        had_values = is_more = False
        try:
            had_values, is_more = await self._read(id, pod, at_end=False)
        except (GridError, TimeoutError) as error:
            logger.debug("metrics not read execution=%s reason=%s", id, error)
        except Exception as error:
            if not self._troubles.handles(error):
                logger.exception("metrics not read execution=%s", id)
        followed.wait = PERIOD_SECONDS if had_values else min(LONGEST_SECONDS, 2 * followed.wait)
        followed.next_at = self._context.monotonic() + (0 if is_more else followed.wait * self._rng.uniform(0.9, 1.1))

    async def _read(self, id: str, pod: Pod, *, at_end: bool) -> tuple[bool, bool]:
        """Read on in the log and store what is new; return whether there were values, and whether more is left."""
        followed = self._followed.get(id) or _Followed(0.0)
        for _unused in range(_TRIES):
            known = followed.known
            if known is None:
                known = await self._context.database(store.read_place, id)
            reading = LogReading(known.place)
            failure, is_more = await self._follow_log(pod, reading, MOST_BYTES_AT_END if at_end else MOST_BYTES)
            if at_end and failure is None and not is_more:
                reading.finish()
            followed.known = KnownPlace(reading.place, known.revision)
            if new := reading.measurements:
                now = self._context.clock()
                if await self._context.database(store.add, id, known, reading.place, new, now=now):
                    followed.known = KnownPlace(reading.place, known.revision + 1)
                else:
                    followed.known = None
                    continue  # another process has read on: what it has left is read again
            if failure is not None:
                raise failure
            return bool(new), is_more
        return False, False

    async def _follow_log(self, pod: Pod, reading: LogReading, most: int) -> tuple[Exception | None, bool]:
        """Feed the log to the reading; return what has broken it off, and whether more is left. What was read before is good."""
        name, namespace = pod.metadata.name, pod.metadata.namespace
        chunks = self._context.api.logs(
            name, namespace=namespace, container=CONTAINER, timestamps=True, since=reading.place.since
        )
        try:
            async with asyncio.timeout(LOG_SECONDS), aclosing(cast("AsyncGenerator[bytes]", chunks)) as stream:
                async for chunk in stream:
                    for start in range(0, len(chunk), _SLICE):
                        reading.feed(chunk[start : start + _SLICE])
                        await asyncio.sleep(0)
                    if reading.taken_bytes >= most:
                        return None, True
        except (GridError, TimeoutError) as error:
            return error, False
        return None, False


def _runs_a_job(pod: Pod) -> bool:
    runs = any(each.name == CONTAINER and each.state.running is not None for each in pod.status.container_statuses)
    return runs and pod.metadata.labels.get(APP_COMPONENT) == Kind.JOB and bool(execution_of(pod))
