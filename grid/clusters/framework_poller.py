"""Polls the framework of each running cluster for its workers' load and its waiting tasks; only the leader does so.

That happens every five seconds, and every fifteen while a cluster is at rest: all its workers are idle, and it has the least that it may
have. The answers are published where others read them: each worker's deletion cost and report on its pod, the number of workers that the
framework would like to have on the autoscaler, and a sample in the database. Each cluster is visited by a task of its own, and silent heads
are polled less often and few at a time, so that they delay nobody. Only the first failure and the recovery are logged.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable, Sequence, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import groupby

import aiohttp

from grid.clusters import costs, samples
from grid.clusters.frameworks import framework
from grid.clusters.frameworks.base import ClusterReport, FrameworkAdapter, FrameworkSilent, WorkerPod, cluster_of
from grid.clusters.progress import ObservedCluster, is_up
from grid.core.errors import Conflict, GridError, NotFound
from grid.core.labels import KEYS
from grid.core.translation import gettext as _
from grid.database.periodic import PeriodicTask
from grid.database.trouble import TroubleLog
from grid.executions import ledger
from grid.executions.caches import execution_of
from grid.executions.context import Context
from grid.executions.ledger import RunningCluster
from grid.executions.spec import ExecutionSpec, parse_spec
from grid.kube.objects import Autoscaler, Metadata, Pod, RawObject
from grid.kube.resources import AUTOSCALERS, PODS, Resource
from grid.metrics.external import Demand, read_demand, write_demand
from grid.models import ClusterSample

logger = logging.getLogger(__name__)

PERIOD_SECONDS = 5.0
# The visits of one round are spread over several moments, each cluster at its own. At one moment several cost half of what as many single
# ones do, because the process wakes once for all.
SPREAD_SECONDS = (0.0, 0.5, 1.0, 1.5)
ANSWER_SECONDS = 3.0
WRITE_SECONDS = 10.0  # for all that a visit writes of one kind
AT_ONCE = 32
# A silent head occupies its place for the whole timeout.
SILENT_AT_ONCE = 16
SILENT_PERIOD_SECONDS = 30.0
SAMPLE_SECONDS = 15.0
THIN_SECONDS = 3600.0
# A number counts as stale after three minutes, so it is written again well before.
DEMAND_SECONDS = 45.0
MOST_WANTED = 1_000_000  # far above any maximum; a head runs user code, so it may report any number


@dataclass(slots=True)
class _Visits:
    """The poller's memory of one cluster, in seconds of the monotonic clock."""

    stored: RunningCluster
    place: float  # offset in a round, drawn once, so that a cluster is visited evenly
    thinned_at: float
    begun_at: float = float("-inf")  # the round of the last visit
    sampled_at: float = float("-inf")  # the round of the last sample
    written_at: dict[str, float] = field(default_factory=dict)
    failure: str = ""
    is_busy: bool = False
    is_at_rest: bool = False
    silences: int = 0  # in a row
    asked_at: float = float("-inf")
    spec: ExecutionSpec | None = None  # read when it is needed first
    seen: ObservedCluster | None = None  # until one of its pods changes, with what was worked out about them

    def lacks_sample(self, now: float) -> bool:
        # Half a round early rather than half a round late, so that the mean comes out.
        return now - self.sampled_at >= SAMPLE_SECONDS - PERIOD_SECONDS / 2


_Due = tuple[str, _Visits, bool]  # the id of a cluster to visit, what is known of it, and whether to poll its head


def new_session() -> aiohttp.ClientSession:
    """Return a session for heads only: no cookies, no proxy, no connection that is kept for ever."""
    timeout, cookies = aiohttp.ClientTimeout(total=ANSWER_SECONDS), aiohttp.DummyCookieJar()
    connector = aiohttp.TCPConnector(limit=2 * AT_ONCE, keepalive_timeout=2 * SAMPLE_SECONDS)
    return aiohttp.ClientSession(timeout=timeout, connector=connector, cookie_jar=cookies)


