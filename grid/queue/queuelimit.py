"""Counts who would wait behind the limit of the queue, without I/O: those whom `grid.queue.quota.admit` would refuse, without a look
at each of a thousand.

For most users numbers of alike executions tell how many of their line are admitted: none, all, or as many of one size as fit. What the gate
is closed to stays, and stands in nobody's way. The others are decided one by one: those who stand before a tier with too few places,
those whose line has several sizes or pairs, and those of whom an operator has moved or held something.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from grid.queue.queue import NEVER, QueuedUnit
from grid.queue.quota import QuotaSnapshot, admit


@dataclass(frozen=True, slots=True)
class Batch:
    """So many executions of one user that are alike. `waiting` have a unit of their own, the last of them requested at `latest`; `attached`
    wait for a workspace or job; `holding` hold slots. `is_closed` says that the gate is closed to those that wait."""

    user: int
    tiers: tuple[str, ...]
    slots: int
    waiting: int = 0
    attached: int = 0
    holding: int = 0
    latest: datetime = NEVER
    is_closed: bool = False


def others_left(
    launch: QueuedUnit,
    batches: Sequence[Batch],
    *,
    slots_per_user: int,
    tier_maximum: Mapping[str, int],
    moved: Collection[int] = (),
    behind: Collection[str] = (),
    one_by_one: Callable[[Collection[int]], QuotaSnapshot],
) -> int | None:
    """Return how many units the next admission leaves waiting beside `launch`, which stands in line with them; None when it admits it.

    `batches` are without `launch`. `moved` are the users in whose line it is not only the time that counts, and none of whose batches is
    called closed. `behind` are the tiers of what was moved to the back: whether it still stands there depends on all who wait for one of
    them. `one_by_one` returns the snapshot of these users alone, with `launch` if it is of one of them.
    """
    places = _free_places(batches, tier_maximum)
    standing = [replace(batch, waiting=0, attached=0) if batch.is_closed else batch for batch in batches]
    if launch.closed is None:
        standing += _batches_of(launch)
    lines = _hopeful_lines(standing, slots_per_user, places)
    wanted: Counter[str] = Counter()
    for line in lines.values():
        wanted.update(line.wanted)
    contested = {tier for tier, free in places.items() if wanted[tier] > free}
    unclear = {
        user for user, line in lines.items() if user in moved or line.admitted is None or contested & line.wanted.keys()
    }
    unclear |= {
        batch.user for batch in standing if batch.waiting + batch.attached and not {*behind}.isdisjoint(batch.tiers)
    }
    own = lines.get(launch.user) if launch.closed is None else None
    if own is not None and launch.user not in unclear and own.may_start(launch):
        if own.admits_all:
            return None
        if not own.ends_with(launch):
            unclear.add(launch.user)
    # Of the unclear ones the snapshot alone counts: it may be a moment later than the numbers.
    left = sum(batch.waiting for batch in batches if batch.user not in unclear)
    left -= sum(line.admitted or 0 for user, line in lines.items() if user not in unclear)
    if unclear:
        decisions = admit(one_by_one(unclear))
        if launch.execution_id in decisions.admitted:
            return None
        left += len(decisions.refused.keys() - {launch.execution_id})
    return left


def _batches_of(launch: QueuedUnit) -> list[Batch]:
    first, *clusters = launch.parts
    return [
        Batch(launch.user, first.tiers, first.slots, waiting=1, latest=launch.requested_at),
        *(Batch(launch.user, part.tiers, part.slots, attached=1) for part in clusters),
    ]


def _free_places(batches: Sequence[Batch], tier_maximum: Mapping[str, int]) -> dict[str, int]:
    held: Counter[str] = Counter()
    for batch in batches:
        held.update(dict.fromkeys(batch.tiers, batch.holding))
    return {tier: most - held[tier] for tier, most in tier_maximum.items()}


def _hopeful_lines(batches: Sequence[Batch], most: int, places: Mapping[str, int]) -> dict[int, "_Line"]:
    """Return the lines by user, without those of which nothing can start: they are in nobody's way."""
    of_user: dict[int, list[Batch]] = {}
    for batch in batches:
        of_user.setdefault(batch.user, []).append(batch)
    lines = {user: _Line(own, most, places) for user, own in of_user.items()}
    return {user: line for user, line in lines.items() if line.is_hopeful}


class _Line:
    """What numbers tell of one user's line, as long as no tier becomes full that has a place now."""

    def __init__(self, batches: Sequence[Batch], most: int, places: Mapping[str, int]) -> None:
        self._batches = batches
        self._free = most - sum(batch.slots * batch.holding for batch in batches)
        # What is larger than the limit is passed by the others. What waits for a full tier may still hold them up, for slots.
        self._standing = [batch for batch in batches if batch.waiting and not batch.slots > most > 0]
        self._startable = [batch for batch in self._standing if all(places.get(tier, 1) > 0 for tier in batch.tiers)]
        self._count = sum(batch.waiting for batch in self._startable)
        self.is_hopeful = any(batch.slots <= self._free for batch in self._startable)
        self.admitted = self._admitted()
        self.wanted = self._wanted(places)

    @property
    def admits_all(self) -> bool:
        return self.admitted == self._count

    def may_start(self, launch: QueuedUnit) -> bool:
        """Return whether it is among those that start when their turn comes; `launch` is in this line and has one part."""
        return any((batch.tiers, batch.slots) == (launch.tiers, launch.slots) for batch in self._startable)

    def ends_with(self, launch: QueuedUnit) -> bool:
        """Return whether no other in this line was requested at the same time or later."""
        return sum(batch.waiting > 0 and batch.latest >= launch.requested_at for batch in self._batches) == 1

    def _wanted(self, places: Mapping[str, int]) -> Counter[str]:
        """Return at most how many places it wants on each tier that may become full."""
        wanted: Counter[str] = Counter()
        for batch, count in [
            *((batch, batch.waiting) for batch in self._startable),
            *((batch, batch.attached) for batch in self._batches if batch.attached),
        ]:
            wanted.update({tier: count for tier in batch.tiers if tier in places})
        return wanted

    def _admitted(self) -> int | None:
        """Return how many are admitted; None when that depends on their order, or on who is whose cluster."""
        if any(batch.attached for batch in self._batches):
            return None
        if sum(batch.slots * batch.waiting for batch in self._standing) <= self._free:
            return self._count
        sizes = {batch.slots for batch in self._standing}
        return min(self._count, self._free // sizes.pop()) if len(sizes) == 1 else None
