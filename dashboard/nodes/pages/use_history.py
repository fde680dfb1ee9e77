"""What pages show of the last hours of node pools, nodes, pods and executions, from samples and from Prometheus, read beside the pages: a
database or a Prometheus that is slow holds none of them up."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Generic, NamedTuple, Protocol, TypeVar

from django.conf import settings

from dashboard.nodes.records import failed_on, read_points, read_trends
from dashboard.nodes.viewmodels.pool_history import (
    RANGES,
    SPARK_POINTS,
    PoolMoments,
    Trends,
    moments,
    pool_samples_with,
    width_of,
)
from dashboard.nodes.viewmodels.use_history import SILENT, UNCONNECTED, UNKNOWN, Known
from dashboard.shell.pages.periodic import FIRST_SECONDS, PeriodicRead
from dashboard.usage.viewmodels.failure_moments import FailedExecution
from grid.core.errors import GridError
from grid.database import threads as database
from grid.metrics.expressions import in_columns, metric_label, node_columns, pods_columns, pool_use_columns
from grid.metrics.history import PrometheusHistory
from grid.models.pool import ALL_POOLS
from grid.runtime import Runtime

logger = logging.getLogger(__name__)

K = TypeVar("K")
V = TypeVar("V")
# The ages of sparklines and of what Prometheus said, which are read and asked once for everybody who may see them.
TRENDS_SECONDS, POOL_SECONDS, KNOWN_SECONDS = 30.0, 60.0, 30.0
POOLS_AT_MOST = 100  # pools and ranges of which that is remembered
KNOWN_AT_MOST = 60  # subjects and ranges of which it is remembered, some 0.4 MB each
# Of their own: a Prometheus that answers slowly keeps no other work from its threads.
_ASKING_OF_POOLS = ThreadPoolExecutor(2, "prometheus-history")
_ASKING_OF_USE = ThreadPoolExecutor(4, "prometheus-use")
KnownPool = Mapping[int, Mapping[str, int]]  # columns by minute


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
        self._known = KeptReads[tuple[str, str], KnownPool](runtime, POOLS_AT_MOST)
        self._trends = {name: PeriodicRead(partial(self._read_trends, name), clock=runtime.clock) for name in RANGES}

    @property
    def minute(self) -> int:
        return int(self.runtime.clock().timestamp() // 60)

    async def trends(self, range: str) -> Trends | None:
        """Return the sparklines' values, at most half a minute old; None while they cannot be read."""
        return await self._trends[range].value(TRENDS_SECONDS)

    async def _read_trends(self, range: str) -> Trends:
        until, minutes = self.minute, RANGES[range]
        return await database.pages.run(read_trends, until - minutes, until, width_of(minutes, SPARK_POINTS))

    async def read(self, pool: str, range: str, *, seconds: float | None = None) -> PoolMoments:
        """Return what the charts of a pool show, or with "" of all; from Prometheus what it knows, and the rest from the samples. Raise
        TimeoutError when the samples cannot be read within so many seconds."""
        until, minutes = self.minute, RANGES[range]
        width = width_of(minutes)
        reading = database.pages.run(read_points, pool or ALL_POOLS, until - minutes, until)
        asking = self._known.value((pool, range), partial(self._ask, pool, range), POOL_SECONDS)
        samples, known = await asyncio.gather(asyncio.wait_for(reading, seconds), asking)
        shown = moments(samples, width, until=until)
        if not known:
            return shown
        return replace(moments(pool_samples_with(known, shown), width, until=until), is_from_prometheus=True)

    async def _ask(self, pool: str, range: str) -> KnownPool:
        """Return what Prometheus knows; nothing without one, or when it does not answer."""
        if self._prometheus is None:
            return {}
        ask = partial(self._prometheus.read, pool or None, *stretches(range, self.minute))
        try:
            known = await asyncio.get_running_loop().run_in_executor(_ASKING_OF_POOLS, ask)
        except GridError as error:
            logger.warning("the charts show what was sampled reason=%s", error)
            return {}
        if not known:
            logger.warning("the charts show what was sampled: Prometheus knows nothing of the pool %s", pool or "(all)")
        return known

    async def read_in_time(self, pool: str, range: str) -> PoolMoments | None:
        """Return the same for a page that is being made; None when that fails or takes too long."""
        try:
            return await self.read(pool, range, seconds=FIRST_SECONDS)
        except Exception as error:
            logger.warning("a page is shown without its charts' table reason=%r", error)
            return None


