"""Warm-up hours of tiers: which placeholders are wanted now. Pure.

Hours follow the clock on the wall of their time zone, in summer and in winter: a time that is skipped begins or ends with the next that
exists, and one that comes twice counts the first time.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from grid.launch.spec import TierSpec

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class WarmHours:
    """Hours of some days of the week, named by the day on which they begin. When `ends` is not later than `begins`, they end on the
    next day."""

    days: frozenset[str]
    begins: time
    ends: time
    zone: ZoneInfo

    def until(self, now: datetime) -> datetime | None:
        """Return when the hours end that it is now; None outside of them."""
        today = now.astimezone(self.zone).date()
        ends = [end for begin, end in (self._on(today - _DAY), self._on(today)) if begin <= now < end]
        return max(ends, default=None)

    def until_words(self, now: datetime) -> str:
        """Return when the hours end that it is now, such as "18:00 (Europe/Berlin)"; "" outside of them."""
        until = self.until(now)
        return f"{until.astimezone(self.zone):%H:%M} ({self.zone.key})" if until is not None else ""

    def _on(self, day: date) -> tuple[datetime, datetime]:
        """Return the hours that begin on the day; none at all, if it is no day of theirs."""
        begin = _moment(day, self.begins, self.zone)
        if DAYS[day.weekday()] not in self.days:
            return begin, begin
        return begin, _moment(day if self.ends > self.begins else day + _DAY, self.ends, self.zone)


@dataclass(frozen=True, slots=True)
class WarmTier:
    """A tier with the number of placeholders that it has in its hours."""

    tier: TierSpec
    places: int
    hours: WarmHours


@dataclass(frozen=True, slots=True)
class WantedPlaceholder:
    """One of a tier's placeholders, numbered from 1."""

    tier: TierSpec
    number: int
    until: datetime
    until_words: str


def wanted(tiers: Iterable[WarmTier], most: int, now: datetime) -> Iterator[WantedPlaceholder]:
    """Yield the placeholders wanted now, at most so many in all: each tier's first before any tier's second."""
    warm = [(one, until) for one in tiers if (until := one.hours.until(now)) is not None]
    numbered = [(number, one, until) for one, until in warm for number in range(1, one.places + 1)]
    for number, one, until in sorted(numbered, key=lambda each: (each[0], each[1].tier.id))[: max(0, most)]:
        yield WantedPlaceholder(one.tier, number, until, one.hours.until_words(now))


def _moment(day: date, at: time, zone: ZoneInfo) -> datetime:
    # A time that is skipped is read by the clock before the change: as much later as the clock goes forward.
    return datetime.combine(day, at, zone).astimezone(UTC)
