"""What nodes, pools, pods and executions used lately, asked of Prometheus beside the pages, so that a slow one holds none up."""

import asyncio
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Protocol

from django.conf import settings

from dashboard.nodes.pages.pool_history import KeptReads, prometheus, stretches
from dashboard.nodes.records import failed_on
from dashboard.nodes.viewmodels.pool_history import RANGES
from dashboard.nodes.viewmodels.use_history import SILENT, UNCONNECTED, UNKNOWN, Known
from dashboard.usage.viewmodels.failure_moments import FailedExecution
from grid.core.errors import GridError
from grid.database import threads as database
from grid.metrics.expressions import in_columns, metric_label, node_columns, pods_columns, pool_use_columns
from grid.runtime import Runtime

logger = logging.getLogger(__name__)

KNOWN_SECONDS = 30.0  # the age of an answer, which is asked once for everybody who may see it
KNOWN_AT_MOST = 60  # subjects and ranges of which it is remembered, some 0.4 MB each
# Of its own: a Prometheus that answers slowly keeps no other work from its threads.
_ASKING = ThreadPoolExecutor(4, "prometheus-use")


@dataclass(frozen=True, slots=True)
class Subject:
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


@dataclass(frozen=True, slots=True)
class ReadUse:
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
            known = await asyncio.get_running_loop().run_in_executor(_ASKING, ask)
        except GridError as error:
            logger.warning("there are no charts of %s reason=%s", subject.name, error)
            return ReadUse({}, SILENT)
        return ReadUse(known, "" if known else UNKNOWN)


_histories: list[UseHistory] = []


def use_in(runtime: Runtime) -> UseHistory:
    """Return the history that all pages over the runtime share."""
    if not _histories or _histories[0].runtime is not runtime:
        _histories[:] = [UseHistory(runtime, prometheus())]
    return _histories[0]
