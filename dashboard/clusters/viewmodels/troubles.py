"""A cluster's problems: one card for each diagnosis, with the role that can fix it; pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.executions.viewmodels.node_reasons import NodeReasons, node_reasons
from dashboard.shell.viewmodels.live import Fragment
from grid.core.translation import gettext as _
from grid.diagnosis.diagnosis import Diagnosis

_WHO = {
    "": "",
    "you": _("You can change this."),
    "admin": _("Your admin can change this."),
    "operator": _("An operator can help."),
}
_WORDS = {"problem": _("Problem"), "wait": _("Note"), "ok": _("Note")}


@dataclass(frozen=True, slots=True)
class Trouble:
    diagnosis: Diagnosis
    word: str
    who: str
    reasons: NodeReasons | None = None


def troubles(diagnoses: Sequence[Diagnosis], *, is_operator: bool, sees_all: bool = False) -> Fragment:
    """Return a card for each diagnosis; an operator is not advised to ask an operator. Only who `sees_all` is led to pages about nodes."""
    cards = tuple(_trouble(diagnosis, is_operator, sees_all) for diagnosis in diagnoses)
    return Fragment("troubles", "clusters/fragments/troubles.html", cards)


def _trouble(diagnosis: Diagnosis, is_operator: bool, sees_all: bool) -> Trouble:
    reasons = node_reasons(diagnosis, sees_all=sees_all)
    # The table of the nodes says itself who can change something.
    is_told = reasons is not None or (diagnosis.who == "operator" and is_operator)
    return Trouble(diagnosis, _WORDS[diagnosis.severity], "" if is_told else _WHO[diagnosis.who], reasons)