class FrameworkPoller:
    """Polls the frameworks; `reporting` are the clusters whose framework has answered when it was asked last."""

    def __init__(
        self, context: Context, *, rng: random.Random, framework_of: Callable[[str], FrameworkAdapter] = framework
    ) -> None:
        self._context, self._rng, self._framework_of = context, rng, framework_of
        self.reporting = set[str]()
        self._visits: dict[str, _Visits] = {}
        self._places = asyncio.Semaphore(AT_ONCE)
        self._visiting: tuple[asyncio.TaskGroup, aiohttp.ClientSession] | None = None
        self._troubles = TroubleLog(context.monotonic)
        self._taken: list[ClusterSample] = []  # since the last round
        context.pods.subscribe(self._pod_changed)

    def periodic(self) -> PeriodicTask:
        # Three rounds are at most SAMPLE_SECONDS: the runner makes no pause longer than the interval.
        return PeriodicTask(
            "framework polls",
            PERIOD_SECONDS,
            self.run_once,
            within=self._visits_under_way,
            work=lambda now: ledger.clusters_that_run(self._context.target.data_plane),
        )

    @asynccontextmanager
    async def _visits_under_way(self) -> AsyncIterator[None]:
        async with new_session() as http, asyncio.TaskGroup() as tasks:
            self._visiting = tasks, http
            yield

    async def run_once(self) -> None:
        assert self._visiting is not None, "runs within its context"
        tasks, http = self._visiting

        async def visit_together(place: float, due: Sequence[_Due]) -> None:
            await asyncio.sleep(place)  # one timer for all
            for id, visits, is_asked in due:
                tasks.create_task(self._visit(http, id, visits, is_asked))

        for place, due in groupby(await self._round(), key=lambda visit: visit[1].place):
            tasks.create_task(visit_together(place, tuple(due)))

    async def _round(self) -> list[_Due]:
        """Return the clusters to visit now, by their places, and whether to poll their heads: all that run, except those whose visit still
        goes on, and those at rest until their next sample."""
        await self._store_samples()
        known = {id: visits.stored.revision for id, visits in self._visits.items()}
        self._take_over(*await self._context.database(ledger.running_clusters, self._context.target.data_plane, known))
        chosen, now = self._silent_to_ask(), self._context.monotonic()
        due: list[_Due] = []
        for id, visits in self._visits.items():
            is_restless = id in chosen if visits.silences else not visits.is_at_rest
            if not visits.is_busy and (is_restless or visits.lacks_sample(now)):
                visits.begun_at, visits.is_busy = now, True
                due.append((id, visits, is_restless or not visits.silences))
        return sorted(due, key=lambda visit: visit[1].place)

    async def _store_samples(self) -> None:
        """Store the samples of the last round. Those that an outage of the database loses are taken anew in this round."""
        taken, self._taken = self._taken, []
        try:
            if taken:
                await self._context.database(samples.record, taken)
        except Exception as error:
            for sample in taken:
                if sample.execution_id in self._visits:
                    self._visits[sample.execution_id].sampled_at = float("-inf")
            if not self._troubles.handles(error):
                logger.exception("samples of %d clusters cannot be stored, trying again", len(taken))

    def _silent_to_ask(self) -> set[str]:
        """Return the unresponsive heads to poll now, the oldest first; the pauses grow (10, 20, then 30 seconds)."""
        now = self._context.monotonic()
        silent = [(id, visits) for id, visits in self._visits.items() if visits.silences]
        places = SILENT_AT_ONCE - sum(visits.is_busy for _, visits in silent)
        # Due half a round early rather than half a round late.
        due = [
            (visits.asked_at, id)
            for id, visits in silent
            if not visits.is_busy and now - visits.asked_at >= _pause(visits.silences) - PERIOD_SECONDS / 2
        ]
        return {id for _, id in sorted(due)[: max(0, places)]}

    def _take_over(self, running: Set[str], changed: Sequence[RunningCluster]) -> None:
        now = self._context.monotonic()
        for id in self._visits.keys() - running:
            del self._visits[id]
            self.reporting.discard(id)
        for cluster in changed:
            known = self._visits.get(cluster.id)
            if known is None:
                # Random, so that many clusters are not thinned at once.
                thinned_at = now - self._rng.uniform(0, THIN_SECONDS)
                self._visits[cluster.id] = _Visits(cluster, self._rng.choice(SPREAD_SECONDS), thinned_at)
            else:
                known.stored, known.spec, known.is_at_rest = cluster, None, False

    def _pod_changed(self, before: Pod | None, after: Pod | None) -> None:
        for pod in (before, after):
            if pod is not None and (visits := self._visits.get(execution_of(pod))) is not None:
                visits.is_at_rest, visits.seen = False, None

    async def _visit(self, http: aiohttp.ClientSession, id: str, visits: _Visits, is_asked: bool) -> None:
        failure, is_done = "", False
        try:
            async with self._places:
                failure = await self._poll(http, id, visits, is_asked)
            is_done = not failure
        except (GridError, TimeoutError) as error:
            failure = str(error) or _("The cluster took too long to answer.")
        except Exception as error:
            if self._troubles.handles(error):
                failure = visits.failure  # nothing new about this cluster
            else:
                failure = f"{type(error).__name__}: {error}"
                if not visits.failure:
                    logger.exception("visiting a cluster failed execution=%s", id)
        finally:
            visits.is_busy = False
            # What could not be written must not wait for the next sample.
            visits.is_at_rest = visits.is_at_rest and is_done
        if failure and not visits.failure:
            logger.warning("cluster cannot be asked or told, trying again execution=%s reason=%s", id, failure)
        elif visits.failure and not failure:
            logger.info("cluster answers again execution=%s", id)
        visits.failure = failure

    async def _poll(self, http: aiohttp.ClientSession, id: str, visits: _Visits, is_asked: bool) -> str:
        """Poll the head, publish the answer, and take a sample; return a sentence when any of it failed."""
        failure, report = visits.failure, None  # a head that is not polled stays failed
        spec = visits.spec = visits.spec or parse_spec(visits.stored)
        seen = self._seen(id, visits)
        if is_asked and seen.head is not None and is_up(seen.head):
            visits.asked_at = self._context.monotonic()
            try:
                report, failure = await self._ask(http, seen.head, spec, seen), ""
            except FrameworkSilent as error:
                failure = str(error) or _("The head does not answer.")
            except Exception as error:  # an answer of user code must not stop the steps that need no head
                failure = f"{type(error).__name__}: {error}"
                if not visits.failure:
                    logger.exception("asking a head failed execution=%s", id)
            visits.silences = visits.silences + 1 if failure else 0
            seen = self._seen(id, visits)
        if report is not None:
            self.reporting.add(id)
        elif is_asked:
            self.reporting.discard(id)
        # Until something changes; its row may have done so meanwhile.
        visits.is_at_rest = report is not None and visits.spec is spec and _is_at_rest(report, seen, spec)
        # The sample needs no cluster and comes first, so that an outage of the cluster leaves no gap in the chart.
        await self._sample(id, visits, spec, seen, report)
        if report is not None:
            await self._note_workers(seen.workers, visits, report)
            await self._note_demand(id, spec, report)
        return failure

    def _seen(self, id: str, visits: _Visits) -> ObservedCluster:
        visits.seen = visits.seen or ObservedCluster(self._context.pods.by("execution", id))
        return visits.seen

    async def _ask(
        self, http: aiohttp.ClientSession, head: Pod, spec: ExecutionSpec, seen: ObservedCluster
    ) -> ClusterReport | None:
        if not head.status.pod_ip:
            return None
        workers = [WorkerPod(pod.metadata.name, pod.status.pod_ip) for pod in seen.workers if pod.status.pod_ip]
        try:
            async with asyncio.timeout(ANSWER_SECONDS + 1):
                return await self._framework_of(cluster_of(spec).framework).ask(http, head.status.pod_ip, spec, workers)
        except TimeoutError:
            raise FrameworkSilent(_("The head did not answer in time.")) from None

    async def _note_workers(self, workers: Sequence[Pod], visits: _Visits, report: ClusterReport) -> None:
        now = self._context.monotonic()
        alive = {pod.metadata.uid for pod in workers}
        visits.written_at = {uid: at for uid, at in visits.written_at.items() if uid in alive}
        changed = costs.changed(report, workers, visits.written_at, now=now)
        if not changed:
            return  # without a timer, as most visits
        async with asyncio.timeout(WRITE_SECONDS):
            for pod, notes in changed:
                # With the uid the patch applies to this very pod or to none.
                change = {"uid": pod.metadata.uid, "annotations": notes}
                await self._patch(PODS, pod.metadata, change, "worker is gone or another now pod=%s reason=%s")
                visits.written_at[pod.metadata.uid] = now

    async def _patch(self, resource: Resource, of: Metadata, metadata: RawObject, when_gone: str) -> None:
        try:
            await self._context.api.patch(resource, of.name, {"metadata": metadata}, namespace=of.namespace)
        except (NotFound, Conflict) as error:
            logger.debug(when_gone, of.key, error)

    async def _note_demand(self, id: str, spec: ExecutionSpec, report: ClusterReport) -> None:
        autoscaler = self._autoscaler(id)
        if not cluster_of(spec).scaling.on_demand or autoscaler is None:
            return
        now, wanted = self._context.clock(), min(max(0, report.wanted_workers), MOST_WANTED)
        known = read_demand(autoscaler.metadata.annotations.get(KEYS.demand, ""))
        if known and known.wanted == wanted and 0 <= (now - known.at).total_seconds() < DEMAND_SECONDS:
            return
        annotations = {KEYS.demand: write_demand(Demand(wanted, now))}
        when_gone = "autoscaler is gone or was changed meanwhile name=%s reason=%s"
        async with asyncio.timeout(WRITE_SECONDS):
            await self._patch(AUTOSCALERS, autoscaler.metadata, {"annotations": annotations}, when_gone)

    async def _sample(
        self, id: str, visits: _Visits, spec: ExecutionSpec, seen: ObservedCluster, report: ClusterReport | None
    ) -> None:
        now = self._context.monotonic()
        # A new leader does not know its pods yet; that is not a cluster without workers.
        if not visits.lacks_sample(visits.begun_at) or not self._context.pods.freshness(now).synced:
            return
        pending = report.pending_tasks if report is not None else None
        minimum = cluster_of(spec).workers_minimum
        sample = samples.sample_of(seen, self._autoscaler(id), minimum=minimum, pending_tasks=pending)
        sample.execution_id, sample.at = id, self._context.clock()
        self._taken.append(sample)
        visits.sampled_at = visits.begun_at
        if now - visits.thinned_at >= THIN_SECONDS:
            async with asyncio.timeout(WRITE_SECONDS):
                await self._context.database(samples.thin, id, now=self._context.clock())
            visits.thinned_at = now

    def _autoscaler(self, id: str) -> Autoscaler | None:
        return next(iter(self._context.autoscalers.by("execution", id)), None)


def _is_at_rest(report: ClusterReport, seen: ObservedCluster, spec: ExecutionSpec) -> bool:
    """Return whether all workers are there, known to the head and idle, and nobody wants more than the least that there are."""
    minimum = cluster_of(spec).workers_minimum
    if report.pending_tasks > 0 or report.wanted_workers > minimum or len(report.workers) != minimum:
        return False
    are_known = all(pod.metadata.name in report.workers for pod in seen.workers)
    is_idle = not any(worker.tasks for worker in report.workers.values())
    return are_known and is_idle and len(seen.workers) == seen.ready_workers == minimum


def _pause(silences: int) -> float:
    return min(SILENT_PERIOD_SECONDS, PERIOD_SECONDS * 2.0 ** min(silences, 8))
