"""Sends executions' logs to the log receiver while this process leads; a receiver that is away holds up nothing and nobody.

Each log is read on from where it was sent up to, now and then while its pod runs, and once more at its end before the pod goes. What was
read waits in a buffer within bounds. While that is half full, running programs are not read: the kubelet keeps their lines. What comes
from pods that end goes into the buffer all the same, and there the oldest lines make room; they are counted.

How far a log was sent is noted once the receiver has taken it. So after a restart lines may arrive twice, and none is left out that the
kubelet still has.
"""

import asyncio
import logging
import random
from collections import defaultdict
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, cast

from grid.core.backoff import Backoff
from grid.core.errors import GridError
from grid.database.periodic import PeriodicTask
from grid.database.trouble import TroubleLog
from grid.executions.apply import LOG_SECONDS
from grid.executions.caches import execution_of
from grid.executions.context import Context
from grid.executions.ledger import LedgerRecord
from grid.executions.manifests import CONTAINER
from grid.executions.reconcile import ReconcileObserver
from grid.kube.objects import Pod
from grid.logs.logplace import START, LogPlace
from grid.logs.logshipping import lines as shipping
from grid.logs.logshipping.receiver import Verdict
from grid.observability import telemetry
from grid.platformhealth.facts import LogShipping

logger = logging.getLogger(__name__)

TICK_SECONDS = 5.0
REST = 2.0  # pause after a turn, in multiples of its duration
PERIOD_SECONDS = 10.0  # between two readings of a log that had new lines
LONGEST_SECONDS = 60.0  # of one that has none, after the period has doubled a few times
AT_ONCE = 4
PORTION_BYTES = 256 * 1024  # of one log in one reading; the rest comes with the next
END_BYTES = 16 * 1024 * 1024  # more than a kubelet keeps in one file
END_SECONDS = 2 * LOG_SECONDS  # for all pods of an execution
BATCH_BYTES = 1024 * 1024  # of one request
BUFFER_BYTES = 16 * 1024 * 1024
IDLE_SECONDS = 1.0
_SLICE = 16 * 1024  # bytes between which others run
MOST_PLACES = 500  # executions that the database is asked for at once


class PostsLines(Protocol):
    name: str

    async def post(self, portions: Sequence[shipping.Portion], now: datetime) -> Verdict: ...

    def close(self) -> None: ...


@dataclass(slots=True)
class _ReadLog:
    """A pod's log: how far it was read, and when it is read next. `restarts` are the container's, of the run that was read."""

    source: shipping.LineSource
    place: LogPlace
    next_at: float
    restarts: int = 0
    wait: float = PERIOD_SECONDS
    is_ended: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)  # each line is read by one reader


