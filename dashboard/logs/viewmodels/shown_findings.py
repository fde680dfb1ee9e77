"""What is known about lines of an execution's log, as its page shows it; pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from grid.diagnosis.logfindings import LogFinding


@dataclass(frozen=True, slots=True)
class ShownFinding:
    """A finding of the execution's log; its `words` are "" when the state's sentence has them already."""

    words: str
    meaning: str
    line: str
    link: str


def shown_findings(findings: Iterable[LogFinding], said: str) -> tuple[ShownFinding, ...]:
    """Return the findings with their words, but for what the state's sentence `said` already."""
    return tuple(
        ShownFinding(
            "" if one.meaning in said else f"{one.meaning} {one.cure}".strip(), one.meaning, one.line, one.link
        )
        for one in findings
    )
