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
    for one in waiting:
        if one.rank is None and one.back_at is None:
            for tier in one.tiers:
                oldest[tier] = min(one.requested_at, oldest.get(tier, one.requested_at))

    def precedence(one: QueuedUnit) -> Precedence:
        if one.rank is not None:
            return _FRONT, one.rank
        back_at = one.back_at
        is_back = back_at is not None and any(tier in oldest and oldest[tier] <= back_at for tier in one.tiers)
        return (_BACK if is_back else _BY_TURN), 0

    return {one.execution_id: precedence(one) for one in waiting}


def lines(waiting: Iterable[QueuedUnit]) -> dict[int, list[QueuedUnit]]:
    """Return each user's units in the order of request, but for what was moved; equal times are ordered by id, so that all processes
    agree."""
    waiting = list(waiting)
    before = precedences(waiting)
    found: dict[int, list[QueuedUnit]] = {}
    for one in sorted(waiting, key=lambda one: (before[one.execution_id], one.requested_at, one.execution_id)):
        found.setdefault(one.user, []).append(one)
    return found


def turns(
    waiting: Iterable[QueuedUnit], tier: str, last_served: Mapping[tuple[int, str], datetime]
) -> Sequence[QueuedUnit]:
    """Return the line before one tier: what was moved to the front, then every user's first unit, then every user's second ...; the user
    served longest ago goes first."""
    waiting = list(waiting)
    before = precedences(waiting)
    rounds = [(round_, one) for line in lines(waiting).values() for round_, one in enumerate(line)]

    def place(entry: tuple[int, QueuedUnit]) -> tuple[Precedence, int, datetime, datetime, str]:
        round_, one = entry
        served = last_served.get((one.user, tier), NEVER)
        return before[one.execution_id], round_, served, one.requested_at, one.execution_id

    return [one for _, one in sorted(rounds, key=place)]
