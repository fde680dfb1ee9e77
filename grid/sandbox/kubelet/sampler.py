"""Measurement of this machine's containers twice a second, with a report of those that exceed their memory limit.

One pass over the process table serves all containers of all nodes. Memory is the resident size of the tree; before a container
is reported, pages that its processes share are counted once, as a control group would count them.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from grid.sandbox.client import Clock
from grid.sandbox.kubelet.processes import Process, TableRow, disk_bytes, process_table, proportional_bytes, trees
from grid.sandbox.kubelet.runtime import ContainerStats

logger = logging.getLogger(__name__)

_PERIOD_SECONDS = 0.5
_CPU_WINDOW_SECONDS = 5.0


@dataclass(slots=True)
class _Watched:
    shim: Process
    limit: int
    over_limit: Callable[[int], None]
    samples: deque[tuple[float, int]] = field(default_factory=deque)  # (monotonic seconds, CPU nanoseconds)
    usage: ContainerStats | None = None


class Sampler:
    """The sampler that all kubelets of a process share. It sleeps while there is nothing to measure."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._watched: dict[str, _Watched] = {}
        self._something = asyncio.Event()

    def watch(self, key: str, shim: Process, *, limit: int, over_limit: Callable[[int], None]) -> None:
        """Measure a container; `over_limit` is called with the bytes in use for each sample above the limit (0: no limit)."""
        self._watched[key] = _Watched(shim, limit, over_limit)
        self._something.set()

    def release(self, key: str) -> None:
        self._watched.pop(key, None)

    def usage(self, key: str) -> ContainerStats | None:
        watched = self._watched.get(key)
        return watched.usage if watched is not None else None

    async def run(self) -> None:
        """Sample until cancelled."""
        while True:
            if not self._watched:
                self._something.clear()
                await self._something.wait()
            try:
                await self.sample()
            except Exception:
                logger.exception("measuring containers failed and is tried again")
            await asyncio.sleep(_PERIOD_SECONDS)

    async def sample(self) -> None:
        watched = list(self._watched.items())
        roots = [item.shim.pid for _, item in watched]
        table, below, moved = await asyncio.to_thread(_look, roots)
        for key, item in watched:
            if key not in self._watched:
                continue
            root = table.get(item.shim.pid)
            if root is None or root.start_ticks != item.shim.start_ticks:
                continue
            pids = below[item.shim.pid]
            memory = sum(table[pid].memory_bytes for pid in pids)
            cpu = root.cpu_nanoseconds + sum(table[pid].cpu_nanoseconds for pid in pids)
            item.usage = _usage(item, cpu, memory, self._clock.monotonic(), self._clock.now())
            item.usage = _with_disk(item.usage, moved[item.shim.pid])
            if item.limit and memory > item.limit:
                exact = await asyncio.to_thread(proportional_bytes, pids)
                if exact > item.limit:
                    item.over_limit(exact)


_Moved = dict[int, tuple[int, int] | None]


def _look(roots: list[int]) -> tuple[dict[int, TableRow], dict[int, list[int]], _Moved]:
    table = process_table()
    below = trees(table, roots)
    return table, below, {root: disk_bytes([root, *below[root]]) for root in roots}


def _with_disk(usage: ContainerStats, moved: tuple[int, int] | None) -> ContainerStats:
    read, written = moved or (None, None)
    return replace(usage, read_bytes=read, written_bytes=written)


def _usage(item: _Watched, cpu: int, memory: int, monotonic: float, at: datetime) -> ContainerStats:
    """Return the usage. The CPU rate is over the last seconds, because half a second would show the machine's clock ticks."""
    samples = item.samples
    samples.append((monotonic, cpu))
    while len(samples) > 2 and samples[1][0] <= monotonic - _CPU_WINDOW_SECONDS:
        samples.popleft()
    since, first = samples[0]
    rate = (cpu - first) / (monotonic - since) if monotonic > since else 0.0
    return ContainerStats(cpu, max(0, int(rate)), memory, at)
