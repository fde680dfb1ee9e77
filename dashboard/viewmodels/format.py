"""Numbers and times as people read them; plain functions, used by view-models and template filters."""

from datetime import datetime

_UNITS = ((24 * 60 * 60, "d"), (60 * 60, "h"), (60, "min"))


def brief_duration(seconds: float) -> str:
    """The largest fitting unit, whole: "42 s", "7 min", "3 h", "12 d". What is past zero is "0 s"."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, int(seconds))} s"


def age(moment: datetime | None, now: datetime) -> str:
    """How long ago; "" for a time that is not known."""
    return "" if moment is None else brief_duration((now - moment).total_seconds())


def until(moment: datetime, now: datetime) -> str:
    """How long from now: "in 4 min", or "now" when it has come."""
    seconds = (moment - now).total_seconds()
    return f"in {brief_duration(seconds)}" if seconds >= 1 else "now"


def clock_time(moment: datetime) -> str:
    """The time of day, in UTC as everything here: "14:02:11"."""
    return moment.strftime("%H:%M:%S")


def percent(part: int, whole: int) -> int:
    """A share in whole percent, 0 to 100; 0 of nothing."""
    return 0 if whole <= 0 else max(0, min(100, round(100 * part / whole)))
