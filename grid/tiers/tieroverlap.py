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
    rivals = [one for one in others if one.id != tier.id and one.audience == tier.audience]
    better = [one for one in rivals if _beats(one, tier)]
    if better:
        return Overlap("beaten", min(better, key=lambda one: (one.price, one.name)))
    near = [one for one in rivals if _alike(one.size, tier.size) and not _beats(tier, one)]
    return Overlap("alike", min(near, key=lambda one: one.name)) if near else None


def _beats(one: ComparedTier, other: ComparedTier) -> bool:
    """Return whether one is at least as large in everything and costs no more, and is better in something."""
    names = one.size.keys() | other.size.keys()
    pairs = [(one.size.get(name, 0), other.size.get(name, 0)) for name in names]
    no_worse = all(has >= asked for has, asked in pairs) and one.price <= other.price
    return no_worse and (one.price < other.price or any(has > asked for has, asked in pairs))


def _alike(one: Room, other: Room) -> bool:
    names = one.keys() | other.keys()
    return all(_near(one.get(name, 0), other.get(name, 0)) for name in names)


def _near(one: int, other: int) -> bool:
    return abs(one - other) * 100 <= ALIKE_PERCENT * max(one, other)
