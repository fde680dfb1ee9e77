"""The level of a line of a log, guessed from the patterns of common loggers and from how languages write exceptions; pure."""

from grid.core.regexes import Expression
from grid.diagnosis.logfindings import without_prefix

ERROR, WARNING, INFO, DEBUG = "error", "warning", "info", "debug"

_HEAD = 160  # characters in which a logger names the level
_NAMES = {
    "trace": DEBUG, "debug": DEBUG, "info": INFO, "notice": INFO, "warn": WARNING, "warning": WARNING, "error": ERROR, "err": ERROR,
    "severe": ERROR, "critical": ERROR, "fatal": ERROR, "panic": ERROR,
    "10": DEBUG, "20": DEBUG, "30": INFO, "40": WARNING, "50": ERROR, "60": ERROR,
}  # fmt: skip
_LETTERS = {"D": DEBUG, "I": INFO, "W": WARNING, "E": ERROR, "F": ERROR, "C": ERROR}

_ZEROS = str.maketrans("123456789", "000000000")
_DIGITS = "0123456789"
_GLOG, _JUPYTER, _RAY = frozenset("IWEF"), frozenset("DIWEC"), frozenset("DIWEFC")
_FIELD = Expression(r"""["']?\b(?:level|levelname|lvl|severity|log\.level)["']?\s*[:=]\s*["']?([A-Za-z]+|\d\d)\b""")
_AROUND_A_WORD = " \t\n\f\r[](<>)|:-"
_WORD = Expression(
    r"(?:^|[\s\[(<|:\-])(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|SEVERE|CRITICAL|FATAL|PANIC)(?:$|[\s\])>|:\-])"
)
_PREFIX = Expression(
    r"(?i)(?:trace|debug|info|notice|warn|warning|error|severe|critical|fatal|panic)\s*(?:\[[^\]]*\])?:"
)
_IN_A_NAME = r"\w\x{80}-\x{10FFFF}"  # names of Python may have letters of any language
_PYTHON_WARNING = Expression(rf"(?:^|: )[{_IN_A_NAME}]*Warning: ")
_EXCEPTION_WORDS = ("Error", "Exception", "Interrupt", "Traceback", "Caused by")
_EXCEPTION = Expression(
    rf"(?:Traceback \(most recent call last\)|(?:[{_IN_A_NAME}.$]*(?:Error|Exception|Interrupt)|Caused by)(?::|$)|Exception in thread)"
)


def level_of(text: str, before: str = "") -> str:
    """Return the level of a line, "" when it names none; an indented line belongs to the one before it, with the level `before`."""
    if text[:1] in (" ", "\t", "}", ")"):
        return before
    if text[:1] == "(" or text.startswith(("[rank", "[default")):
        text = without_prefix(text)
    head = text[:_HEAD]
    # Expressions are for what is likely to match: most lines are read by hand, and a word is found faster than by an expression.
    if letter := _letter_of(head):
        return _LETTERS[letter]
    begins = text[:2000]
    names_level = "level" in begins or "severity" in begins or "lvl" in begins
    if names_level and (match := _FIELD.search(begins)) and (known := _NAMES.get(match[1].lower())):
        return known
    if match := _WORD.search(head):
        return _NAMES[match[0].strip(_AROUND_A_WORD).lower()]
    if ":" in head and (match := _PREFIX.match(head)):
        return _NAMES[match[0].rstrip(":").partition("[")[0].strip().lower()]
    if any(word in head for word in _EXCEPTION_WORDS) and _EXCEPTION.match(head):
        return ERROR
    return WARNING if "Warning: " in head and _PYTHON_WARNING.search(head) else ""


def _letter_of(head: str) -> str:
    """Return the letter by which glog, Jupyter and Ray name the level beside the time: "E1123 09:00:05", "[W 2026-11-23 09:00:05 Lab]",
    "[2026-11-23 09:00:05,123 E 12 12]", and TensorFlow after it: "2026-11-23 09:00:05.123456: E place:1] ". It is "" when there is none."""
    letter = head[:1]
    if head[26:28] == ": " and head[29:30] == " " and head[28:29] in _GLOG and letter in _DIGITS:
        return head[28]
    if letter != "[":
        return letter if letter in _GLOG and head[1:14].translate(_ZEROS) == "0000 00:00:00" else ""
    if head[2:8].translate(_ZEROS) == " 0000-":
        return head[1] if head[1] in _JUPYTER else ""
    if head[1:20].translate(_ZEROS) != "0000-00-00 00:00:00" or head[20:21] not in (".", ","):
        return ""
    after = head[21:].lstrip(_DIGITS)
    has_fraction = len(after) < len(head) - 21
    return after[1] if has_fraction and after[:1] == after[2:3] == " " and after[1] in _RAY else ""
