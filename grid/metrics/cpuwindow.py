"""The average CPU of each pod over the last minutes, from the measurements that are taken anyway; in memory only."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Protocol

from grid.metrics.usage import Usage

WINDOW_SECONDS = 300.0
STALE_SECONDS = 120.0


class PodUsageSource(Protocol):
    async def measure_pods(self, namespace: str) -> Mapping[str, Usage]:
        """Return the last known usage of the namespace's pods, by `namespace/name`."""
        ...


class CpuWindow:
    """Remembers what passes through the source of usage that it is put around."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._source: PodUsageSource | None = None
        self._samples: dict[str, deque[tuple[float, int]]] = {}

    def recording(self, source: PodUsageSource) -> PodUsageSource:
        """Return the source of which it remembers the answers."""
        self._source = source
        return self

    async def measure_pods(self, namespace: str) -> Mapping[str, Usage]:
        assert self._source is not None
        measured = await self._source.measure_pods(namespace)
        self.add({key: usage.cpu_millicores for key, usage in measured.items()})
        return measured

    def add(self, millicores: Mapping[str, int]) -> None:
        now = self._monotonic()
        for key in self._samples.keys() - millicores.keys():
            if now - self._samples[key][-1][0] > WINDOW_SECONDS:
                del self._samples[key]
        for key, value in millicores.items():
            samples = self._samples.setdefault(key, deque())
            samples.append((now, value))
            while now - samples[0][0] > WINDOW_SECONDS:
                samples.popleft()

    def mean(self, key: str) -> float | None:
        """Return the average of a pod in millicores; None when it was not measured recently."""
        samples = self._samples.get(key)
        if not samples or self._monotonic() - samples[-1][0] > STALE_SECONDS:
            return None
        return sum(value for _, value in samples) / len(samples)
