"""The order of the queue: first in first out for each user, and the users in turn.

Turns follow from when each user was last served on a tier, which the database knows. So the order survives restarts, and a user who
requests a thousand things at once delays everybody else by one at a time only.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

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


def lines(waiting: Iterable[QueuedUnit]) -> dict[int, list[QueuedUnit]]:
    """Return each user's units in the order of request; equal times are ordered by id, so that all processes agree."""
    found: dict[int, list[QueuedUnit]] = {}
    for one in sorted(waiting, key=lambda one: (one.requested_at, one.execution_id)):
        found.setdefault(one.user, []).append(one)
    return found


def turns(
    waiting: Iterable[QueuedUnit], tier: str, last_served: Mapping[tuple[int, str], datetime]
) -> Sequence[QueuedUnit]:
    """Return the line before one tier: every user's first unit, then every user's second ...; the user served longest ago goes first."""
    rounds = [(round_, one) for line in lines(waiting).values() for round_, one in enumerate(line)]

    def place(entry: tuple[int, QueuedUnit]) -> tuple[int, datetime, datetime, str]:
        round_, one = entry
        return round_, last_served.get((one.user, tier), NEVER), one.requested_at, one.execution_id

    return [one for _, one in sorted(rounds, key=place)]
