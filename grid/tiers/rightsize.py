"""Chooses a tier by what earlier runs really used: a smaller one that would do, or a larger one after running out of memory; pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

# Use is measured every 15 to 60 seconds, so short peaks are missed; and who runs out of memory loses work, who has some left loses cents.
MARGIN_PERCENT = 30
LEAST_RUNS = 3
MOST_RUNS = 5
LEAST_SAMPLES = 8  # some minutes; a shorter run says little
# A program that has used this much of its CPU limit may have been slowed down by it: nobody knows how many cores it would use.
HELD_BACK_PERCENT = 80


@dataclass(frozen=True, slots=True)
class SizedTier:
    """A tier that its reader may choose. Memory is in bytes, CPU in thousandths of a core."""

    id: str
    name: str
    cpu: int
    memory: int
    memory_limit: int
    gpus: int
    gpu_resource: str
    price: Decimal


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run that has ended, with what it was allowed and its peaks as measured."""

    cpu_limit: int
    memory_peak: int
    cpu_peak: int
    ran_out_of_memory: bool = False

    @property
    def was_held_back(self) -> bool:
        return self.cpu_peak * 100 >= HELD_BACK_PERCENT * self.cpu_limit


@dataclass(frozen=True, slots=True)
class SmallerTier:
    """A tier that would have held all of the runs with the margin; `saves` is the difference of the prices of an hour."""

    tier: SizedTier
    saves: Decimal
    runs: int
    memory_peak: int
    cpu_peak: int


def smaller_tier(runs: Sequence[PastRun], current: SizedTier, offered: Iterable[SizedTier]) -> SmallerTier | None:
    """Return the cheapest offered tier that is smaller than the current one and holds the last runs, newest first; None without such a
    tier, with too few runs, and when one of them ran out of memory."""
    last = runs[:MOST_RUNS]
    if len(last) < LEAST_RUNS or any(run.ran_out_of_memory for run in last):
        return None
    memory_peak, cpu_peak = max(run.memory_peak for run in last), max(run.cpu_peak for run in last)
    memory = _with_margin(memory_peak)
    cpu = max(run.cpu_limit if run.was_held_back else _with_margin(run.cpu_peak) for run in last)
    fitting = [tier for tier in offered if tier.cpu >= cpu and tier.memory >= memory and _is_smaller(tier, current)]
    best = min(fitting, key=lambda tier: (tier.price, tier.memory, tier.cpu, tier.id), default=None)
    if best is None:
        return None
    return SmallerTier(best, current.price - best.price, len(last), memory_peak, cpu_peak)


def larger_tier(cpu: int, memory_limit: int, gpus: tuple[int, str], offered: Iterable[SizedTier]) -> SizedTier | None:
    """Return the cheapest offered tier with more memory than a run that ran out of it, the same GPUs, and if possible as many cores."""
    more = [tier for tier in offered if tier.memory_limit > memory_limit and (tier.gpus, tier.gpu_resource) == gpus]
    enough = [tier for tier in more if tier.cpu >= cpu] or more
    return min(enough, key=lambda tier: (tier.price, tier.memory_limit, tier.id), default=None)


def _is_smaller(tier: SizedTier, current: SizedTier) -> bool:
    """Return whether a tier is no larger and no dearer in anything, and smaller in something. How much a GPU is used is not known."""
    same_gpus = (tier.gpus, tier.gpu_resource) == (current.gpus, current.gpu_resource)
    no_more = tier.cpu <= current.cpu and tier.memory <= current.memory and tier.price <= current.price
    return same_gpus and no_more and (tier.cpu, tier.memory) != (current.cpu, current.memory)


def _with_margin(peak: int) -> int:
    return -(-peak * (100 + MARGIN_PERCENT) // 100)
