"""Decides which queued executions get slots now, on a snapshot and without any I/O.

Promises: nobody holds more slots than the limit because of a decision made here; no tier runs more executions than its maximum; each user
is served first in first out, except that a unit that waits only for a full tier lets the user's launches that do without that tier pass;
users are served in turn; whatever may start does start, unless it is the turn of another user who needs several places of a tier; a
workspace or job and its cluster start together or not at all; what an operator has moved goes first or last; what the gate is closed to
(`grid.queue.gate`) never starts and lets all others pass; every refusal says why and what happens next.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import inf
from typing import Any, Literal

from grid.core.reasons import Reader, Reason, Value, sentence_of

NEVER = datetime.min.replace(tzinfo=UTC)
Precedence = tuple[int, int]
_FRONT, _BY_TURN, _BACK = range(3)
Refusal = Literal["over_user_slots", "over_tier_maximum", "larger_than_limit"]


@dataclass(frozen=True, slots=True)
class Part:
    """One execution of a unit: it takes `slots`, and one of the places of each tier that it runs on."""

    execution_id: str
    kind: str
    tiers: tuple[str, ...]
    slots: int = 1


def tier_pair(head_tier: str | None, tier: str) -> tuple[str, ...]:
    """Return the tiers of an execution, with its head's first, as the head starts first, if that is another."""
    return (head_tier, tier) if head_tier and head_tier != tier else (tier,)


@dataclass(frozen=True, slots=True)
class QueuedUnit:
    """An entry in the queue that starts as a whole: one execution, or a workspace or job and then its cluster."""

    user: int
    requested_at: datetime
    parts: tuple[Part, ...]
    rank: int | None = None  # in front of all that have none; a smaller one is earlier
    back_at: datetime | None = None  # when an operator moved it behind all that waited
    closed: Reason | None = None  # why it cannot start whatever is free, and so lets all others pass

    @property
    def execution_id(self) -> str:
        """The id of its first part, which is its name in the queue."""
        return self.parts[0].execution_id

    @property
    def slots(self) -> int:
        """The slots that it holds once it is admitted."""
        return sum(part.slots for part in self.parts)

    @property
    def tiers(self) -> tuple[str, ...]:
        """The tiers of its parts, once for each place that it takes."""
        return tuple(tier for part in self.parts for tier in part.tiers)


def precedences(waiting: Iterable[QueuedUnit]) -> dict[str, Precedence]:
    """Return by id what goes before the turns; smaller goes first. A unit that was moved to the back stays there only while one waits for
    the same tier that was requested before the move, so that newer requests never pass it for ever."""
    waiting = list(waiting)
    oldest: dict[str, datetime] = {}
    for unit in waiting:
        if unit.rank is None and unit.back_at is None:
            for tier in unit.tiers:
                oldest[tier] = min(unit.requested_at, oldest.get(tier, unit.requested_at))

    def precedence(unit: QueuedUnit) -> Precedence:
        if unit.rank is not None:
            return _FRONT, unit.rank
        back_at = unit.back_at
        is_back = back_at is not None and any(tier in oldest and oldest[tier] <= back_at for tier in unit.tiers)
        return (_BACK if is_back else _BY_TURN), 0

    return {unit.execution_id: precedence(unit) for unit in waiting}


def lines(waiting: Iterable[QueuedUnit]) -> dict[int, list[QueuedUnit]]:
    """Return each user's units in the order of request, but for what was moved; of equal times by id, so that all processes agree."""
    waiting = list(waiting)
    before = precedences(waiting)
    by_user: dict[int, list[QueuedUnit]] = {}
    for unit in sorted(waiting, key=lambda unit: (before[unit.execution_id], unit.requested_at, unit.execution_id)):
        by_user.setdefault(unit.user, []).append(unit)
    return by_user


def turns(
    waiting: Iterable[QueuedUnit], tier: str, last_served: Mapping[tuple[int, str], datetime]
) -> Sequence[QueuedUnit]:
    """Return the line before one tier: what was moved to the front, then every user's first unit, then every user's second ...; the user
    served longest ago goes first, which the database knows, so that the order survives restarts."""
    waiting = list(waiting)
    before = precedences(waiting)
    rounds = [(round_, unit) for line in lines(waiting).values() for round_, unit in enumerate(line)]

    def place(entry: tuple[int, QueuedUnit]) -> tuple[Precedence, int, datetime, datetime, str]:
        round_, unit = entry
        served = last_served.get((unit.user, tier), NEVER)
        return before[unit.execution_id], round_, served, unit.requested_at, unit.execution_id

    return [unit for _, unit in sorted(rounds, key=place)]


