"""A status as every page shows it, and states, kinds, frameworks and roles in words; of states a sentence, and what to do next; pure."""

from typing import Literal

from dashboard.shell.viewmodels.live import ViewModel
from grid.core.translation import gettext as _
from grid.diagnosis.pods import Diagnosis
from grid.models.environment import Kind

Severity = Literal["ok", "wait", "problem", "neutral"]


class StatusLine(ViewModel, frozen=True, gc=False):
    """A status in a short `word`; `note` adds the cause or is ""."""

    severity: Severity
    word: str
    note: str = ""


# By state: its word, its severity, and a sentence.
_ACTIVE: dict[str, tuple[str, Severity, str]] = {
    "queued": (_("Queued"), "wait", _("Waiting for a free slot.")),
    "deploying": (_("Deploying"), "wait", _("Sent to the cluster; waiting for a node.")),
    "preparing": (_("Preparing"), "wait", _("Its node pulls the image and starts the program.")),
    "running": (_("Running"), "ok", ""),
    "finishing": (_("Finishing"), "wait", _("The program has ended; its log and files are being saved.")),
    "stopping": (_("Stopping"), "wait", _("The program is stopping.")),
}
_ENDED: dict[str, tuple[str, Severity, str]] = {
    "succeeded": (_("Succeeded"), "neutral", ""),
    "stopped": (_("Stopped"), "neutral", ""),
    "failed": (_("Failed"), "problem", _("The program ended with an error.")),
    "error": (_("Error"), "problem", _("The platform could not run it.")),
}
_ALL = _ACTIVE | _ENDED
ACTIVE_STATES, ENDED_STATES = (
    {state: word for state, (word, *_rest) in states.items()} for states in (_ACTIVE, _ENDED)
)
STARTED_STATES = frozenset({"deploying", "preparing", "running"})  # admitted, and not on the way to an end
STATES = {**ACTIVE_STATES, **ENDED_STATES}
STARTED = _("It has started; the state updates in a moment.")  # pages see the pod before the controller has noted it


def state_word(state: str) -> str:
    return STATES.get(state, state.capitalize() or _("Unknown"))


def state_status(state: str, *, message: str = "", diagnosis: Diagnosis | None = None) -> tuple[StatusLine, str]:
    """Return the status and the advice, or "". `message` is the stored cause, `diagnosis` is made from the pod's present state."""
    word, severity, sentence = _ALL.get(state, (state.capitalize() or _("Unknown"), "neutral", ""))
    note = message or sentence
    if diagnosis is None or (message and state not in STARTED_STATES):  # there the pod's diagnosis is preferred
        return StatusLine(severity, word, "" if state == "running" else note), ""
    if state == "running" and diagnosis.severity == "ok":
        return StatusLine("ok", word), ""
    if diagnosis.severity == "ok":
        started = STARTED if state in ("deploying", "preparing") else note
        told_by_pod = started if diagnosis.code == "running" else diagnosis.sentence or note
        return StatusLine(severity, word, told_by_pod), ""
    return StatusLine(diagnosis.severity, word, diagnosis.sentence or note), diagnosis.next_step


KINDS = {kind.value: str(kind.label) for kind in Kind}
ROLE_TITLES = {
    "practitioner": _("Practitioner"),
    "auditor": _("Auditor"),
    "operator": _("Operator"),
    "admin": _("Admin"),
}


def framework_name(framework: str) -> str:
    """Return how its makers write its name: "Dask"."""
    return framework.capitalize()


def kind_name(kind: str) -> str:
    return KINDS.get(kind, kind)
