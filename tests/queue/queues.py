"""Queues for tests: units and pairs that wait, any queue at all, and what is held when some of it was admitted."""

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta

from hypothesis import strategies as st

from grid.queue import gate
from grid.queue.quota import Holding, Part, QueuedUnit, QuotaSnapshot
from tests.support.shop import NOW

TIERS = ("small", "large", "gpu")


def waiting(id: str, user: int = 1, tier: str = "small", *, slots: int = 1, after: float = 0) -> QueuedUnit:
    return unit_of(user, Part(id, "workspace", (tier,), slots), after=after)


def unit_of(user: int, *parts: Part, after: float = 0) -> QueuedUnit:
    return QueuedUnit(user, NOW + timedelta(seconds=after), parts)


def pair(
    id: str, user: int = 1, *, tier: str = "small", cluster_tiers: tuple[str, ...] = ("large",), slots: int = 4
) -> QueuedUnit:
    return unit_of(user, Part(id, "workspace", (tier,)), Part(f"{id}-cluster", "cluster", cluster_tiers, slots))


USERS = st.integers(1, 4)
ONE_TIER = st.sampled_from(TIERS).map(lambda tier: (tier,))
CLUSTER_TIERS = st.lists(st.sampled_from(TIERS), min_size=1, max_size=2, unique=True).map(tuple)


@st.composite
def units(draw: st.DrawFn, most_slots: int) -> QueuedUnit:
    """A workspace, a cluster, or both."""
    id, user, after = draw(st.uuids()).hex, draw(USERS), draw(st.integers(0, 20))
    workspace = Part(id, "workspace", draw(ONE_TIER), draw(st.integers(1, most_slots)))
    cluster = Part(f"{id}-c", "cluster", draw(CLUSTER_TIERS), draw(st.integers(1, most_slots)))
    parts = draw(st.sampled_from([(workspace,), (cluster,), (workspace, cluster)]))
    return unit_of(user, *parts, after=after)


@st.composite
def snapshots(draw: st.DrawFn, most_slots: int = 4) -> QuotaSnapshot:
    held = draw(st.lists(st.tuples(USERS, st.sampled_from(TIERS), st.integers(0, 3)), max_size=6))
    served = draw(st.dictionaries(st.tuples(USERS, st.sampled_from(TIERS)), st.integers(0, 9), max_size=8))
    return QuotaSnapshot(
        waiting=tuple(draw(st.lists(units(most_slots), max_size=25))),
        holding=tuple(Holding(user, tier, 1, slots) for user, tier, slots in held),
        slots_per_user=draw(st.integers(0, 8)),
        tier_maximum=draw(st.dictionaries(st.sampled_from(TIERS), st.integers(1, 4), max_size=3)),
        last_served={key: NOW - timedelta(hours=hours) for key, hours in served.items()},
    )


@st.composite
def moved_snapshots(draw: st.DrawFn) -> QuotaSnapshot:
    """Any queue of which an operator has moved or held some units."""
    snapshot = draw(snapshots())

    def moved(unit: QueuedUnit) -> QueuedUnit:
        how = draw(st.sampled_from(["", "", "front", "back", "hold"]))
        if how == "front":
            return replace(unit, rank=draw(st.integers(1, 5)))
        if how == "back":
            return replace(unit, back_at=unit.requested_at + timedelta(seconds=draw(st.integers(0, 9))))
        return replace(unit, closed=gate.held("mara", "")) if how == "hold" else unit

    return replace(snapshot, waiting=tuple(map(moved, snapshot.waiting)))


@dataclass
class Held:
    """What is held when some of those who waited were admitted, counted again from the beginning."""

    snapshot: QuotaSnapshot
    slots: Counter[int] = field(default_factory=Counter)
    places: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        for held in self.snapshot.holding:
            self.slots[held.user] += held.slots
            self.places[held.tier] += held.executions

    def take(self, unit: QueuedUnit) -> None:
        for part in unit.parts:
            self.slots[unit.user] += part.slots
            self.places.update(part.tiers)

    def has_slots_for(self, unit: QueuedUnit) -> bool:
        return self.slots[unit.user] + unit.slots <= self.snapshot.slots_per_user

    def full_for(self, unit: QueuedUnit) -> set[str]:
        maxima = self.snapshot.tier_maximum
        wanted = Counter(unit.tiers)
        return {tier for tier in wanted if self.places[tier] + wanted[tier] > maxima.get(tier, 10**9)}
