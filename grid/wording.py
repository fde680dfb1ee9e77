"""Counts, lists, times and amounts of money in sentences; pure. The currency is the installation's (environment variable
`GRID_CURRENCY`)."""

import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal

CURRENCY = os.environ.get("GRID_CURRENCY", "$")
_CENT = Decimal("0.01")

POD_STAYS_SENTENCE = (
    "It cannot be resumed yet: its last pod is not confirmed gone. On a lost node this takes until the node is back or removed. "
    "Launching it again makes a new workspace with the same files."
)


def plural(count: int, one: str, many: str = "") -> str:
    """Return "1 node", "2 nodes", "1,500 nodes"; `many` is for words that do not just add an s."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def listed(parts: Iterable[str]) -> str:
    """Return "a", "a and b", "a, b and c"."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def listed_up_to(most: int, parts: Sequence[str]) -> str:
    """Return the first of them and how many more there are: "a, b and 3 more"."""
    more = len(parts) - most
    return listed([*parts[:most], f"{more:,} more"] if more > 0 else parts)


def one_line(text: str) -> str:
    """Return what somebody typed in one line, without the NUL that PostgreSQL stores in no text."""
    return " ".join(text.replace("\0", " ").split())


def as_sentence(text: str) -> str:
    """Return what somebody wrote with an end, so that another sentence may follow."""
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def again(kind: str) -> str:
    """Return what its owner does with an ended execution of this kind, as the button says."""
    return "resume it" if kind == "workspace" else "launch it again"


def exact_duration(seconds: int) -> str:
    """Return a time without rounding: "2 h", "1 h 30 min", "45 s"."""
    parts = ((seconds // 86400, "d"), (seconds // 3600 % 24, "h"), (seconds // 60 % 60, "min"), (seconds % 60, "s"))
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 s"


def about(seconds: float) -> str:
    """Return a time to wait: "40 s", "3 min 40 s", "25 min"."""
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes:,} min" + (f" {rest} s" if rest and minutes < 10 else "")


def duration(span: timedelta) -> str:
    """Return a time in the unit in which it is two or more: "40 seconds", "3 minutes", "2 hours"."""
    seconds = max(0, int(span.total_seconds()))
    for size, word in ((3600, "hour"), (60, "minute")):
        if seconds >= 2 * size:
            return plural(seconds // size, word)
    return plural(seconds, "second")


def moment_words(moment: datetime) -> str:
    """Return a moment as everybody reads it, wherever they are: "28 November, 06:00 UTC"."""
    return f"{moment.astimezone(UTC):%-d %B, %H:%M} UTC"


def money(amount: Decimal) -> str:
    """Return the amount with two decimal places, or "less than" a cent instead of zero."""
    if 0 < amount < _CENT:
        return f"less than {CURRENCY}{_CENT}"
    return f"{CURRENCY}{amount.quantize(_CENT):,}"
