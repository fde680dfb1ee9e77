"""What an hour of a run costs: its tier's price, and the share of it that is for what stands beside the program; pure. A tier's price is
for what the tier requests of a node. nginx and the executor request more of the same node, so they cost the same part of that price as
they request of it, by CPU or memory, whichever is the larger part: that is what decides how many runs fit on a node. A tier with GPUs is
priced for those, of which nothing beside takes any, so there it adds nothing."""

from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Protocol

from grid.core.quantity import millicores, whole

_PLENTIFUL = frozenset({"cpu", "memory", "pods", "ephemeral-storage"})
_PLACES = Decimal("0.0001")  # as prices are stored


class CpuAndMemory(Protocol):
    """Something that requests CPU and memory, as Kubernetes writes quantities."""

    @property
    def cores(self) -> str: ...
    @property
    def memory(self) -> str: ...


def part_beside(requests: Mapping[str, int], sidecars: Mapping[str, int]) -> Decimal:
    """Return what stands beside a program as a part of what its tier requests, by `cpu` or `memory`, in any unit that both have; 0 for a
    tier that requests anything else of a node that has few of it."""
    if requests.keys() - _PLENTIFUL:
        return Decimal(0)
    parts = [Decimal(sidecars.get(name, 0)) / asked for name in ("cpu", "memory") if (asked := requests.get(name, 0))]
    return max(parts, default=Decimal(0))


def price_beside(price: Decimal, of: CpuAndMemory, sidecars: Iterable[CpuAndMemory], *, gpus: int = 0) -> Decimal:
    """Return what the requests of `sidecars` beside those `of` a tier with so many GPUs add to the tier's price of an hour."""
    if gpus:
        return Decimal(0)
    total: Counter[str] = Counter()
    for sidecar in sidecars:
        total.update(_amounts(sidecar))
    return (price * part_beside(_amounts(of), total)).quantize(_PLACES, ROUND_HALF_UP)


def _amounts(asked: CpuAndMemory) -> dict[str, int]:
    return {"cpu": millicores(asked.cores), "memory": whole(asked.memory)}
