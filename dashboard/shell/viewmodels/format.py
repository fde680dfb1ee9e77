"""Formats numbers and times for people, in view-models and template filters; pure."""

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal

from grid.core.translation import gettext as _

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_UNITS = ((24 * 60 * 60, "d"), (60 * 60, "h"), (60, "min"))


def brief_duration(seconds: float) -> str:
    """Return a duration in whole numbers of its largest unit: "42 s", "7 min", "3 h", "12 d". A negative one is "0 s"."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, int(seconds))} s"


def span(seconds: float) -> str:
    """Return a duration in its two largest units: "42 s", "7 min 12 s", "3 h 5 min"."""
    whole_seconds = max(0, int(seconds))
    for size, unit, small, small_unit in ((3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole_seconds >= size:
            words = f"{whole_seconds // size:,} {unit}"
            rest = whole_seconds % size // small
            return f"{words} {rest} {small_unit}" if rest else words
    return f"{whole_seconds} s"


def age(moment: datetime | None, now: datetime) -> str:
    """Return the time since `moment`; "" when it is unknown."""
    return "" if moment is None else brief_duration((now - moment).total_seconds())


def until(moment: datetime, now: datetime) -> str:
    """Return the time until `moment`, such as "in 4 min", or "now" when it has come."""
    seconds = (moment - now).total_seconds()
    return _("in {duration}", duration=brief_duration(seconds)) if seconds >= 1 else _("now")


def either(parts: Iterable[str]) -> str:
    """Return "a", "a or b", "a, b or c"."""
    *first, last = parts
    return _("{first} or {last}", first=", ".join(first), last=last) if first else last


def clock_time(moment: datetime) -> str:
    """Return the time of day in the moment's own time zone, which is UTC throughout: "14:02:11"."""
    return moment.strftime("%H:%M:%S")


def percent(part: int, whole: int) -> int:
    """Return a share in whole percent, 0 to 100; 0 when the whole is 0."""
    return 0 if whole <= 0 else max(0, min(100, round(100 * part / whole)))


def spreadsheet_text(text: str) -> str:
    """Return a text for a cell of a CSV file; one that a spreadsheet would compute is quoted with an apostrophe."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def price_number(cost: Decimal) -> str:
    """Return an amount with two decimal places, or with as many as it needs."""
    exact = f"{cost.normalize():f}"
    return exact if len(exact.partition(".")[2]) > 2 else f"{cost:,.2f}"
