"""Cron schedules as Kubernetes reads them, and when they are due next. Pure.

The five fields are minute, hour, day of the month, month and day of the week, with lists, ranges, steps, names and `?` for `*`; there are
also `@hourly` and its like, and `@every 1h30m`. When both days are restricted, either may match. Kubernetes' own parser is followed in
what it accepts, in its sentences of refusal, and in time zones: an hour that is skipped is not due, one that comes twice is due twice.
That is not what other programs named cron do, so no library that follows those would do.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from grid.core.regexes import Expression, RepeatedExpression

_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_DAYS = {name: number for number, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY = "@every "
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_AMOUNT = RepeatedExpression(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_WHOLE = Expression(r"\+?[0-9]+")
_YEARS_AHEAD = 5
_ZONE_PART = Expression(r"[A-Za-z.\-_0-9+]{1,14}")


class BadSchedule(ValueError):
    """The text is no schedule; the message is Kubernetes'."""


@dataclass(frozen=True, slots=True)
class FixedDelay:
    """A schedule that is due every so many seconds, counted from the last time."""

    seconds: int

    def next(self, after: datetime, zone: tzinfo = UTC) -> datetime:
        return after.astimezone(UTC).replace(microsecond=0) + timedelta(seconds=self.seconds)


@dataclass(frozen=True, slots=True)
class CronFields:
    """A schedule of five fields. `either_day` is true when both days are restricted, so that one of them is enough."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool

    def next(self, after: datetime, zone: tzinfo = UTC) -> datetime | None:
        """Return the first time after this one, in UTC; None when there is none within five years."""
        moment = after.astimezone(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
        last_year = moment.astimezone(zone).year + _YEARS_AHEAD
        while (local := moment.astimezone(zone)).year <= last_year:
            by_month, by_week = local.day in self.days, local.isoweekday() % 7 in self.weekdays
            is_day = (by_month or by_week) if self.either_day else (by_month and by_week)
            if local.month not in self.months or not is_day:
                midnight = datetime(local.year, local.month, local.day, tzinfo=zone) + timedelta(days=1)
                # Where clocks are set at midnight that may be no later than now.
                moment = max(midnight.astimezone(UTC), moment + timedelta(minutes=1))
            elif local.hour not in self.hours:
                moment += timedelta(minutes=60 - local.minute)
            elif local.minute not in self.minutes:
                later = [minute for minute in self.minutes if minute > local.minute]
                moment += timedelta(minutes=min(later, default=60) - local.minute)
            else:
                return moment
        return None


def parse_schedule(text: str) -> FixedDelay | CronFields:
    """Parse a schedule. Raise BadSchedule with Kubernetes' sentence."""
    if not text:
        raise BadSchedule("empty spec string")
    if text.startswith("@"):
        if text.startswith(_EVERY):
            return FixedDelay(max(1, int(_duration(text.removeprefix(_EVERY)))))
        if text not in _DESCRIPTORS:
            raise BadSchedule(f"unrecognized descriptor: {text}")
        text = _DESCRIPTORS[text]
    fields = text.split()
    if len(fields) != 5:
        raise BadSchedule(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    minutes, _ = _field(fields[0], 0, 59)
    hours, _ = _field(fields[1], 0, 23)
    days, any_day = _field(fields[2], 1, 31)
    months, _ = _field(fields[3], 1, 12, _MONTHS)
    weekdays, any_weekday = _field(fields[4], 0, 6, _DAYS)
    return CronFields(minutes, hours, days, months, weekdays, either_day=not any_day and not any_weekday)


def find_zone(name: str) -> ZoneInfo:
    """Return a time zone by its IANA name. Raise ValueError when there is none."""
    parts = name.split("/")
    if all(_ZONE_PART.fullmatch(part) and part not in (".", "..") and not part.startswith("-") for part in parts):
        with suppress(LookupError, OSError, ValueError):
            return ZoneInfo(name)
    raise ValueError(f"unknown time zone {name}")


def _field(text: str, least: int, most: int, names: Mapping[str, int] | None = None) -> tuple[frozenset[int], bool]:
    parts = [_range(part, least, most, names or {}) for part in filter(None, text.split(","))]
    return frozenset[int]().union(*(values for values, _ in parts)), any(is_open for _, is_open in parts)


def _range(text: str, least: int, most: int, names: Mapping[str, int]) -> tuple[range, bool]:
    span, *steps = text.split("/")
    low, *high = span.split("-")
    is_open = low in ("*", "?")
    if is_open:
        first, last = least, most
    else:
        first = last = _number(low, names)
        if len(high) > 1:
            raise BadSchedule(f"too many hyphens: {text}")
        if high:
            last = _number(high[0], names)
    step = 1
    if len(steps) > 1:
        raise BadSchedule(f"too many slashes: {text}")
    if steps:
        step = _number(steps[0], {})
        last = last if high else most
        is_open = is_open and step <= 1
    if first < least:
        raise BadSchedule(f"beginning of range ({first}) below minimum ({least}): {text}")
    if last > most:
        raise BadSchedule(f"end of range ({last}) above maximum ({most}): {text}")
    if first > last:
        raise BadSchedule(f"beginning of range ({first}) beyond end of range ({last}): {text}")
    if step == 0:
        raise BadSchedule(f"step of range should be a positive number: {text}")
    return range(first, last + 1, step), is_open


def _number(text: str, names: Mapping[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    if not _WHOLE.fullmatch(text):
        raise BadSchedule(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    return int(text)


def _duration(text: str) -> float:
    parts = _AMOUNT.findall(text)
    if not parts or "".join(amount + unit for amount, unit in parts) != text:
        raise BadSchedule(f'failed to parse duration {_EVERY}{text}: time: invalid duration "{text}"')
    return sum(float(amount) * _UNITS[unit] for amount, unit in parts)
