"""Runs executions: reconciles each one whenever its row or its pod has changed.

Level-triggered: a changed row (reported by the database, or found by polling it), a changed pod or event (from a watch) only enqueue an
execution; `Reconciler.reconcile` then reads the present state. So a lost event costs at most the time to the next audit of the caches, and
doing anything twice changes nothing. Several workers never reconcile one execution at a time. Outages of the database or the cluster are
waited out. Exactly one process runs this, see `leader`; if ever two do, conditional writes keep them apart.
"""

import asyncio
import contextlib
import logging
import random
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime

from grid.clusters import attached
from grid.clusters.framework_poller import FrameworkPoller
from grid.clusters.frameworks import framework
from grid.clusters.frameworks.base import FrameworkAdapter
from grid.controller import pollreads
from grid.controller.downtime import Downtime, DowntimeLog
from grid.controller.firstround import FirstRound
from grid.controller.periodictasks import TermInputs, periodic_tasks
from grid.controller.watches import SELECTOR, watches
from grid.core.backoff import Backoff
from grid.core.errors import GridError
from grid.core.workqueue import WorkQueue
from grid.database.changefeed import EVERYTHING, Change, ChangeFeed, FeedSubscriber
from grid.database.periodic import PeriodicRunner, PeriodicTask
from grid.database.seam import Databases
from grid.database.threads import background
from grid.database.trouble import TroubleLog
from grid.executions import apply, ledger
from grid.executions.caches import AutoscalerCache, EventCache, PodCache, execution_of
from grid.executions.context import Context, LaunchTarget
from grid.executions.dryrun import DryRuns
from grid.executions.policykeeper import PolicyKeeper
from grid.executions.reconcile import Reconciler
from grid.files import stored_remotes
from grid.jobs import jobruns
from grid.jobs.jobruns import RunMover
from grid.jobs.runmetrics.collector import MetricCollector
from grid.kube.api import KubeApi
from grid.logs.logshipping.shipper import LogShipper
from grid.observability import logcontext, tracing
from grid.projects import departures
from grid.queue.admission import WaitReasonWriter
from grid.sharing.sharing import StoredPorts
from grid.starts.startups import StartUps
from grid.tiers import pooltemplates
from grid.usage.usagerecorder import UsageRecorder

logger = logging.getLogger(__name__)

POLL_SECONDS = 1.0
OVERDUE_SECONDS = 5.0  # between two calls of `poll_overdue` while the feed works
TOLD_SECONDS = 60.0  # between two polls of everything while the feed works: it can lose a change without knowing
MERGE_SECONDS = 0.02  # writes within this time are handled together
REST = 1.0  # pause after a poll, in multiples of its duration, so that many reported writes leave time for other work
MOST_BY_ID = 500  # above this number all rows are read instead
# Watches can lose an event without knowing; a list of all pods reveals it.
AUDIT_SECONDS = 60.0
# Everything that a reconcile reads is audited more often: rows by polling, pods and clusters' objects each minute, timeouts too. So
# a full round over unchanged executions is only a safety net, and may be this slow.
ROUND_SECONDS = 7200.0
TICK_SECONDS = 1.0
WORKERS = 8


