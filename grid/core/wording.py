"""Counts, lists, times and amounts of money in sentences; pure. The currency is the installation's (environment variable
`GRID_CURRENCY`)."""

import os
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache

from grid.core.regexes import RepeatedExpression
from grid.core.translation import gettext as _, ngettext

CURRENCY = os.environ.get("GRID_CURRENCY", "$")
_CENT = Decimal("0.01")
MONTHS = (
    *(_("January"), _("February"), _("March"), _("April"), _("May"), _("June")),
    *(_("July"), _("August"), _("September"), _("October"), _("November"), _("December")),
)
# Control sequences of a terminal (ECMA-48): colours and cursor movements, titles, and single escapes.
_CONTROLS = RepeatedExpression(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])")
_MOST_QUOTED = 450  # characters of a message within a sentence; the whole of it is evidence

POD_STAYS_SENTENCE = _(
    "It cannot be resumed yet: its last pod is not confirmed gone. On a lost node this takes until the node is back or removed. "
    "Launching it again makes a new workspace with the same files."
)


@lru_cache(maxsize=2000)  # each update of a page counts what it shows
def plural(count: int, noun: str, nouns: str) -> str:
    """Return "1 node", "2 nodes", "1,500 nodes"."""
    return _("{count:,} {noun}", count=count, noun=ngettext(noun, nouns, count))


def listed(parts: Iterable[str]) -> str:
    """Return "a", "a and b", "a, b and c"."""
    *first, last = parts
    return _("{first} and {last}", first=", ".join(first), last=last) if first else last


def listed_up_to(most: int, parts: Sequence[str]) -> str:
    """Return the first of them and how many more there are: "a, b and 3 more"."""
    more = len(parts) - most
    return listed([*parts[:most], _("{count:,} more", count=more)] if more > 0 else parts)


def capitalised(text: str) -> str:
    """Return a noun phrase as a sentence begins with it."""
    return text[:1].upper() + text[1:]


def one_line(text: str) -> str:
    """Return what somebody typed in one line, without the NUL that PostgreSQL stores in no text."""
    return " ".join(text.replace("\0", " ").split())


def as_sentence(text: str) -> str:
    """Return what somebody wrote with an end, so that another sentence may follow."""
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def again(kind: str) -> str:
    """Return what its owner does with an ended execution of this kind, as the button says."""
    return _("resume it") if kind == "workspace" else _("launch it again")


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
    if seconds >= 2 * 3600:
        return plural(seconds // 3600, "hour", "hours")
    if seconds >= 2 * 60:
        return plural(seconds // 60, "minute", "minutes")
    return plural(seconds, "second", "seconds")


def month_name(day: date) -> str:
    """Return "November"; `strftime` says it in English whatever the installation's language is."""
    return MONTHS[day.month - 1]


def month_words(month: date) -> str:
    """Return "November 2026"."""
    return _("{month} {year}", month=month_name(month), year=month.year)


def day_words(day: date) -> str:
    """Return "28 November"."""
    return _("{day} {month}", day=day.day, month=month_name(day))


def date_words(day: date) -> str:
    """Return "28 November 2026"."""
    return _("{day} {month} {year}", day=day.day, month=month_name(day), year=day.year)


def moment_words(moment: datetime) -> str:
    """Return a moment as everybody reads it, wherever they are: "28 November, 06:00 UTC"."""
    at = moment.astimezone(UTC)
    return _("{day} {month}, {time:%H:%M} UTC", day=at.day, month=month_name(at), time=at)


def money(amount: Decimal) -> str:
    """Return the amount with two decimal places, or "less than" a cent instead of zero."""
    if 0 < amount < _CENT:
        return _("less than {currency}{cent}", currency=CURRENCY, cent=_CENT)
    return f"{CURRENCY}{amount.quantize(_CENT):,}"


def plain_text(text: str) -> str:
    """Return what a terminal would leave of a text: no colours, and of a line that a progress bar overwrites its last state."""
    if "\x1b" in text:
        text = _CONTROLS.sub("", text)
    if "\r" not in text:
        return text
    lines = (line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return "\n".join(lines)


def folded(message: str) -> str:
    """Return the message as a part of a sentence: in one line, without its full stop. Of a long one the middle is cut, with a mark there:
    its cause stands at the end, or at the beginning."""
    line, half = " ".join(message.split()).rstrip(". "), _MOST_QUOTED // 2
    return line if len(line) <= _MOST_QUOTED else f"{line[: half - 1]}…{line[-half:]}"