@dataclass(frozen=True, slots=True)
class Holding:
    """Slots that one user holds on one tier, and in how many executions. A cluster counts as one on its head's tier as well, if that is
    another, and its slots count on its workers'."""

    user: int
    tier: str
    executions: int
    slots: int


@dataclass(frozen=True, slots=True)
class QuotaSnapshot:
    """All facts of a decision. `tier_maximum` has the tiers with a maximum; `last_served` says when a user last got a slot on a tier."""

    waiting: tuple[QueuedUnit, ...]
    holding: tuple[Holding, ...]
    slots_per_user: int
    tier_maximum: Mapping[str, int] = field(default_factory=dict)
    tier_names: Mapping[str, str] = field(default_factory=dict)
    last_served: Mapping[tuple[int, str], datetime] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Deferred:
    """A refusal for now: `position` counts from 1 in the user's or the tier's line, and is 0 of what the gate is closed to."""

    reason: Reason
    position: int

    @property
    def code(self) -> str:
        return self.reason.code

    @property
    def stored(self) -> list[Any]:
        """Its code, values and text, as `words_of` reads them."""
        return [self.code, dict(self.reason.values), ""]

    def words(self, reader: Reader) -> str:
        return sentence_of(self.reason, reader)


@dataclass(frozen=True, slots=True)
class Decisions:
    """The result; `admitted` is in the order of admission."""

    admitted: tuple[str, ...]
    refused: Mapping[str, Deferred]


def admit(snapshot: QuotaSnapshot) -> Decisions:
    """Admit units in turn as long as there is room for them."""
    room, standing = _Room(snapshot), [unit for unit in snapshot.waiting if unit.closed is None]
    own_lines = {user: _Line(room, line) for user, line in lines(standing).items()}
    before = precedences(standing)
    heap: list[tuple[Precedence, tuple[int, float], datetime, str, int]] = []
    served: dict[tuple[int, str], int] = {}
    admitted: list[str] = []

    def stand_in_line(user: int) -> None:
        unit = own_lines[user].next_hopeful()
        if unit is not None:
            turn = _turn(unit, snapshot, served)
            heapq.heappush(heap, (before[unit.execution_id], turn, unit.requested_at, unit.execution_id, user))

    for user in own_lines:
        stand_in_line(user)
    while heap:
        *_unused, wanted, user = heapq.heappop(heap)
        unit = own_lines[user].next_hopeful()
        if unit is not None and unit.execution_id == wanted and own_lines[user].serve(unit):
            served.update({(user, tier): len(admitted) for tier in unit.tiers})
            admitted.append(wanted)
        stand_in_line(user)
    refused = {id: cause for line in own_lines.values() for id, cause in line.refused.items()}
    return Decisions(tuple(admitted), _explain(snapshot, room, refused))


def order(snapshot: QuotaSnapshot) -> tuple[str, ...]:
    """Return the ids of the units that the gate is open to, in the order in which they would start if there were room for all of them."""
    waiting = tuple(unit for unit in snapshot.waiting if unit.closed is None)
    tiers = [tier for unit in waiting for tier in unit.tiers]
    slots, maxima = sum(unit.slots for unit in waiting) or 1, dict.fromkeys(snapshot.tier_maximum, len(tiers))
    boundless = replace(snapshot, waiting=waiting, holding=(), slots_per_user=slots, tier_maximum=maxima)
    return admit(boundless).admitted


def _turn(unit: QueuedUnit, snapshot: QuotaSnapshot, served: Mapping[tuple[int, str], int]) -> tuple[int, float]:
    """Return the key of the unit's turn: users served recently go last. Only tiers that can become full count."""
    tiers = [tier for tier in unit.tiers if tier in snapshot.tier_maximum] or unit.tiers

    def turn(tier: str) -> tuple[int, float]:
        # A user served in this round goes behind everybody served in an earlier one.
        key = (unit.user, tier)
        if key in served:
            return (1, float(served[key]))
        return (0, (snapshot.last_served.get(key, NEVER) - NEVER).total_seconds())

    return max(turn(tier) for tier in tiers)


@dataclass(frozen=True, slots=True)
class _Cause:
    """Why a unit waits, and for which tier, if for one."""

    code: Refusal
    tier: str = ""