class LogShipper(ReconcileObserver):
    """Follows the logs of executions during one term of leadership."""

    def __init__(
        self, context: Context, receiver: PostsLines, *, rng: random.Random, buffer_bytes: int = BUFFER_BYTES
    ) -> None:
        self._context = context
        self._receiver = receiver
        self._rng = rng
        self._troubles = TroubleLog(context.monotonic)
        self._buffer = shipping.LineBuffer(buffer_bytes)
        self._has_lines = asyncio.Event()
        self._logs: dict[str, _ReadLog] = {}
        self._progress: dict[str, shipping.ShippingProgress] = defaultdict(shipping.ShippingProgress)
        self._batch_bytes = BATCH_BYTES
        self._lost, self._lost_at = 0, cast("datetime | None", None)
        self._why, self._failing_since = "", cast("datetime | None", None)
        self._in_flight = 0
        telemetry.LOG_BUFFER.set_function(lambda: self._buffer.size)

    @property
    def state(self) -> LogShipping:
        """How sending goes, since this process leads."""
        waiting = self._buffer.line_count + self._in_flight
        return LogShipping(self._receiver.name, waiting, self._lost, self._lost_at, self._why, self._failing_since)

    def periodic(self) -> PeriodicTask:
        """Return the task that reads; what was read is sent meanwhile, as it comes."""
        return PeriodicTask(
            "log shipping", TICK_SECONDS, self.read, first_after=TICK_SECONDS, rest=REST, within=self._sending
        )

    @asynccontextmanager
    async def _sending(self) -> AsyncGenerator[None]:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._send_for_ever())
                yield
        finally:
            if unsent := self._buffer.line_count + self._in_flight:
                logger.warning("lines of logs were not sent lines=%d; those of running pods are read again", unsent)
            self._buffer = shipping.LineBuffer(0)  # the metric goes on to show its size
            self._receiver.close()

    # --- Reading ---

    async def read(self) -> None:
        """Read the logs that are due, unless too much waits already."""
        pods = {
            pod.metadata.uid: pod for pod in self._context.pods.values() if execution_of(pod) and shipping.has_run(pod)
        }
        for uid in self._logs.keys() - pods.keys():
            gone = self._logs.pop(uid)
            if gone.place != START:  # behind its last lines in the buffer: then its place is forgotten
                self._put(shipping.Portion(gone.source, (), gone.place, is_last=True))
        if self._buffer.is_half_full:
            return
        await self._begin([pod for uid, pod in pods.items() if uid not in self._logs])
        now, turn = self._context.monotonic(), asyncio.Semaphore(AT_ONCE)
        # Who was passed over is first the next time.
        logs = sorted(self._logs.items(), key=lambda item: item[1].next_at)
        due = [pods[uid] for uid, log in logs if log.next_at <= now and not log.is_ended]

        async def read(pod: Pod) -> None:
            async with turn:
                log = self._logs.get(pod.metadata.uid)
                if log is not None and not self._buffer.is_half_full:
                    await self._read_now_and_then(pod, log)

        await asyncio.gather(*(read(pod) for pod in due))

    async def pod_ends(self, row: LedgerRecord, pod: Pod) -> None:
        """Read what is left of the logs of an execution that is to go, all pods of it; nothing that fails here keeps it from ending."""
        of_execution = (*self._context.pods.by("execution", row.id), pod)
        pods = [pod for pod in {pod.metadata.uid: pod for pod in of_execution}.values() if shipping.has_run(pod)]
        turn = asyncio.Semaphore(AT_ONCE)

        async def read(pod: Pod) -> None:
            async with turn:
                log = self._logs.get(pod.metadata.uid)
                if log is not None and (await self._read(pod, log, END_BYTES))[1]:
                    raise GridError(f"more than {END_BYTES} bytes were left")

        try:
            async with asyncio.timeout(END_SECONDS):
                await self._begin([each for each in pods if each.metadata.uid not in self._logs])
                results = await asyncio.gather(*map(read, pods), return_exceptions=True)
        except Exception as error:
            pods, results = [pod], [error]
        for each, failure in zip(pods, results, strict=True):
            if isinstance(failure, GridError | TimeoutError):
                self._miss(shipping.source_of(each), f"not read to its end: {str(failure) or 'no answer in time'}")
            elif isinstance(failure, Exception) and not self._troubles.handles(failure):
                logger.error("log not sent to its end pod=%s", each.metadata.key, exc_info=failure)

    async def _begin(self, pods: Sequence[Pod]) -> None:
        for start in range(0, len(pods), MOST_PLACES):
            some = pods[start : start + MOST_PLACES]
            places = await self._context.database(shipping.read_places, {execution_of(pod) for pod in some})
            now = self._context.monotonic()
            for pod in some:
                place = places.get(execution_of(pod), {}).get(pod.metadata.name, START)
                next_at = now + self._rng.uniform(0, TICK_SECONDS)
                self._logs.setdefault(
                    pod.metadata.uid, _ReadLog(shipping.source_of(pod), place, next_at, shipping.restarts(pod))
                )

    async def _read_now_and_then(self, pod: Pod, log: _ReadLog) -> None:
        try:
            is_new, is_more = await self._read(pod, log, PORTION_BYTES)
        except (GridError, TimeoutError) as error:
            logger.debug("log not read pod=%s reason=%s", pod.metadata.key, error)
            is_new = is_more = False
        log.wait = PERIOD_SECONDS if is_new else min(LONGEST_SECONDS, 2 * log.wait)
        log.next_at = self._context.monotonic() + (0 if is_more else log.wait * self._rng.uniform(0.9, 1.1))

    async def _read(self, pod: Pod, log: _ReadLog, most: int) -> tuple[bool, bool]:
        """Read on in the log; return whether there were new lines, and whether more is left."""
        async with log.lock:
            new_runs = shipping.restarts(pod) - log.restarts
            is_lost = new_runs > 1  # Kubernetes keeps the log of one run before
            if new_runs > 0:
                # What it wrote before it was restarted, which says why, is another log, read whole: the next restart deletes it.
                try:
                    _, is_left = await self._follow(pod, log, END_BYTES, previous=True)
                except GridError:
                    is_left = True
                is_lost |= is_left
            is_last = shipping.has_ended(pod) and not log.is_ended
            is_new, is_more = await self._follow(pod, log, most, is_last=is_last, is_other=new_runs > 0)
            if is_lost:
                self._miss(log.source, "the container was restarted")
            log.restarts = shipping.restarts(pod)  # only now: with the cluster away both are read later
            log.is_ended |= is_last and not is_more
        return is_new, is_more

    async def _follow(
        self,
        pod: Pod,
        log: _ReadLog,
        most: int,
        *,
        previous: bool = False,
        is_last: bool = False,
        is_other: bool = False,
    ) -> tuple[bool, bool]:
        """Read on in one log, of the run before the last restart with `previous`; `is_other` than was read up to the place."""
        meta, since, is_more, is_any = pod.metadata, log.place.since, False, False
        reading = shipping.LineReading(log.place, is_another=is_other)
        chunks = self._context.api.logs(
            meta.name, namespace=meta.namespace, container=CONTAINER, timestamps=True, since=since, previous=previous
        )
        added = 0
        try:
            async with asyncio.timeout(LOG_SECONDS), aclosing(cast("AsyncGenerator[bytes]", chunks)) as stream:
                async for chunk in stream:
                    for start in range(0, len(chunk), _SLICE):
                        reading.feed(chunk[start : start + _SLICE])
                        await asyncio.sleep(0)
                        if reading.taken_bytes >= added + PORTION_BYTES:
                            added, is_any = reading.taken_bytes, True
                            self._add(log, reading)
                    if reading.taken_bytes >= most:
                        is_more = True
                        break
            if (is_last or previous) and not is_more:
                reading.finish()
        except BaseException:
            self._add(log, reading)  # what was read before it broke off is good
            raise
        is_any |= bool(reading.lines)
        self._add(log, reading)
        return is_any, is_more

    def _add(self, log: _ReadLog, reading: shipping.LineReading) -> None:
        if reading.has_gap:
            self._miss(log.source, "the log was rotated")
            reading.has_gap = False
        if reading.lines:
            self._put(shipping.Portion(log.source, tuple(reading.lines), reading.place))
            reading.lines.clear()
            log.place = reading.place

    def _miss(self, source: shipping.LineSource, why: str) -> None:
        logger.info("lines are missing execution=%s pod=%s reason=%s", source.execution, source.pod, why)
        telemetry.LOG_GAPS.inc()

    def _put(self, portion: shipping.Portion) -> None:
        for dropped in self._buffer.add(portion):
            self._lose(dropped.source, len(dropped.lines), "dropped")
        self._has_lines.set()

    # --- Sending ---

    async def _send_for_ever(self) -> None:
        backoff = Backoff(longest=60.0, rng=self._rng)
        while True:
            if not self._buffer:
                self._has_lines.clear()
                await self._note()
                await self._has_lines.wait()
            if self._buffer.size < self._batch_bytes:
                # What comes together goes together: the note of it takes the database's one thread from what moves executions on.
                await asyncio.sleep(IDLE_SECONDS)
            portions = self._buffer.take(self._batch_bytes)
            try:
                await self._deliver(portions, backoff)
                await self._note()
            except Exception:  # a bug costs this batch, and no more of them
                logger.exception("lines of logs were not sent")
                self._in_flight = 0
                for portion in portions:
                    self._lose(portion.source, len(portion.lines), "dropped")
                await asyncio.sleep(backoff.next())

    async def _deliver(self, portions: Sequence[shipping.Portion], backoff: Backoff) -> None:
        """Send the portions, again and again until the receiver has said what becomes of them."""
        lines = sum(len(portion.lines) for portion in portions)
        while lines:
            self._in_flight = lines
            verdict = await self._receiver.post(portions, self._context.clock())
            if verdict.result == "sent":
                backoff.reset()
                self._works(verdict, lines)
                break
            if verdict.result == "smaller" and lines > 1:
                self._batch_bytes = max(PORTION_BYTES, self._batch_bytes // 2)
                for half in shipping.halves(portions):
                    await self._deliver(half, backoff)
                return
            if verdict.result == "smaller":  # one line, and still too large
                self._works(Verdict("sent", lines, verdict.why), lines)
                verdict = Verdict("sent", lines)
                break
            self._fails(verdict.why)
            await asyncio.sleep(max(verdict.wait, backoff.next()))
        self._in_flight = 0
        self._taken(portions, verdict.refused if lines else 0)

    def _taken(self, portions: Sequence[shipping.Portion], refused: int) -> None:
        """Count the lines. A receiver does not say whose lines it has refused, so they count for the first executions of the batch."""
        for portion in portions:
            source, lost = portion.source, min(refused, len(portion.lines))
            refused -= lost
            self._lose(source, lost, "refused")
            progress = self._progress[source.execution]
            progress.sent += len(portion.lines) - lost
            if portion.is_last or portion.place != START:
                progress.places[source.pod] = None if portion.is_last else portion.place

    def _works(self, verdict: Verdict, lines: int) -> None:
        if self._failing_since is not None:
            logger.info("the log receiver takes lines again receiver=%s", self._receiver.name)
        self._why, self._failing_since = "", None
        telemetry.LOG_LINES.labels("sent").inc(lines - verdict.refused)
        if verdict.refused:
            logger.warning("the log receiver has refused lines lines=%d reason=%s", verdict.refused, verdict.why)

    def _fails(self, why: str) -> None:
        if self._failing_since is None:
            self._failing_since = self._context.clock()
            logger.warning("the log receiver takes no lines receiver=%s reason=%s", self._receiver.name, why)
        self._why = why

    def _lose(self, source: shipping.LineSource, lines: int, how: str) -> None:
        if lines:
            self._lost, self._lost_at = self._lost + lines, self._context.clock()
            self._progress[source.execution].lost += lines
            telemetry.LOG_LINES.labels(how).inc(lines)

    async def _note(self) -> None:
        """Note in the database what became of lines; while it does not answer, that is kept."""
        progress, self._progress = self._progress, defaultdict(shipping.ShippingProgress)
        if not progress:
            return
        try:
            await self._context.database(shipping.note, progress, now=self._context.clock())
        except Exception as error:
            if not self._troubles.handles(error):
                logger.exception("how far logs were sent is not noted")
            for id, newer in self._progress.items():
                older = progress.setdefault(id, shipping.ShippingProgress())
                older.sent, older.lost = older.sent + newer.sent, older.lost + newer.lost
                older.places |= newer.places
            self._progress = defaultdict(shipping.ShippingProgress, progress)
