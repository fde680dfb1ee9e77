"""Finds hardware tiers that people cannot tell apart, and those that another one beats in size and price; pure."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from grid.diagnosis.nodeshapes import Room

ALIKE_PERCENT = 10  # sizes closer than this in cores and memory are one choice to a person


@dataclass(frozen=True, slots=True)
class ComparedTier:
    """A tier as it is compared. `audience` is all that has to be equal for two tiers to be alternatives to each other: the pool, who may
    use them for what, and what their pods tolerate and carry."""

    id: str
    name: str
    size: Room
    price: Decimal
    audience: Hashable


@dataclass(frozen=True, slots=True)
class Overlap:
    """`beaten`: the other tier gives at least as much for at most the same price. `alike`: nearly the same size."""

    kind: Literal["beaten", "alike"]
    other: ComparedTier


def overlap(tier: ComparedTier, others: Iterable[ComparedTier]) -> Overlap | None:
    """Return the tier that makes this one needless, or else one of nearly the same size."""
    rivals = [rival for rival in others if rival.id != tier.id and rival.audience == tier.audience]
    better = [rival for rival in rivals if _beats(rival, tier)]
    if better:
        return Overlap("beaten", min(better, key=lambda rival: (rival.price, rival.name)))
    near = [rival for rival in rivals if _alike(rival, tier) and not _beats(tier, rival)]
    return Overlap("alike", min(near, key=lambda rival: rival.name)) if near else None


def _amounts(tier: ComparedTier, other: ComparedTier) -> list[tuple[int, int]]:
    """Return what both have of each resource that either has."""
    return [(tier.size.get(name, 0), other.size.get(name, 0)) for name in tier.size.keys() | other.size.keys()]


def _beats(tier: ComparedTier, other: ComparedTier) -> bool:
    """Return whether a tier is at least as large in everything and costs no more, and is better in something."""
    pairs = _amounts(tier, other)
    no_worse = all(has >= asked for has, asked in pairs) and tier.price <= other.price
    return no_worse and (tier.price < other.price or any(has > asked for has, asked in pairs))


def _alike(tier: ComparedTier, other: ComparedTier) -> bool:
    return all(abs(has - asked) * 100 <= ALIKE_PERCENT * max(has, asked) for has, asked in _amounts(tier, other))
