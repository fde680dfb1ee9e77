"""The order of the queue: first in first out for each user, and the users in turn; what an operator has moved goes before or behind.

Turns follow from when each user was last served on a tier, which the database knows. So the order survives restarts, and a user who
requests a thousand things at once delays everybody else by one at a time only.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from grid.core.reasons import Reason

NEVER = datetime.min.replace(tzinfo=UTC)


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


Precedence = tuple[int, int]
_FRONT, _BY_TURN, _BACK = range(3)


def precedences(waiting: Iterable[QueuedUnit]) -> dict[str, Precedence]:
    """Return by id what goes before the turns; smaller goes first.

    A unit that was moved to the back stays there only while one waits for the same tier that was requested before the move, so that newer
    requests never pass it for ever.
    """
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
    """Return each user's units in the order of request, but for what was moved; equal times are ordered by id, so that all processes
    agree."""
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
    served longest ago goes first."""
    waiting = list(waiting)
    before = precedences(waiting)
    rounds = [(round_, unit) for line in lines(waiting).values() for round_, unit in enumerate(line)]

    def place(entry: tuple[int, QueuedUnit]) -> tuple[Precedence, int, datetime, datetime, str]:
        round_, unit = entry
        served = last_served.get((unit.user, tier), NEVER)
        return before[unit.execution_id], round_, served, unit.requested_at, unit.execution_id

    return [unit for _, unit in sorted(rounds, key=place)]
