"""Metrics of this process for a monitoring system, on a port of their own, so that nothing is added to what people can reach.

The numbers are computed on request, on the event loop that writes the caches.
"""

import logging
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


def loop_gauge(longest_wait: Callable[[], float]) -> Gauge:
    """Return a gauge of the seconds of a `LoopWatch`."""
    waited = "How long something due had to wait for the event loop, at most, within the last minute."
    gauge = Gauge("compute_grid_loop_longest_wait_seconds", waited, registry=None)
    gauge.set_function(longest_wait)
    return gauge


class WorkCollector(Collector):
    """Collects what a controller works on: the unsettled executions as `read` returned them last.

    Only the one that leads tells them, or their sum would be a multiple of the truth.
    """

    def __init__(self, read: Callable[[], Awaitable[UnsettledWork]], leads: Callable[[], bool]) -> None:
        self._read = read
        self._leads = leads
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
        executions = GaugeMetricFamily(
            "compute_grid_executions",
            "Executions that are not over, as the controller that leads sees them.",
            labels=["kind", "state"],
        )
        oldest = GaugeMetricFamily(
            "compute_grid_queue_oldest_seconds",
            "How long the execution that waits longest has been queued, as the controller that leads sees it.",
        )
        if self._work is not None:
            for labels, count in self._work.counts.items():
                executions.add_metric(labels, count)
            oldest.add_metric([], self._work.queue_oldest_seconds)
        yield executions
        yield oldest


async def _nothing() -> None:
    pass


class MetricsEndpoint:
    """Serves `/metrics` over HTTP, in Prometheus' text format: what the process has counted, and what the collectors tell.

    `refresh` is awaited before each answer.
    """

    def __init__(self, *collectors: Collector, refresh: Callable[[], Awaitable[None]] = _nothing) -> None:
        self._registry = CollectorRegistry()
        for collector in (telemetry.REGISTRY, *collectors):
            self._registry.register(collector)
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
        await self._refresh()
        return web.Response(body=generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST})
