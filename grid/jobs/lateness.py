"""Why a schedule is late, in words, from how many were due at once; pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from grid.core.translation import gettext as _
from grid.core.translation import ngettext


@dataclass(frozen=True, slots=True)
class LateReason:
    """How many other schedules of the owner, and of other people, were due at once; `most_a_minute` is the limit of runs if the owner's
    schedules have reached it, else 0."""

    of_owner: int = 0
    of_others: int = 0
    most_a_minute: int = 0


def late_words(reason: LateReason, owner: str) -> str:
    """Return the reason as a sentence; "" when nothing else was due."""
    if reason.most_a_minute:
        return _(
            "Schedules of {owner} have asked for {most:,} runs within a minute, and no more may be; an admin can change that.",
            owner=owner,
            most=reason.most_a_minute,
        )
    if reason.of_owner:
        return ngettext(
            "{count:,} other schedule of {owner} was due at once.",
            "{count:,} other schedules of {owner} were due at once.",
            reason.of_owner,
            owner=owner,
        )
    if reason.of_others:
        return ngettext(
            "{count:,} schedule of other people was due at once.",
            "{count:,} schedules of other people were due at once.",
            reason.of_others,
        )
    return ""


class Lateness:
    """Remembers the most that was due at once of each person, for as long as anything of the person's is due."""

    def __init__(self) -> None:
        self._most: dict[int, int] = {}
        self._most_of_all = 0
        self._over_limit: set[int] = set()

    def noted(self, counts: Mapping[int, int], over_limit: Collection[int]) -> None:
        """Take in how many are due now by person, and who has reached the limit of runs within a minute."""
        self._most = {person: max(count, self._most.get(person, 0)) for person, count in counts.items()}
        total = sum(counts.values())
        self._most_of_all = max(total, self._most_of_all) if total else 0
        self._over_limit = (self._over_limit & counts.keys()) | set(over_limit)

    def why(self, person: int, most_a_minute: int) -> LateReason:
        own = self._most.get(person, 1)
        limit = most_a_minute if person in self._over_limit else 0
        return LateReason(own - 1, max(0, self._most_of_all - own), limit)


def seconds_late(due: Iterable[datetime], now: datetime) -> float:
    """Return for how long the oldest of these has been due; 0 without any."""
    return max(((now - moment).total_seconds() for moment in due), default=0.0)
