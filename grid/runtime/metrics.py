"""Metrics of this process for a monitoring system, on a port of their own, so that nothing is added to what people can reach.

The numbers are computed on request, on the event loop that writes the caches.
"""

import logging
from collections.abc import Callable, Iterator, Mapping

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, ProcessCollector, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from grid.watch.store import Freshness

logger = logging.getLogger(__name__)


class CacheCollector(Collector):
    """Collects how far each watch cache is behind the cluster."""

    def __init__(self, caches: Callable[[], Mapping[str, Freshness]]) -> None:
        self._caches = caches

    def collect(self) -> Iterator[Metric]:
        synced = GaugeMetricFamily(
            "compute_grid_cache_synced", "Whether the first list of the cache has come.", labels=["cache"]
        )
        behind = GaugeMetricFamily(
            "compute_grid_cache_behind_seconds",
            "How far the cache may be behind the cluster; 0 while it follows, absent before its first list.",
            labels=["cache"],
        )
        for name, freshness in self._caches().items():
            synced.add_metric([name], float(freshness.synced))
            if freshness.synced:
                behind.add_metric([name], freshness.behind_seconds)
        yield synced
        yield behind


class MetricsEndpoint:
    """Serves `/metrics` over HTTP, in Prometheus' text format. `longest_wait` returns the seconds of `LoopWatch`."""

    def __init__(self, caches: Callable[[], Mapping[str, Freshness]], longest_wait: Callable[[], float]) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(CacheCollector(caches))
        waited = "How long something due had to wait for the event loop, at most, within the last minute."
        Gauge("compute_grid_loop_longest_wait_seconds", waited, registry=self._registry).set_function(longest_wait)
        ProcessCollector(registry=self._registry)
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
        return web.Response(body=generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST})
