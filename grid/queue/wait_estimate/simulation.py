"""Plays the queue forward: who starts when, if everything that holds slots ends when it is expected to; pure. It keeps the rules of
`grid.queue.quota.admit`, but looks at each end only at those that wait for what became free: the first of the user's lines, and the first
before each tier. So its cost grows with what ends and starts, not with its square."""

import heapq
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import inf

from grid.queue.quota import NEVER, Precedence, QueuedUnit, QuotaSnapshot, lines, precedences

_Key = tuple[Precedence, tuple[int, float], datetime, str]


@dataclass(frozen=True, slots=True)
class Holder:
    """What one execution gives back when it ends."""

    user: int
    tiers: tuple[str, ...]
    slots: int


class Taken:
    """What is taken at the beginning of each run: the slots of each user, and what is left of the places on each tier with a maximum."""

    def __init__(self, snapshot: QuotaSnapshot, holders: Iterable[Holder]) -> None:
        self.slots: Counter[int] = Counter()
        self.places = dict(snapshot.tier_maximum)
        for holder in holders:
            self.slots[holder.user] += holder.slots
            for tier in self.places.keys() & holder.tiers:
                self.places[tier] -= holder.tiers.count(tier)


class Simulation:
    """One run. `ends` say after how many seconds which holder gives back what it has `taken`; others never do. `starts` returns
    the seconds until each unit starts; a unit that never does is not in it."""

    def __init__(
        self,
        snapshot: QuotaSnapshot,
        taken: Taken,
        ends: Iterable[tuple[float, Holder]],
        holds: Callable[[QueuedUnit], float],
    ) -> None:
        waiting = [unit for unit in snapshot.waiting if unit.closed is None]
        self._snapshot = snapshot
        self._holds = holds
        self._before = precedences(waiting)
        self._served: dict[tuple[int, str], float] = {}
        self._slots, self._places = taken.slots.copy(), dict(taken.places)
        self._ends = [(seconds, place, holder) for place, (seconds, holder) in enumerate(ends)]
        heapq.heapify(self._ends)
        self._number = len(self._ends)
        self._lines = {user: _lines_of(line, self._places, snapshot) for user, line in lines(waiting).items()}
        self._left = sum(len(line) for lines in self._lines.values() for line in lines.values())
        self._before_tier: dict[str, list[tuple[_Key, int, tuple[str, ...]]]] = {tier: [] for tier in self._places}
        self._standing: set[tuple[int, tuple[str, ...]]] = set()
        self._now = 0.0
        self._starts: dict[str, float] = {}

    def starts(self) -> Mapping[str, float]:
        for user in self._lines:
            self._stand_in_line(user)
        self._serve(self._places)
        while self._ends and self._left:
            self._now, _, ended = heapq.heappop(self._ends)
            self._slots[ended.user] -= ended.slots
            self._take_places(ended.tiers, -1)
            if ended.user in self._lines:
                self._stand_in_line(ended.user)
            # Whoever got slots may stand before another tier, with places that nobody could take.
            self._serve(self._places if ended.user in self._lines else ended.tiers)
        return self._starts

    def _take_places(self, tiers: Sequence[str], count: int) -> None:
        for tier in tiers:
            if tier in self._places:
                self._places[tier] -= count

    def _heads(self, user: int) -> list[tuple[int, QueuedUnit, tuple[str, ...]]]:
        """Return the first of each of the user's lines for which the user has slots, in order."""
        free = self._snapshot.slots_per_user - self._slots[user]
        if free <= 0:
            return []
        heads = sorted((line[0][0], line[0][1], tiers) for tiers, line in self._lines[user].items() if line)
        for place, (_, unit, _) in enumerate(heads):
            if unit.slots > free:
                return heads[:place]
        return heads

    def _stand_in_line(self, user: int) -> None:
        """Start what waits for no tier, and have the first of each other line stand before a tier."""
        again = True
        while again:
            again = False
            for _, unit, tiers in self._heads(user):
                if not tiers:
                    self._start(user, unit, tiers)
                    again = True
                    break
                if (user, tiers) not in self._standing:
                    self._standing.add((user, tiers))
                    tier = self._short(tiers) or tiers[0]
                    heapq.heappush(self._before_tier[tier], (self._key(unit), user, tiers))

    def _serve(self, tiers: Sequence[str] | Mapping[str, int]) -> None:
        """Start what may start; a start may bring the next of its user before a tier that was served already."""
        left = -1
        while left != self._left:
            left = self._left
            self._serve_once(tiers)

    def _serve_once(self, tiers: Sequence[str] | Mapping[str, int]) -> None:
        for tier in tiers:
            line = self._before_tier.get(tier)
            while line and self._places[tier] > 0:
                key, user, wanted = heapq.heappop(line)
                unit = next((unit for _, unit, tiers in self._heads(user) if tiers == wanted), None)
                if unit is None:  # it needs slots first
                    self._standing.discard((user, wanted))
                elif (present := self._key(unit)) > key:
                    heapq.heappush(line, (present, user, wanted))
                elif (short := self._short(wanted)) == tier:
                    heapq.heappush(line, (key, user, wanted))  # what is free is kept for it
                    break
                elif short:
                    heapq.heappush(self._before_tier[short], (key, user, wanted))
                else:
                    self._standing.discard((user, wanted))
                    self._start(user, unit, wanted)
                    self._stand_in_line(user)

    def _short(self, tiers: tuple[str, ...]) -> str:
        return next((tier for tier in tiers if self._places[tier] < tiers.count(tier)), "")

    def _start(self, user: int, unit: QueuedUnit, tiers: tuple[str, ...]) -> None:
        self._lines[user][tiers].popleft()
        self._left -= 1
        self._starts[unit.execution_id] = self._now
        self._slots[user] += unit.slots
        self._take_places(unit.tiers, 1)
        self._served.update({(user, tier): self._now for tier in unit.tiers})
        seconds = self._now + self._holds(unit)
        if seconds < inf:
            self._number += 1
            heapq.heappush(self._ends, (seconds, self._number, Holder(user, unit.tiers, unit.slots)))

    def _key(self, unit: QueuedUnit) -> _Key:
        served, last = self._served, self._snapshot.last_served
        keys = [(unit.user, tier) for tier in unit.tiers if tier in self._places] or [(unit.user, unit.tiers[0])]
        turn = max(
            (1, served[key]) if key in served else (0, (last.get(key, NEVER) - NEVER).total_seconds()) for key in keys
        )
        return self._before[unit.execution_id], turn, unit.requested_at, unit.execution_id


def _lines_of(
    line: Sequence[QueuedUnit], places: Mapping[str, int], snapshot: QuotaSnapshot
) -> dict[tuple[str, ...], deque[tuple[int, QueuedUnit]]]:
    """Return a user's line by the tiers with a maximum that each unit waits for, without what can never start."""
    lines: dict[tuple[str, ...], deque[tuple[int, QueuedUnit]]] = {}
    for place, unit in enumerate(line):
        tiers = tuple(sorted(tier for tier in unit.tiers if tier in places))
        fits = all(tiers.count(tier) <= snapshot.tier_maximum[tier] for tier in tiers)
        if fits and unit.slots <= snapshot.slots_per_user:
            lines.setdefault(tiers, deque()).append((place, unit))
    return lines
