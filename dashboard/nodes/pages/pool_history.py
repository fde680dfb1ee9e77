"""What pages show of the last hours of the node pools, read beside the pages: a database that hangs holds none of them up."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from django.conf import settings

from dashboard.nodes.records import read_points, read_trends
from dashboard.nodes.viewmodels.pool_history import (
    RANGES,
    PoolMoments,
    moments,
    pool_samples_with,
    width_of,
)
from dashboard.nodes.viewmodels.pool_trends import SPARK_POINTS, Trends
from dashboard.shell.pages.periodic import FIRST_SECONDS, PeriodicRead
from grid.core.errors import GridError
from grid.database import threads as database
from grid.metrics.history import PrometheusHistory
from grid.models.pool import ALL_POOLS
from grid.runtime import Runtime

logger = logging.getLogger(__name__)

K = TypeVar("K")
V = TypeVar("V")
TRENDS_SECONDS = 30.0  # the age of sparklines, which are read once for everybody
KNOWN_SECONDS = 60.0  # the age of what Prometheus said, which is asked once for everybody
KNOWN_AT_MOST = 100  # pools and ranges of which that is remembered
# Of its own: a Prometheus that answers slowly keeps no other work from its threads.
_ASKING = ThreadPoolExecutor(2, "prometheus-history")

Known = Mapping[int, Mapping[str, int]]  # columns by minute


@dataclass(frozen=True, slots=True)
class ReadMoments:
    """What charts show, and where it comes from."""

    moments: PoolMoments
    is_from_prometheus: bool


class KeptReads(Generic[K, V]):
    """The latest readings, at most `at_most`, each shared by everybody; the one that is unused for longest goes."""

    def __init__(self, runtime: Runtime, at_most: int) -> None:
        self._runtime = runtime
        self._at_most = at_most
        self._reads: OrderedDict[K, PeriodicRead[V]] = OrderedDict()

    async def value(self, key: K, read: Callable[[], Awaitable[V]], seconds: float) -> V | None:
        """Return what was read, `seconds` old at most; None while the first reading takes long."""
        reading = self._reads.setdefault(key, PeriodicRead(read, clock=self._runtime.clock))
        self._reads.move_to_end(key)
        if len(self._reads) > self._at_most:
            self._reads.popitem(last=False)
        return await reading.value(seconds)


def stretches(range: str, until: int) -> tuple[int, int, int]:
    """Return the first and the last moment that Prometheus is asked about, and the step, in minutes."""
    width = width_of(RANGES[range])
    return (until - RANGES[range]) // width * width, until // width * width, width


class PoolHistory:
    """Reads for the pages over one runtime. `prometheus` is None where there is none."""

    def __init__(self, runtime: Runtime, prometheus: PrometheusHistory | None) -> None:
        self.runtime = runtime
        self._prometheus = prometheus
        self._known = KeptReads[tuple[str, str], Known](runtime, KNOWN_AT_MOST)
        self._trends = {name: PeriodicRead(partial(self._read_trends, name), clock=runtime.clock) for name in RANGES}

    @property
    def minute(self) -> int:
        """The present one."""
        return int(self.runtime.clock().timestamp() // 60)

    async def trends(self, range: str) -> Trends | None:
        """Return the sparklines' values, at most half a minute old; None while they cannot be read."""
        return await self._trends[range].value(TRENDS_SECONDS)

    async def _read_trends(self, range: str) -> Trends:
        until, minutes = self.minute, RANGES[range]
        return await database.pages.run(read_trends, until - minutes, until, width_of(minutes, SPARK_POINTS))

    async def read(self, pool: str, range: str, *, seconds: float | None = None) -> ReadMoments:
        """Return what the charts of a pool show, or with "" of all; from Prometheus what it knows, and the rest from the samples. Raise
        TimeoutError when the samples cannot be read within so many seconds."""
        until, minutes = self.minute, RANGES[range]
        width = width_of(minutes)
        reading = database.pages.run(read_points, pool or ALL_POOLS, until - minutes, until)
        asking = self._known.value((pool, range), partial(self._ask, pool, range), KNOWN_SECONDS)
        samples, known = await asyncio.gather(asyncio.wait_for(reading, seconds), asking)
        sampled = moments(samples, width, until=until)
        if not known:
            return ReadMoments(sampled, False)
        return ReadMoments(moments(pool_samples_with(known, sampled), width, until=until), True)

    async def _ask(self, pool: str, range: str) -> Known:
        """Return what Prometheus knows; nothing without one, or when it does not answer."""
        if self._prometheus is None:
            return {}
        ask = partial(self._prometheus.read, pool or None, *stretches(range, self.minute))
        try:
            known = await asyncio.get_running_loop().run_in_executor(_ASKING, ask)
        except GridError as error:
            logger.warning("the charts show what was sampled reason=%s", error)
            return {}
        if not known:
            logger.warning("the charts show what was sampled: Prometheus knows nothing of the pool %s", pool or "(all)")
        return known

    async def read_in_time(self, pool: str, range: str) -> ReadMoments | None:
        """Return the same for a page that is being made; None when that fails or takes too long."""
        try:
            return await self.read(pool, range, seconds=FIRST_SECONDS)
        except Exception as error:
            logger.warning("a page is shown without its charts' table reason=%r", error)
            return None


_histories: list[PoolHistory] = []


def history_in(runtime: Runtime) -> PoolHistory:
    """Return the history that all pages over the runtime share."""
    if not _histories or _histories[0].runtime is not runtime:
        _histories[:] = [PoolHistory(runtime, prometheus())]
    return _histories[0]


def prometheus() -> PrometheusHistory | None:
    """Return the one that the settings name; None where there is none."""
    url = settings.PROMETHEUS_URL
    return PrometheusHistory(url, pool_label=settings.NODE_POOL_LABEL) if url else None