_pool_histories: list[PoolHistory] = []


def history_in(runtime: Runtime) -> PoolHistory:
    """Return the history that all pages over the runtime share."""
    if not _pool_histories or _pool_histories[0].runtime is not runtime:
        _pool_histories[:] = [PoolHistory(runtime, prometheus())]
    return _pool_histories[0]


def prometheus() -> PrometheusHistory | None:
    """Return the one that the settings name; None where there is none."""
    url = settings.PROMETHEUS_URL
    return PrometheusHistory(url, pool_label=settings.NODE_POOL_LABEL) if url else None


class Subject(NamedTuple):
    """A node (without a namespace), a node pool, a pod, or an execution's pods, up to the minute `ended` when it is over."""

    name: str
    namespace: str = ""
    is_execution: bool = False
    is_pool: bool = False
    ended: int | None = None

    @property
    def query(self) -> str:
        if self.is_pool:
            return in_columns(pool_use_columns(self.name, metric_label(settings.NODE_POOL_LABEL)))
        if not self.namespace:
            return in_columns(node_columns(self.name))
        return in_columns(pods_columns(self.namespace, self.name, with_prefix=self.is_execution))


class ReadUse(NamedTuple):
    """`known` is None without Prometheus; `problem` says why nothing is known."""

    known: Known | None
    problem: str = ""


class UseSource(Protocol):
    def ask(self, query: str, first: int, last: int, step: int) -> Known: ...


class UseHistory:
    """Reads for the pages over one runtime. `prometheus` is None where there is none."""

    def __init__(self, runtime: Runtime, prometheus: UseSource | None) -> None:
        self.runtime = runtime
        self._prometheus = prometheus
        self._known = KeptReads[tuple[Subject, str], ReadUse](runtime, KNOWN_AT_MOST)
        self._failed = KeptReads[tuple[str, str], Sequence[FailedExecution]](runtime, KNOWN_AT_MOST)

    def until(self, subject: Subject) -> int:
        """Return the minute where the charts end: the present one, or when the subject ended."""
        return subject.ended or int(self.runtime.clock().timestamp() // 60)

    async def read(self, subject: Subject, range: str) -> ReadUse:
        """Return what is known; nothing while the first answer takes long. Whoever calls has checked who may see it."""
        if self._prometheus is None:
            return ReadUse(None, UNCONNECTED)
        ask = partial(self._ask, self._prometheus, subject, range)
        return await self._known.value((subject, range), ask, KNOWN_SECONDS) or ReadUse({}, SILENT)

    async def failed_on(self, node: str, range: str) -> Sequence[FailedExecution]:
        """Return the executions that failed on the node in this time, for its charts; none without charts, or while the database takes
        long: the pods and events of the caches are marked all the same."""
        if self._prometheus is None:
            return ()
        return await self._failed.value((node, range), partial(self._read_failed, node, range), KNOWN_SECONDS) or ()

    async def _read_failed(self, node: str, range: str) -> Sequence[FailedExecution]:
        since = self.runtime.clock() - timedelta(minutes=RANGES[range])
        return await database.pages.run(failed_on, node, since)

    async def _ask(self, source: UseSource, subject: Subject, range: str) -> ReadUse:
        ask = partial(source.ask, subject.query, *stretches(range, self.until(subject)))
        try:
            known = await asyncio.get_running_loop().run_in_executor(_ASKING_OF_USE, ask)
        except GridError as error:
            logger.warning("there are no charts of %s reason=%s", subject.name, error)
            return ReadUse({}, SILENT)
        return ReadUse(known, "" if known else UNKNOWN)


_use_histories: list[UseHistory] = []


def use_in(runtime: Runtime) -> UseHistory:
    """Return the history that all pages over the runtime share."""
    if not _use_histories or _use_histories[0].runtime is not runtime:
        _use_histories[:] = [UseHistory(runtime, prometheus())]
    return _use_histories[0]
