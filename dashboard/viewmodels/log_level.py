"""Guesses how grave a line of a log is, from the patterns of common loggers; pure."""

from grid.regexes import Expression
from grid.translation import gettext as _

ERROR, WARNING, INFO, DEBUG = "error", "warning", "info", "debug"
LEVELS = {ERROR: _("Errors"), WARNING: _("Warnings and errors")}  # what a log can be reduced to

_HEAD = 160  # characters in which a logger names the level
_NAMES = {
    "trace": DEBUG, "debug": DEBUG, "info": INFO, "notice": INFO, "warn": WARNING, "warning": WARNING, "error": ERROR, "err": ERROR,
    "severe": ERROR, "critical": ERROR, "fatal": ERROR, "panic": ERROR,
    "10": DEBUG, "20": DEBUG, "30": INFO, "40": WARNING, "50": ERROR, "60": ERROR,
}  # fmt: skip
_LETTERS = {"D": DEBUG, "I": INFO, "W": WARNING, "E": ERROR, "F": ERROR, "C": ERROR}

_GLOG = Expression(r"([IWEF])\d{4} \d\d:\d\d:\d\d")
# Jupyter and Ray write one letter, beside the time: "[W 2026-11-23 09:00:05 ServerApp]", "[2026-11-23 09:00:05,123 E 12 12]".
_LETTER = Expression(r"\[(?:([DIWEC]) \d{4}-|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.,]\d+ ([DIWEFC]) )")
_FIELD = Expression(r"""["']?\b(?:level|levelname|lvl|severity|log\.level)["']?\s*[:=]\s*["']?([A-Za-z]+|\d\d)\b""")
_WORD = Expression(
    r"(?:^|[\s\[(<|:\-])(TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|SEVERE|CRITICAL|FATAL|PANIC)(?:$|[\s\])>|:\-])"
)
_PREFIX = Expression(r"(?i)(trace|debug|info|notice|warn|warning|error|severe|critical|fatal|panic)\s*(?:\[[^\]]*\])?:")
_IN_A_NAME = r"\w\x{80}-\x{10FFFF}"  # names of Python may have letters of any language
_PYTHON_WARNING = Expression(rf"(?:^|: )[{_IN_A_NAME}]*Warning: ")
_EXCEPTION = Expression(
    rf"(?:Traceback \(most recent call last\)|(?:[{_IN_A_NAME}.$]*(?:Error|Exception|Interrupt)|Caused by)(?::|$)|Exception in thread)"
)


def level_of(text: str, before: str = "") -> str:
    """Return the level of a line without escape sequences, "" when it names none. An indented line belongs to the one before it, whose
    level is `before`."""
    if text[:1] in (" ", "\t", "}", ")"):
        return before
    head = text[:_HEAD]
    if found := _GLOG.match(head) or _LETTER.match(head):
        return _LETTERS[next(filter(None, found.groups()))]
    if (found := _FIELD.search(text[:2000])) and (known := _NAMES.get(found[1].lower())):
        return known
    if found := _WORD.search(head) or _PREFIX.match(head):
        return _NAMES[found[1].lower()]
    if _EXCEPTION.match(head):
        return ERROR
    return WARNING if _PYTHON_WARNING.search(head) else ""


def is_shown(level: str, least: str) -> bool:
    """Return True when a log that is reduced to `least`, a key of LEVELS or "", shows the level."""
    return least not in LEVELS or level in (ERROR, least)
