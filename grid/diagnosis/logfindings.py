"""Finds known troubles in the end of a program's log: what a line means, and the usual cure.

The table is data: an entry is a pattern, a meaning and a cure. `grid.diagnosis.logpatterns` has those that everybody needs. `use` puts
another table in force for the whole process, so that a page, a list and the controller say the same of a line.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from grid.core.regexes import Expression, ExpressionSet, RepeatedExpression, first_group
from grid.diagnosis.logpatterns import BUILT_IN, LogPattern

logger = logging.getLogger(__name__)

# A program ends with the cause, so only the end of a log is searched.
LAST_LINES = 1000
_LONGEST_SEARCHED = 2000  # characters of a line
_LONGEST_LINE = 300  # of the line that is shown as evidence
_LONGEST_MEANING = 300
_BEGINNINGS = frozenset("([0123456789")
# What frameworks put before a line that a process of theirs wrote: Ray its task and process ("(fit pid=77, ip=10.9.0.3) "), torchrun
# the rank ("[rank0]: "), TensorFlow the time, level and place of its own code.
_PREFIX = Expression(
    r"^(?:\((?:raylet|autoscaler|[\w.<>() -]{1,80} pid=\d+)[^()]{0,60}\) |\[(?:rank|default)\d+\]: ?|"
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [IWEF] [\w/.-]+:\d+\] )+"
)
_COLOURS = RepeatedExpression(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass(frozen=True, slots=True)
class LogFinding:
    """What a line of a log means; `line` is the evidence, `key` is that of the entry."""

    key: str
    meaning: str
    line: str
    cure: str
    link: str = ""


class LogTable:
    """Entries that are searched together: RE2 compares a line with all their patterns in one pass."""

    def __init__(self, patterns: Iterable[LogPattern]) -> None:
        """Raise PatternError when the patterns together are too large."""
        self.patterns = tuple(patterns)
        self._set = ExpressionSet(entry.pattern for entry in self.patterns)

    def findings(self, text: str) -> list[LogFinding]:
        """Return what is known about the end of a log, the last line first, because programs end with the cause; each meaning once."""
        by_meaning: dict[str, LogFinding] = {}
        for raw in reversed(text.splitlines()[-LAST_LINES:]):
            known = self.of_line(raw)
            if known is not None:
                by_meaning.setdefault(known.meaning, known)
        return list(by_meaning.values())

    def of_line(self, raw: str) -> LogFinding | None:
        """Return what a line means by the first entry that knows it."""
        line = raw[:_LONGEST_SEARCHED].strip()
        if "\x1b" in line:
            line = _COLOURS.sub("", line).strip()
        written = without_prefix(line)
        matching = self._set.matching(written) if written else None
        if not matching:
            return None
        known = self.patterns[min(matching)]
        return LogFinding(known.key, _meaning(known, written), line[:_LONGEST_LINE], known.cure, known.link)


def without_prefix(line: str) -> str:
    """Return what a process wrote, without what its framework put before it."""
    if line[:1] not in _BEGINNINGS:
        return line
    prefix = _PREFIX.match(line)
    return line[prefix.end() :] if prefix is not None else line


def findings(text: str) -> list[LogFinding]:
    """Return what the table in force knows about the end of a log. A fault is logged: it must not keep anything from ending, or a page
    from showing what is known without it."""
    try:
        return list(_found(_in_force[0], text))
    except Exception:
        logger.exception("a log was not searched")
        return []


@lru_cache(maxsize=64)  # pages and the controller ask about the same end of a log again and again
def _found(table: LogTable, text: str) -> tuple[LogFinding, ...]:
    return tuple(table.findings(text))


def finding_of(line: str) -> LogFinding | None:
    """Return what the table in force knows about one line, of a log that is shown."""
    try:
        return _in_force[0].of_line(line)
    except Exception:
        logger.exception("a line was not searched")
        return None


def in_force() -> LogTable:
    return _in_force[0]


def use(patterns: Iterable[LogPattern] = BUILT_IN) -> None:
    """Put these entries in force for the process, from any thread."""
    wanted = tuple(patterns)
    if wanted != _in_force[0].patterns:
        _in_force[0] = LogTable(wanted)


def _meaning(known: LogPattern, line: str) -> str:
    """Return the meaning with the pattern's first group in it; an admin's text is no format string."""
    if "{}" not in known.meaning:
        return known.meaning
    return known.meaning.replace("{}", first_group(known.pattern, line))[:_LONGEST_MEANING]


_in_force = [LogTable(BUILT_IN)]
