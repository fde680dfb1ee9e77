"""The last measured usage of nodes and pods.

Written by one poller (metrics.k8s.io or Prometheus, see `grid.metrics.sources`), read by anybody on the loop. An installation without a
source of metrics is normal: then everything here is None and `unavailable` says so in a sentence.
"""

from array import array
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import msgspec

from grid.core.translation import gettext as _

KEPT_MINUTES = 30
WINDOW_SECONDS = 300.0  # of a pod's average
STALE_SECONDS = 120.0
_UNKNOWN = 2**32 - 1
_MEBIBYTE = 2**20


class Usage(msgspec.Struct, frozen=True, gc=False):
    """One measurement. Each round brings one for each pod, so the garbage collector does not track them."""

    cpu_millicores: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Measured:
    """One round of measurements: nodes by name, pods by `namespace/name`. `pods_at` says when pods were measured, in seconds since 1970:
    one measurement is reported until there is a newer one. `waiting` is the known percentages of the time for which pods wait for CPU."""

    nodes: Mapping[str, Usage]
    pods: Mapping[str, Usage]
    pods_at: Mapping[str, float] = field(default_factory=dict)
    waiting: Mapping[str, float] = field(default_factory=dict)


class UsageSample(NamedTuple):
    """The highest values that were measured within a minute; minutes are counted by the clock of whoever adds."""

    minute: int
    cpu_millicores: int
    memory_mebibytes: int


class RecentUsage:
    """Holds how much each node used over the last half hour: one sample a minute, in an array of some 400 bytes a node."""

    def __init__(self) -> None:
        self._minute = 0
        self._nodes: dict[str, array[int]] = {}

    def add(self, minute: int, nodes: Mapping[str, Usage]) -> None:
        """Take a round of measurements in. A minute before the last one counts as the last one: no clock runs backwards for long."""
        # Forget the minutes that are too old now, and the nodes of which nothing newer is known.
        if minute > self._minute:
            first = max(self._minute + 1, minute - KEPT_MINUTES + 1)
            forgotten = [2 * (each % KEPT_MINUTES) for each in range(first, minute + 1)]
            self._minute = minute
            for name, kept in list(self._nodes.items()):
                for place in forgotten:
                    kept[place : place + 2] = array("I", (_UNKNOWN, _UNKNOWN))
                if name not in nodes and kept.count(_UNKNOWN) == len(kept):
                    del self._nodes[name]
        cpu = 2 * (self._minute % KEPT_MINUTES)
        for name, usage in nodes.items():
            samples = self._nodes.get(name)
            if samples is None:
                samples = self._nodes[name] = array("I", (_UNKNOWN,)) * (2 * KEPT_MINUTES)
            for place, value in ((cpu, usage.cpu_millicores), (cpu + 1, usage.memory_bytes // _MEBIBYTE)):
                if samples[place] == _UNKNOWN or samples[place] < value:
                    samples[place] = max(0, min(value, _UNKNOWN - 1))

    def of(self, name: str) -> list[UsageSample]:
        """Return what is known of the node, the oldest first; a minute without a measurement is left out."""
        samples = self._nodes.get(name)
        if samples is None:
            return []
        kept = range(self._minute - KEPT_MINUTES + 1, self._minute + 1)
        places = ((minute, 2 * (minute % KEPT_MINUTES)) for minute in kept)
        return [
            UsageSample(minute, samples[place], samples[place + 1])
            for minute, place in places
            if samples[place] != _UNKNOWN
        ]


class UsageStore:
    """Holds the last measurements, and a short past of the nodes'. `unavailable` is "" while they arrive, else a sentence on why not."""

    name = "usage"

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self.version = 0
        self.recent = RecentUsage()
        self._monotonic = monotonic
        self.unavailable = _("Usage has not been measured yet.")
        self.measured = Measured({}, {})  # the last round; an empty one while nothing is known

    def node(self, name: str) -> Usage | None:
        return self.measured.nodes.get(name)

    def pod(self, key: str) -> Usage | None:
        return self.measured.pods.get(key)

    def replace(self, measured: Measured) -> None:
        self.measured = measured
        self.recent.add(int(self._monotonic() // 60), measured.nodes)
        self.unavailable = ""
        self.version += 1

    def mark_unavailable(self, sentence: str, *, forget: bool = False) -> bool:
        """Record why no round arrived and return whether anything changed; `forget` drops numbers that would mislead."""
        news = self.unavailable != sentence or (forget and bool(self.measured.nodes or self.measured.pods))
        self.unavailable = sentence
        if forget:
            self.measured = Measured({}, {})
        self.version += news
        return news


class PodUsageSource(Protocol):
    """Knows the last usage of a namespace's pods, by `namespace/name`."""

    async def measure_pods(self, namespace: str) -> Mapping[str, Usage]: ...


class CpuWindow:
    """The average CPU of each pod over the last minutes, from what passes through the source of usage that it is put around."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._source: PodUsageSource | None = None
        self._samples: dict[str, deque[tuple[float, int]]] = {}

    def recording(self, source: PodUsageSource) -> PodUsageSource:
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
