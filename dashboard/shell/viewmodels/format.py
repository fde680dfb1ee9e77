"""Formats numbers, times and sizes for people, in view-models and template filters; pure."""

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal

from grid.core.quantity import format_bytes, format_cores, millicores, whole
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import plural

UNITS = ((24 * 60 * 60, "d"), (60 * 60, "h"), (60, "min"))


def brief_duration(seconds: float) -> str:
    """Return a duration in whole numbers of its largest unit: "42 s", "7 min", "3 h", "12 d". A negative one is "0 s"."""
    for size, unit in UNITS:
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
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def price_number(cost: Decimal) -> str:
    """Return an amount with two decimal places, or with as many as it needs."""
    exact = f"{cost.normalize():f}"
    return exact if len(exact.partition(".")[2]) > 2 else f"{cost:,.2f}"


def size_words(millicores: int, memory_bytes: int, gpus: int, shared_memory: str = "") -> str:
    """Return for example "3.5 cores, 14 GiB memory, 1 GPU"."""
    parts = [cores_words(f"{millicores}m"), _("{size} memory", size=format_bytes(memory_bytes))]
    if gpus:
        parts.append(plural(gpus, "GPU", "GPUs"))
    if shared_memory:
        parts.append(_("{size} shared memory", size=memory_words(shared_memory)))
    return ", ".join(parts)


def cores_words(cores: str) -> str:
    try:
        milli = millicores(cores)
    except ValueError:
        return cores
    return ngettext("{cores} core", "{cores} cores", 1 if milli == 1000 else 2, cores=format_cores(milli))


def memory_words(memory: str) -> str:
    try:
        return format_bytes(whole(memory))
    except ValueError:
        return memory
