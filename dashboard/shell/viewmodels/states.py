"""A status as every page shows it, and the states of an execution in words: a word, a sentence, and what to do next. Kinds, frameworks and
roles in words, too; pure."""

from typing import Literal

from dashboard.shell.viewmodels.live import ViewModel
from grid.core.translation import gettext as _
from grid.diagnosis.pods import Diagnosis

Severity = Literal["ok", "wait", "problem", "neutral"]


class StatusLine(ViewModel, frozen=True, gc=False):
    """A status in a short `word`; `note` adds the cause or is ""."""

    severity: Severity
    word: str
    note: str = ""


ACTIVE_STATES = {
    "queued": _("Queued"),
    "deploying": _("Deploying"),
    "preparing": _("Preparing"),
    "running": _("Running"),
    "finishing": _("Finishing"),
    "stopping": _("Stopping"),
}
ENDED_STATES = {"succeeded": _("Succeeded"), "stopped": _("Stopped"), "failed": _("Failed"), "error": _("Error")}
STARTED_STATES = frozenset({"deploying", "preparing", "running"})  # admitted, and not on the way to an end
STATES = {**ACTIVE_STATES, **ENDED_STATES}
_SENTENCES = {
    "queued": _("Waiting for a free slot."),
    "deploying": _("Sent to the cluster; waiting for a node."),
    "preparing": _("Its node pulls the image and starts the program."),
    "finishing": _("The program has ended; its log and files are being saved."),
    "stopping": _("The program is stopping."),
    "failed": _("The program ended with an error."),
    "error": _("The platform could not run it."),
}
_SEVERITIES: dict[str, Severity] = {
    "queued": "wait",
    "deploying": "wait",
    "preparing": "wait",
    "running": "ok",
    "finishing": "wait",
    "stopping": "wait",
    "succeeded": "neutral",
    "stopped": "neutral",
    "failed": "problem",
    "error": "problem",
}
STARTED = _("It has started; the state updates in a moment.")  # pages see the pod before the controller has noted it


def state_word(state: str) -> str:
    return STATES.get(state, state.capitalize() or _("Unknown"))


def state_status(state: str, *, message: str = "", diagnosis: Diagnosis | None = None) -> tuple[StatusLine, str]:
    """Return the status and the advice, or "". `message` is the stored cause, `diagnosis` is made from the pod's present state."""
    severity = _SEVERITIES.get(state, "neutral")
    note = message or _SENTENCES.get(state, "")
    if diagnosis is None or (message and state not in STARTED_STATES):  # there the pod's diagnosis is preferred
        return StatusLine(severity, state_word(state), "" if state == "running" else note), ""
    if state == "running" and diagnosis.severity == "ok":
        return StatusLine("ok", state_word(state)), ""
    if diagnosis.severity == "ok":
        sentence = diagnosis.sentence
        if diagnosis.code == "running":
            sentence = STARTED if state in ("deploying", "preparing") else note
        return StatusLine(severity, state_word(state), sentence or note), ""
    return StatusLine(diagnosis.severity, state_word(state), diagnosis.sentence or note), diagnosis.next_step


KINDS = {"workspace": _("Workspace"), "job": _("Job"), "app": _("App"), "cluster": _("Cluster")}
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
    """Return the kind in words; one that is not known as it is."""
    return KINDS.get(kind, kind)
