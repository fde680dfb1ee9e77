"""The page of service levels, for those who watch the cluster: read once for everybody, so a Prometheus that hangs holds no page up."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db.models import Count, Q
from django.db.models.functions import TruncDate
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.servicelevels.viewmodel import level_card
from dashboard.shell.access import may_administer, observer_required
from dashboard.shell.pages.periodic import PeriodicRead
from grid import configuration as centralconfig
from grid.core.errors import GridError
from grid.database import threads as database
from grid.diagnosis.startup import Phase
from grid.metrics.history import LevelDays, PrometheusLevels
from grid.models import Execution, StartDay, State
from grid.runtime import Runtime, get_runtime
from grid.servicelevels.levels import NOT_PLATFORM, LevelDay, LevelStatus, LevelTarget, status_of
from grid.starts.startdays import WHOLE, StartSums, read_sums, seconds_of


@require_safe
@observer_required
async def service_levels(request: HttpRequest) -> HttpResponse:
    may_edit = await sync_to_async(may_administer)(request.user)
    read = await levels_in(get_runtime()).read()
    levels, has_prometheus = (read.levels, read.has_prometheus) if read else ((), False)
    cards = [level_card(level.status, level.source, has_prometheus=has_prometheus) for level in levels]
    context = {"read": read, "cards": cards, "may_edit": may_edit}
    return await sync_to_async(render)(request, "servicelevels/service_levels.html", context)


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
    if not _levels or _levels[0].runtime is not runtime:
        url = settings.PROMETHEUS_URL
        _levels[:] = [ServiceLevels(runtime, PrometheusLevels(url) if url else None)]
    return _levels[0]


def read_level_days(targets: Mapping[str, LevelTarget], now: datetime) -> dict[str, LevelDays]:
    """Return what is known of these levels, by id; days are those of UTC, and the share of bad ones lately is that of today."""
    today = now.astimezone(UTC).date()
    readers: dict[str, Callable[[LevelTarget, date], list[LevelDay]]] = {
        "start-time": lambda target, first: _starts(target, first, WHOLE),
        "queue-time": lambda target, first: _starts(target, first, Phase.QUEUED),
        "failure-rate": lambda target, first: _failures(first),
    }
    levels = {}
    for id in readers.keys() & targets.keys():
        target = targets[id]
        days = readers[id](target, today - timedelta(days=target.window_days - 1))
        lately = next((day.bad / day.total for day in days if day.day == today and day.total), None)
        levels[id] = LevelDays(tuple(days), lately)
    return levels


def _starts(target: LevelTarget, first: date, column: str) -> list[LevelDay]:
    rows = StartDay.objects.filter(grouping=StartDay.Grouping.ALL, group="", day__gte=first, starts__gt=0)
    bound = target.measured_threshold
    read = ((day, read_sums(sums)) for day, sums in rows.order_by("day").values_list("day", "sums"))
    return [LevelDay(day, _slower(sums, column, bound), sums.starts) for day, sums in read]


def _slower(sums: StartSums, column: str, bound: float) -> int:
    return sum(count for bucket, count in sums.times.get(column, {}).items() if seconds_of(bucket) > bound)


def _failures(first: date) -> list[LevelDay]:
    since = datetime(first.year, first.month, first.day, tzinfo=UTC)
    bad = Count("pk", filter=Q(state=State.ERROR) & ~Q(reason__in=NOT_PLATFORM))
    ended = Execution.objects.filter(ended_at__gte=since).order_by()
    rows = ended.annotate(day=TruncDate("ended_at", tzinfo=UTC)).values("day").annotate(bad=bad, total=Count("pk"))
    return sorted((LevelDay(row["day"], row["bad"], row["total"]) for row in rows), key=lambda day: day.day)
