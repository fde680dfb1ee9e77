"""How the service levels stand, read beside the pages and once for everybody: a Prometheus that hangs holds no page up."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from dashboard.servicelevels.records import read_level_days
from dashboard.shell.pages.periodic import PeriodicRead
from grid import configuration as centralconfig
from grid.core.errors import GridError
from grid.database import threads as database
from grid.metrics.levels import LevelDays, PrometheusLevels
from grid.runtime import Runtime
from grid.servicelevels import LevelStatus, LevelTarget, status_of

logger = logging.getLogger(__name__)

KNOWN_SECONDS = 60.0
# Of its own: a Prometheus that answers slowly keeps no other work from its threads.
_ASKING = ThreadPoolExecutor(1, "prometheus-levels")


@dataclass(frozen=True, slots=True)
class ReadLevel:
    """A service level as it stands. `source` is "prometheus", "database", or "" when nobody knows."""

    status: LevelStatus
    source: str


@dataclass(frozen=True, slots=True)
class ReadLevels:
    """All of them, and when they were read. `is_silent` when there is a Prometheus that did not answer."""

    levels: tuple[ReadLevel, ...]
    at: datetime
    has_prometheus: bool
    is_silent: bool = False


class ServiceLevels:
    """Reads for the pages over one runtime. `prometheus` is None where there is none."""

    def __init__(self, runtime: Runtime, prometheus: PrometheusLevels | None) -> None:
        self.runtime = runtime
        self._prometheus = prometheus
        self._known = PeriodicRead(self._read, clock=runtime.clock)

    async def read(self) -> ReadLevels | None:
        """Return how they stood within the last minute, or else at the reading before; None while the first takes long or fails."""
        return await self._known.value(KNOWN_SECONDS)

    async def _read(self) -> ReadLevels:
        now = self.runtime.clock()
        targets = await database.pages.run(centralconfig.service_level_targets)
        answer = await self._asked(targets, now)
        known = answer or {}
        missing = {target.level.id: target for target in targets if target.level.id not in known}
        stored = await database.pages.run(read_level_days, missing, now) if missing else {}
        levels = tuple(_level(target, known, stored) for target in targets)
        has_prometheus = self._prometheus is not None
        return ReadLevels(levels, now, has_prometheus, is_silent=has_prometheus and answer is None)

    async def _asked(self, targets: Sequence[LevelTarget], now: datetime) -> Mapping[str, LevelDays] | None:
        if self._prometheus is None:
            return None
        try:
            return await asyncio.get_running_loop().run_in_executor(_ASKING, self._prometheus.read, targets, now)
        except GridError as error:
            logger.warning("service levels are those that the database knows reason=%s", error)
            return None


def _level(target: LevelTarget, known: Mapping[str, LevelDays], stored: Mapping[str, LevelDays]) -> ReadLevel:
    for source, read in (("prometheus", known), ("database", stored)):
        if level := read.get(target.level.id):
            return ReadLevel(status_of(target, level.days, level.burn_ratio), source)
    return ReadLevel(status_of(target, (), None), "")


_levels: list[ServiceLevels] = []


def levels_in(runtime: Runtime) -> ServiceLevels:
    """Return what all pages over the runtime share."""
    if not _levels or _levels[0].runtime is not runtime:
        url = settings.PROMETHEUS_URL
        _levels[:] = [ServiceLevels(runtime, PrometheusLevels(url) if url else None)]
    return _levels[0]
