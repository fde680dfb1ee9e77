"""Metrics of this process for a monitoring system, on a port of their own, so that nothing is added to what people can reach.

The numbers are computed on request, on the event loop that writes the caches.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping

from aiohttp import web
from django.db import DatabaseError
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, ProcessCollector, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from grid.executions.ledger import UnsettledWork
from grid.kube.store import Freshness
from grid.observability import telemetry

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.02
REMEMBERED_SECONDS = 60


class CacheCollector(Collector):
    """Collects how far each watch cache is behind the cluster."""

    def __init__(self, caches: Callable[[], Mapping[str, Freshness]]) -> None:
        self._caches = caches

    def collect(self) -> Iterator[Metric]:
        has_come = "Whether the first list of the cache has come."
        synced = GaugeMetricFamily("compute_grid_cache_synced", has_come, labels=["cache"])
        how_far = "How far the cache may be behind the cluster; 0 while it follows, absent before its first list."
        behind = GaugeMetricFamily("compute_grid_cache_behind_seconds", how_far, labels=["cache"])
        for name, freshness in self._caches().items():
            synced.add_metric([name], float(freshness.synced))
            if freshness.synced:
                behind.add_metric([name], freshness.behind_seconds)
        yield synced
        yield behind


class LoopWatch:
    """Measures how long the event loop delays what is due; every page and socket waits as long. `clock` is in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._longest: deque[tuple[float, float]] = deque()  # (when, how long); each shorter than the one before

    def longest(self) -> float:
        """Return the longest delay within the last minute, in seconds."""
        self._forget(self._clock())
        return self._longest[0][1] if self._longest else 0.0

    async def run(self) -> None:
        began = self._clock()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = self._clock()
            waited = now - began - LOOK_SECONDS
            while self._longest and self._longest[-1][1] <= waited:
                self._longest.pop()
            self._longest.append((now, waited))
            self._forget(now)
            began = now

    def _forget(self, now: float) -> None:
        while self._longest and now - self._longest[0][0] > REMEMBERED_SECONDS:
            self._longest.popleft()


class WorkCollector(Collector):
    """Collects what a controller works on: the unsettled executions as `read` returned them last. Only the one that leads tells them, or
    their sum would be a multiple of the truth."""

    def __init__(self, read: Callable[[], Awaitable[UnsettledWork]], leads: Callable[[], bool]) -> None:
        self._read, self._leads = read, leads
        self._work: UnsettledWork | None = None

    async def refresh(self) -> None:
        """Read the executions again; without an answer of the database they are left out."""
        self._work = None
        if self._leads():
            try:
                self._work = await self._read()
            except DatabaseError as error:
                logger.warning("executions are not counted reason=%s", error)

    def collect(self) -> Iterator[Metric]:
        leads = GaugeMetricFamily("compute_grid_controller_leads", "Whether this controller is the one that works.")
        leads.add_metric([], float(self._leads()))
        yield leads
        counted = "Executions that are not over, as the controller that leads sees them."
        executions = GaugeMetricFamily("compute_grid_executions", counted, labels=["kind", "state"])
        queued = "How long the execution that waits longest has been queued, as the controller that leads sees it."
        oldest = GaugeMetricFamily("compute_grid_queue_oldest_seconds", queued)
        if self._work is not None:
            for labels, count in self._work.counts.items():
                executions.add_metric(labels, count)
            oldest.add_metric([], self._work.queue_oldest_seconds)
        yield executions
        yield oldest


class MetricsEndpoint:
    """Serves `/metrics` over HTTP, in Prometheus' text format: what the process has counted, and what the collectors tell. `refresh` is
    awaited before each answer; `loop_watch` has to run."""

    def __init__(self, *collectors: Collector, refresh: Callable[[], Awaitable[None]] | None = None) -> None:
        self._registry = CollectorRegistry()
        for collector in (telemetry.REGISTRY, *collectors):
            self._registry.register(collector)
        self.loop_watch = LoopWatch()
        waited = "How long something due had to wait for the event loop, at most, within the last minute."
        gauge = Gauge("compute_grid_loop_longest_wait_seconds", waited, registry=self._registry)
        gauge.set_function(self.loop_watch.longest)
        ProcessCollector(registry=self._registry)
        self._refresh = refresh
        self._runner: web.AppRunner | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen and return the port, which is chosen by the kernel when `port` is 0. Raise OSError."""
        app = web.Application()
        app.router.add_get("/metrics", self._metrics)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port).start()
        address = self._runner.addresses[0]
        logger.info("metrics are served on http://%s:%s/metrics", address[0], address[1])
        return int(address[1])

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _metrics(self, request: web.Request) -> web.Response:
        if self._refresh is not None:
            await self._refresh()
        return web.Response(body=generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST})
