"""A cluster's problems: one card for each diagnosis, with the role that can fix it; pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.viewmodels.live import Fragment
from grid.diagnosis.diagnosis import Diagnosis

_WHO = {
    "": "",
    "you": "You can change this.",
    "admin": "Your admin can change this.",
    "operator": "An operator can help.",
}
_WORDS = {"problem": "Problem", "wait": "Note", "ok": "Note"}


@dataclass(frozen=True, slots=True)
class Trouble:
    code: str
    severity: str
    word: str
    sentence: str
    advice: str
    who: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Troubles:
    lines: tuple[Trouble, ...]


def troubles(found: Sequence[Diagnosis], *, is_operator: bool) -> Fragment:
    """Return a card for each diagnosis; an operator is not advised to ask an operator."""
    lines = tuple(
        Trouble(
            code=one.code,
            severity=one.severity,
            word=_WORDS[one.severity],
            sentence=one.sentence,
            advice=one.next_step,
            who="" if one.who == "operator" and is_operator else _WHO[one.who],
            evidence=one.evidence,
        )
        for one in found
    )
    return Fragment("troubles", "dashboard/fragments/troubles.html", Troubles(lines))
