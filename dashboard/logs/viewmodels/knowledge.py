"""What is known about lines of logs: the rows of the knowledge base, and what an execution's page says of its findings; pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from grid.diagnosis.logfindings import BUILT_IN, LogFinding, LogPattern, is_built_in


@dataclass(frozen=True, slots=True)
class FoundCount:
    """How many kept logs of the last days an entry was found in, and when last."""

    logs: int = 0
    last: datetime | None = None


@dataclass(frozen=True, slots=True)
class KnowledgeLine(LogPattern):
    """One entry with how often it was found; `key` is its id, or that of a built-in one."""

    is_off: bool = False
    occurrences: FoundCount = FoundCount()

    @property
    def is_built_in(self) -> bool:
        return is_built_in(self.key)

    @property
    def title(self) -> str:
        """The meaning with three dots for what the line names."""
        return self.meaning.replace("{}", "…")


def knowledge_lines(
    own: Iterable[tuple[LogPattern, bool]], off: Iterable[str], counts: Mapping[str, FoundCount]
) -> list[KnowledgeLine]:
    """Return all entries, the most frequent first: the admins' `own`, each with whether it is off, and the built-in ones."""
    off = set(off)
    entries = [*own, *((pattern, pattern.key in off) for pattern in BUILT_IN)]
    lines = [
        KnowledgeLine(row.key, row.pattern, row.meaning, row.cure, row.link, is_off, counts.get(row.key, FoundCount()))
        for row, is_off in entries
    ]
    return sorted(lines, key=lambda line: (line.is_off, -line.occurrences.logs, line.is_built_in, line.title.lower()))


@dataclass(frozen=True, slots=True)
class ShownFinding:
    """A finding of the execution's log; its `words` are "" when the state's sentence has them already."""

    words: str
    meaning: str
    line: str
    link: str


def shown_findings(findings: Sequence[LogFinding], sentence: str) -> tuple[ShownFinding, ...]:
    """Return the findings with their words, but for what the state's `sentence` says already."""
    words = ("" if known.meaning in sentence else f"{known.meaning} {known.cure}".strip() for known in findings)
    return tuple(
        ShownFinding(own, known.meaning, known.line, known.link) for own, known in zip(words, findings, strict=True)
    )
