"""Warm-up hours of tiers and of rush plans: which placeholders are wanted now. Pure.

Hours follow the clock on the wall of their time zone, in summer and in winter: a time that is skipped begins or ends with the next that
exists, and one that comes twice counts the first time.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from grid.core.translation import gettext as _
from grid.executions.spec import TierSpec

DAY_NAMES = {
    "mon": _("Mon"), "tue": _("Tue"), "wed": _("Wed"), "thu": _("Thu"), "fri": _("Fri"), "sat": _("Sat"), "sun": _("Sun"),
}  # fmt: skip
DAYS = tuple(DAY_NAMES)
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class WarmHours:
    """Hours that begin on some days of the week, or on one day alone (`on`). When `ends` is not later than `begins`, they end on the next
    day. They begin `early`, by at most a day, as nodes and images take to be ready."""

    days: frozenset[str]
    begins: time
    ends: time
    zone: ZoneInfo
    on: date | None = None
    early: timedelta = timedelta()

    def until(self, now: datetime) -> datetime | None:
        """Return when the hours end that it is now; None outside of them."""
        today = now.astimezone(self.zone).date()
        near = (self._on(day) for day in (today - _DAY, today, today + _DAY))
        return max((end for begin, end in near if begin <= now < end), default=None)

    def next_run(self, now: datetime) -> tuple[datetime, datetime] | None:
        """Return when the hours begin and end that it is now, or the next ones; None when there are none any more."""
        today = now.astimezone(self.zone).date()
        days = (today + number * _DAY for number in range(-1, 9)) if self.on is None else (self.on,)
        return min(((begin, end) for begin, end in map(self._on, days) if begin < end and end > now), default=None)

    def days_in_words(self) -> str:
        """Return the days of the week, such as "Mon, Thu"."""
        if len(self.days) == len(DAYS):
            return _("daily")
        return ", ".join(name for day, name in DAY_NAMES.items() if day in self.days)

    def until_words(self, now: datetime) -> str:
        """Return when the hours end that it is now, such as "18:00 (Europe/Berlin)"; "" outside of them."""
        until = self.until(now)
        return f"{until.astimezone(self.zone):%H:%M} ({self.zone.key})" if until is not None else ""

    def _on(self, day: date) -> tuple[datetime, datetime]:
        """Return the hours that begin on the day; none at all, if it is no day of theirs."""
        begin = _moment(day, self.begins, self.zone) - self.early
        if day != self.on and DAYS[day.weekday()] not in self.days:
            return begin, begin
        return begin, _moment(day if self.ends > self.begins else day + _DAY, self.ends, self.zone)


@dataclass(frozen=True, slots=True)
class WarmTier:
    """A tier with its placeholders in its hours, or in those of the rush plan with the id `plan`. Those of a plan also pull an `image`,
    with the Secret `pull_secret`, and keep room for `sidecar_requests`, with CPU in thousandths of a core."""

    tier: TierSpec
    places: int
    hours: WarmHours
    plan: str = ""
    image: str = ""
    pull_secret: str = ""
    sidecar_requests: Mapping[str, int] = field(default_factory=dict)


class WantedPlaceholder(NamedTuple):
    """One of a tier's or of a plan's placeholders, numbered from 1."""

    warm: WarmTier
    number: int
    until: datetime


def wanted(tiers: Iterable[WarmTier], most: int, now: datetime) -> list[WantedPlaceholder]:
    """Return the placeholders wanted now, at most so many in all: the first of each tier and plan before any second."""
    placeholders = [
        WantedPlaceholder(warm, number, until)
        for warm in tiers
        if (until := warm.hours.until(now)) is not None
        for number in range(1, min(warm.places, most) + 1)
    ]
    placeholders.sort(key=lambda wanted: (wanted.number, wanted.warm.tier.id, wanted.warm.plan))
    return placeholders[: max(0, most)]


def _moment(day: date, at: time, zone: ZoneInfo) -> datetime:
    # A time that is skipped is read by the clock before the change: as much later as the clock goes forward.
    return datetime.combine(day, at, zone).astimezone(UTC)