class _Room:
    """What is held, which may exceed a lowered limit, and what is left while one call of `admit` tries admissions."""

    def __init__(self, snapshot: QuotaSnapshot) -> None:
        self.most = snapshot.slots_per_user
        self.slots: Counter[int] = Counter()
        self.places: Counter[str] = Counter()
        for held in snapshot.holding:
            self.slots[held.user] += held.slots
            self.places[held.tier] += held.executions
        self._maxima = snapshot.tier_maximum
        # Tiers whose remaining capacity is for the unit at the head; otherwise smaller ones would take it again and again.
        self.kept: set[str] = set()

    def full_tier(self, unit: QueuedUnit) -> str:
        """Return the first of its tiers without any place; "" when each has one."""
        tiers = (tier for tier in unit.tiers if tier in self.kept or self.places[tier] >= self._maxima.get(tier, inf))
        return next(tiers, "")

    def short_tier(self, unit: QueuedUnit, *, if_empty: bool = False) -> str:
        """Return the first of its tiers without enough places, or that had too few `if_empty`; "" when all have enough."""
        for tier, wanted in Counter(unit.tiers).items():
            if wanted + (0 if if_empty else self.places[tier]) > self._maxima.get(tier, inf):
                return tier
        return ""


class _Line:
    """One user's line. Capacity only shrinks during a call, so a unit that was refused stays refused."""

    def __init__(self, room: _Room, line: list[QueuedUnit]) -> None:
        self.refused: dict[str, _Cause] = {}
        self._room = room
        self._line = line
        self._place = 0

    def next_hopeful(self) -> QueuedUnit | None:
        """Return the next unit that may start, or that reserves capacity when its turn comes; None at the end of the line."""
        while self._place < len(self._line):
            unit = self._line[self._place]
            never = self._room.short_tier(unit, if_empty=True)
            if unit.slots > self._room.most > 0:
                self.refused[unit.execution_id] = _Cause("larger_than_limit")
            elif never:
                self.refused[unit.execution_id] = _Cause("over_tier_maximum", never)
            elif self._room.slots[unit.user] + unit.slots > self._room.most:
                # With it the rest of the line, even units that are small enough: if they passed, a large one could wait for ever.
                self.refused |= {unit.execution_id: _Cause("over_user_slots") for unit in self._line[self._place :]}
                self._place = len(self._line)
                return None
            elif full := self._room.full_tier(unit):
                self.refused[unit.execution_id] = _Cause("over_tier_maximum", full)
            else:
                return unit
            self._place += 1
        return None

    def serve(self, unit: QueuedUnit) -> bool:
        """Admit the unit, or refuse it with capacity reserved for it; return True when it was admitted."""
        self._place += 1
        short = self._room.short_tier(unit)
        if short:
            self._room.kept.add(short)
            self.refused[unit.execution_id] = _Cause("over_tier_maximum", short)
        else:
            self._room.slots[unit.user] += unit.slots
            self._room.places.update(unit.tiers)
        return not short


def _explain(snapshot: QuotaSnapshot, room: _Room, refused: Mapping[str, _Cause]) -> dict[str, Deferred]:
    explained = {unit.execution_id: Deferred(unit.closed, 0) for unit in snapshot.waiting if unit.closed is not None}
    left = [unit for unit in snapshot.waiting if unit.execution_id in refused]
    in_line: list[Iterable[QueuedUnit]] = [*lines(left).values()]
    for tier in {cause.tier for cause in refused.values() if cause.tier}:
        before_tier = [unit for unit in left if refused[unit.execution_id].tier == tier]
        in_line.append(turns(before_tier, tier, snapshot.last_served))
    for line in in_line:
        for place, unit in enumerate(line, start=1):
            explained[unit.execution_id] = _refused(snapshot, room, unit, refused[unit.execution_id], place)
    return explained


def _refused(snapshot: QuotaSnapshot, room: _Room, unit: QueuedUnit, cause: _Cause, position: int) -> Deferred:
    most = snapshot.slots_per_user
    parts = [[part.kind, part.slots] for part in unit.parts]
    values: dict[str, Value] = {"held": room.slots[unit.user], "most": most, "slots": unit.slots, "parts": parts}
    if cause.code == "larger_than_limit":
        values = {"slots": unit.slots, "parts": parts, "most": most}
    elif cause.code == "over_tier_maximum":
        values = {
            "tier": snapshot.tier_names.get(cause.tier, cause.tier),
            "held": room.places[cause.tier],
            "maximum": snapshot.tier_maximum[cause.tier],
            "parts": [part.kind for part in unit.parts for tier in part.tiers if tier == cause.tier],
            "position": position,
        }
    else:
        values = {**values, "position": position} if most else {"most": 0}
    return Deferred(Reason(cause.code, values), position)
