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


def shown_findings(findings: Iterable[LogFinding], sentence: str) -> tuple[ShownFinding, ...]:
    """Return the findings with their words, but for what the state's `sentence` says already."""

    def shown(known: LogFinding) -> ShownFinding:
        words = "" if known.meaning in sentence else f"{known.meaning} {known.cure}".strip()
        return ShownFinding(words, known.meaning, known.line, known.link)

    return tuple(map(shown, findings))
