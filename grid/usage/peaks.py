"""Keeps the peak use of running executions: measured in short periods, added up in memory, and written rarely.

Only the leader writes, and whole values (not what was added), so writing twice changes nothing; a new leader goes on from what is stored.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass

from django.db import transaction

from grid.core.labels import APP_COMPONENT
from grid.database.periodic import PeriodicTask
from grid.database.seam import Database
from grid.executions.caches import PodCache, execution_of
from grid.metrics.sources import ABSENT_PERIOD, NoMetrics
from grid.metrics.usage import PodUsageSource, Usage
from grid.models import Execution, PeakUse
from grid.models.environment import Kind

PERIOD_SECONDS = 15.0
WRITE_SECONDS = 60.0  # at the earliest after the last write of an execution
MEAN_SECONDS = 600.0  # at the latest, while its peaks stay: a new leader would lack so much of the mean
_MUCH = 20  # a twentieth more is a new peak
AT_ONCE = 500
# Those of `Peak`, in its order.
_COLUMNS = ("memory_peak_bytes", "cpu_peak_millicores", "cpu_sum_millicores", "samples")
_ONE_POD = frozenset(Kind.values) - {Kind.CLUSTER.value}


@dataclass(frozen=True, slots=True)
class Peak:
    """What `PeakUse` stores."""

    memory: int = 0
    cpu: int = 0
    cpu_sum: int = 0
    samples: int = 0

    def __add__(self, other: "Peak") -> "Peak":
        memory, cpu = max(self.memory, other.memory), max(self.cpu, other.cpu)
        return Peak(memory, cpu, self.cpu_sum + other.cpu_sum, self.samples + other.samples)

    def exceeds(self, other: "Peak") -> bool:
        """Return whether it is a new peak, and not only a little more."""
        return _much_more(self.memory, other.memory) or _much_more(self.cpu, other.cpu)


def _much_more(now: int, before: int) -> bool:
    return now * _MUCH > before * (_MUCH + 1)


def read(ids: Iterable[str]) -> dict[str, Peak]:
    """Return what is stored, by execution; an empty peak for an execution without any, nothing for what is no execution."""
    executions = Execution.objects.filter(pk__in=list(ids)).order_by()
    rows = executions.values_list("pk", *(f"peak__{name}" for name in _COLUMNS))
    return {id: Peak(*(value or 0 for value in values)) for id, *values in rows}


def write(peaks: Mapping[str, Peak]) -> None:
    """Store the peaks; those of executions that were deleted meanwhile are dropped."""
    present = set(Execution.objects.filter(pk__in=list(peaks)).order_by().values_list("pk", flat=True))
    rows = [
        PeakUse(execution_id=id, **dict(zip(_COLUMNS, astuple(peak), strict=True)))
        for id, peak in peaks.items()
        if id in present
    ]
    with transaction.atomic():
        PeakUse.objects.bulk_create(
            rows, batch_size=AT_ONCE, update_conflicts=True, unique_fields=["execution"], update_fields=_COLUMNS
        )


@dataclass(slots=True)
class _Followed:
    """A running execution. `stored` is None until it has been read; `since` holds what was measured before that."""

    since: Peak
    stored: Peak | None = None
    written_at: float = float("-inf")

    @property
    def now(self) -> Peak:
        return self.since + (self.stored or Peak())


class PeakKeeper:
    """Follows the executions' pods during one term of leadership."""

    def __init__(
        self,
        source: PodUsageSource,
        pods: PodCache,
        database: Database,
        namespace: str,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._pods = pods
        self._database = database
        self._namespace = namespace
        self._monotonic = monotonic
        self._followed: dict[str, _Followed] = {}

    def periodic(self) -> PeriodicTask:
        return PeriodicTask("peak use", PERIOD_SECONDS, self.run_once, first_after=PERIOD_SECONDS)

    async def run_once(self) -> float | None:
        """Measure, and write what is due; return when to ask again a cluster without metrics. A failure loses no measurement."""
        try:
            self._take(await self._source.measure_pods(self._namespace))
        except NoMetrics:
            return ABSENT_PERIOD
        finally:
            now = self._monotonic()
            due = [id for id, followed in self._followed.items() if self._is_due(id, followed, now)]
            for start in range(0, len(due), AT_ONCE):
                await self._write(due[start : start + AT_ONCE], now)
        return None

    def _take(self, measured: Mapping[str, Usage]) -> None:
        for key, usage in measured.items():
            pod = self._pods.get(key)
            # Of clusters, and of pods of others, it is not the only pod.
            if pod is not None and pod.metadata.labels.get(APP_COMPONENT) in _ONE_POD and (id := execution_of(pod)):
                followed = self._followed.setdefault(id, _Followed(Peak()))
                followed.since += Peak(usage.memory_bytes, usage.cpu_millicores, usage.cpu_millicores, 1)

    async def _write(self, ids: list[str], now: float) -> None:
        if unknown := [id for id in ids if self._followed[id].stored is None]:
            stored = await self._database(read, unknown)
            for id in unknown:
                if id in stored:
                    self._followed[id].stored = stored[id]
                else:
                    del self._followed[id]  # nothing of ours: anybody may set the label
        peaks = {id: self._followed[id].now for id in ids if id in self._followed}
        if peaks:
            await self._database(write, peaks)
        for id, peak in peaks.items():
            if self._is_gone(id):
                del self._followed[id]
            else:
                self._followed[id] = _Followed(Peak(), peak, now)

    def _is_due(self, id: str, followed: _Followed, now: float) -> bool:
        if self._is_gone(id):
            return True
        is_new = followed.stored is None or followed.now.exceeds(followed.stored)
        waited = now - followed.written_at
        return bool(followed.since.samples) and waited >= (WRITE_SECONDS if is_new else MEAN_SECONDS)

    def _is_gone(self, id: str) -> bool:
        return not self._pods.by("execution", id)