class Controller:
    """One term of leadership in a data plane: `run` until cancelled. A new object for each term, so that no wrong state survives."""

    def __init__(
        self,
        api: KubeApi,
        target: LaunchTarget,
        *,
        databases: Databases | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
        rng: random.Random | None = None,
        framework_of: Callable[[str], FrameworkAdapter] = framework,
        away: Downtime | None = None,
    ) -> None:
        """Build the controller; `away` is the time for which nobody led before this term."""
        databases = databases or Databases.shared(background.run)
        self._data_plane = target.data_plane
        self._database = databases.polls
        self._clock = clock
        self._monotonic = monotonic
        self._rng = rng or random.Random()
        self._queue = WorkQueue(lambda: Backoff(longest=30.0, rng=self._rng))
        self._known: dict[str, int] = {}
        self._is_polled = self._has_losses = False
        self._round: deque[str] = deque()  # executions still to be reconciled in this round
        self._owed = 0.0  # fraction of a reconcile that is due
        self._news: set[Change] = set()
        self._has_news = asyncio.Event()
        self._listener: FeedSubscriber | None = None
        self._troubles = TroubleLog(monotonic)
        self._downtimes = DowntimeLog(away)
        self.pods = PodCache(self._enqueue, clock)
        self.events = EventCache(self._enqueue)
        self.autoscalers = AutoscalerCache(self._enqueue)
        caches = (self.pods, self.events, self.autoscalers)
        context = Context(
            api,
            databases.reconciles,
            databases.due_work,
            target,
            *caches,
            clock,
            monotonic,
            remote_files=stored_remotes.files_for,
            node_templates=pooltemplates.remembered,
        )
        self._context = context
        self.metrics = MetricCollector(context)
        self.usage = UsageRecorder(context, attended_until=away.since if away is not None else None)
        self._reconciler = Reconciler(context, [StartUps(context), self.usage, self.metrics])
        self.runs = RunMover(context, self._troubles, self._rng, self._admit_soon)
        self.waits = WaitReasonWriter(context, self._troubles, self._rng)
        self.first_round = FirstRound(self._knows_all, self._known.keys(), self._enqueue)
        self.framework_poller = FrameworkPoller(context, rng=self._rng, framework_of=framework_of)
        self.dry_runs = DryRuns(context, rng=self._rng)
        self.periodic = PeriodicRunner(self._troubles, clock=clock, rng=self._rng, database=databases.due_work)

    def listen_to(self, feed: ChangeFeed) -> FeedSubscriber:
        """Subscribe to the feed of writes, before `run`. Without a feed, and while it is lost, the database is polled each second."""
        self._listener = FeedSubscriber(feed, self._take_news, rng=self._rng)
        return self._listener

    def periodic_tasks(self, inputs: TermInputs) -> list[PeriodicTask]:
        shipper = None
        if inputs.log_receiver is not None:
            shipper = LogShipper(self._context, inputs.log_receiver, rng=self._rng)
            self._reconciler.add_observer(shipper)
        others = periodic_tasks(
            self._context,
            inputs,
            troubles=self._troubles,
            rng=self._rng,
            first_round=self.first_round,
            poller=self.framework_poller,
            shipper=shipper,
            records=lambda: self.periodic.records,
        )
        audit = PeriodicTask("pod audit", AUDIT_SECONDS, self.audit, first_after=AUDIT_SECONDS)
        return [audit, self.metrics.periodic(), *others]

    async def run(self, inputs: TermInputs | None = None) -> None:
        context = self._context
        ports = StoredPorts(context.due_work, context.clock)
        policies = PolicyKeeper(context.api, context.namespace, context.target.network, rng=self._rng, ports=ports)

        try:
            async with asyncio.TaskGroup() as group:
                for watch in watches(context, clock=self._monotonic, rng=self._rng):
                    group.create_task(watch)
                if self._listener is not None:
                    group.create_task(self._listener.run())
                group.create_task(self._poll_for_ever())
                group.create_task(self._go_round_for_ever())
                group.create_task(self.first_round.run())
                group.create_task(self.runs.run())
                group.create_task(self.waits.run())
                group.create_task(self.dry_runs.run(lambda: self._period))
                group.create_task(policies.run())
                group.create_task(self.periodic.run(self.periodic_tasks(inputs or TermInputs())))
                for _ in range(WORKERS):
                    group.create_task(self._work_for_ever())
        finally:
            self._queue.close()
            await context.nodes.close()

    async def poll(self) -> None:
        """Poll the database once: stop clusters whose parent has ended and what belongs to people who have left, enqueue rows written
        since the last poll, have runs moved on, and do what time decides."""
        for id in await self._database(attached.stop_with_parents, self._data_plane, now=self._clock()):
            logger.info("execution=%s ends with what it was attached to", id)
        versions = await self._database(ledger.row_versions, self._data_plane)
        self._take_versions(versions)
        self._is_polled = True
        for id in self._known.keys() - versions.keys():
            self._settled(id)
        await self._stop_departed()
        self.runs.add(await self._database(jobruns.all_jobs_due, self._clock()))
        await self._take_overdue()

    async def poll_overdue(self) -> None:
        """Poll for what time decides: owners who left a project too long ago, executions past their timeout, runs to retry, the queue."""
        if self._has_losses:  # else only a write, which is told, makes one
            await self._stop_departed()
        limits = self._context.limits
        if await self._database(pollreads.is_anything_due, self._data_plane, limits, now=self._clock()):
            self.runs.add(await self._database(jobruns.jobs_due, self._clock()))
            await self._take_overdue()
        else:
            await self._note_outage()

    async def _take_overdue(self) -> None:
        self._context.limits, overdue = await self._database(pollreads.overdue, self._data_plane, now=self._clock())
        for id in overdue:
            self._queue.add(id)
        await self._admit()
        await self._note_outage()

    async def _note_outage(self) -> None:
        self._notice_outage()
        await self._downtimes.record(lambda entry: self._database(ledger.note_for_all, self._data_plane, entry))

    async def poll_told(self, changes: Collection[Change]) -> None:
        """Poll, like `poll`, only the rows that the feed reported, and the executions that they may concern."""
        ids = {change.execution for change in changes if change.execution}
        if EVERYTHING in changes:
            await self.poll()
            return
        if any(change.project for change in changes):
            await self._stop_departed()
        rows = await self._database(pollreads.read_written, self._data_plane, ids, now=self._clock())
        for id in rows.stopped:
            logger.info("execution=%s ends with what it was attached to", id)
        self._take_versions(rows.versions)
        for id in ids - rows.versions.keys():
            self._settled(id)
        self.runs.add(rows.jobs)
        # Of an execution's ten writes, two or three change who waits and who holds slots, and to decide takes longer than all else here.
        if rows.may_change_queue or not all(change.execution for change in changes):
            await self._admit()

    def _admit_soon(self, id: str) -> None:
        self._news.add(Change(id))
        self._has_news.set()

    async def _stop_departed(self) -> None:
        for id in await self._database(departures.stop_departed, self._data_plane, now=self._clock()):
            logger.info("execution=%s ends, its owner has lost access to the project", id)
        self._has_losses = await self._database(departures.has_losses, self._data_plane)

    def _take_versions(self, versions: Mapping[str, int]) -> None:
        for id, revision in versions.items():
            if self._known.get(id) != revision:
                self._queue.add(id)
        self._known.update(versions)

    def _settled(self, id: str) -> None:
        self._known.pop(id, None)
        self._queue.add(id)

    async def _admit(self) -> None:
        admission = await self._database(pollreads.admit, self._data_plane, now=self._clock())
        for id in admission.admitted:
            logger.info("execution=%s admitted", id)
            self._queue.add(id)
        self.waits.put(admission.refusals)

    async def audit(self) -> None:
        """Compare the pods' cache with the API server, and reconcile executions that differ from the API server's own answer. Those
        without a pod are reconciled as well: a pod may have come and gone between two lists. Then audit clusters' objects for drift."""
        actual = await apply.pod_metadata(self._context.api, namespace=self._context.namespace, label_selector=SELECTOR)
        cached = {pod.metadata.key: pod.metadata for pod in self.pods.values()}
        for key in cached.keys() | actual.keys():
            known, present = cached.get(key), actual.get(key)
            if known is None or present is None or known.resource_version != present.resource_version:
                for id in {execution_of(metadata) for metadata in (known, present) if metadata is not None}:
                    self._reconciler.invalidate(id)
                    self._enqueue(id)
        for id in self._known.keys() - {execution_of(metadata) for metadata in actual.values()}:
            self._queue.add(id)
        for id in await self._reconciler.audit():
            self._queue.add(id)

    def go_round(self, seconds: float) -> None:
        """Enqueue the share of all executions that is due after these seconds, so that each comes once in `ROUND_SECONDS`."""
        self._owed += len(self._known) * seconds / ROUND_SECONDS
        while self._owed >= 1 and self._known:
            if not self._round:
                self._round.extend(self._known)
            if (id := self._round.popleft()) in self._known:
                self._owed -= 1
                self._queue.add(id)

    async def work(self) -> None:
        """Take one execution and reconcile it; a failure is retried after a growing delay."""
        id = await self._queue.get()
        try:
            with tracing.of_execution(id), logcontext.of_execution(id):
                again = await self._reconciler.reconcile(id)
        except GridError as error:
            delay = self._queue.retry(id)
            logger.warning("execution=%s not moved on, again in %.1f s reason=%s", id, delay, error)
        except Exception as error:
            if not self._troubles.handles(error):
                logger.exception("execution=%s looking at it failed", id)
            self._queue.retry(id)
        else:
            logger.debug("execution=%s reconciled again_in=%s", id, "never" if again is None else f"{again:.1f}s")
            self._queue.succeeded(id)
            if again != 0:
                self.first_round.reconciled(id)
            if again == 0:
                self._queue.add(id)
            elif again is not None:
                self._queue.add_later(id, again)
            elif id not in self._known:
                self._reconciler.forget(id)
        finally:
            self._queue.done(id)

    @property
    def idle(self) -> bool:
        return len(self._queue) == 0

    def _knows_all(self) -> bool:
        return self._is_polled and self.pods.freshness(self._monotonic()).synced

    def cache_error(self) -> str:
        """Return why a cache is behind the cluster, "" when none is."""
        caches = (self.pods, self.events, self.autoscalers)
        each = (cache.freshness(self._monotonic()) for cache in caches)
        return next((freshness.error for freshness in each if freshness.trouble is not None), "")

    def _notice_outage(self) -> None:
        self._downtimes.notice(self.pods.freshness(self._monotonic()), self._clock())

    # --- Loops ---

    async def _poll_for_ever(self) -> None:
        backoff, loop = Backoff(rng=self._rng), asyncio.get_running_loop()
        failing, polled_at, overdue_at = False, float("-inf"), float("-inf")
        while True:
            self._has_news.clear()
            news, self._news = self._news, set()
            began = loop.time()
            self._notice_outage()
            try:
                if began - polled_at >= self._period:
                    polled_at = overdue_at = began
                    await self.poll()
                else:
                    if news:
                        await self.poll_told(news)
                    if began - overdue_at >= OVERDUE_SECONDS:
                        overdue_at = began
                        await self.poll_overdue()
                backoff.reset()
                self._troubles.tell_if_over()
                if failing:
                    logger.info("the database answers again")
                failing, pause = False, max(MERGE_SECONDS, min(POLL_SECONDS, REST * (loop.time() - began)))
            except Exception as error:
                if not self._troubles.handles(error):
                    logger.log(
                        logging.DEBUG if failing else logging.ERROR,
                        "the database cannot be asked, trying again",
                        exc_info=True,
                    )
                polled_at = float("-inf")  # the reported changes are lost
                failing, pause = True, max(POLL_SECONDS, backoff.next())
            await asyncio.sleep(pause)
            with contextlib.suppress(TimeoutError):
                due = min(polled_at + self._period, overdue_at + OVERDUE_SECONDS, loop.time() + POLL_SECONDS)
                async with asyncio.timeout_at(due):
                    await self._has_news.wait()

    @property
    def _period(self) -> float:
        return TOLD_SECONDS if self._listener is not None and self._listener.is_told else POLL_SECONDS

    def _take_news(self, news: Collection[Change]) -> None:
        others = [change for change in news if not change.check and not change.is_for_pages]
        if any(change.check for change in news) or EVERYTHING in news:
            self.dry_runs.wake()
        if not others:
            return
        self._news.update(others)
        if len(self._news) > MOST_BY_ID:
            self._news = {EVERYTHING}
        self._has_news.set()

    async def _go_round_for_ever(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self.go_round(TICK_SECONDS)

    async def _work_for_ever(self) -> None:
        while True:
            await self.work()

    def _enqueue(self, id: str) -> None:
        if id:
            self._queue.add(id)
