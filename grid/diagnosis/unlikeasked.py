"""Explains a pod that runs, and not as it was asked to: it gets no traffic, or has not the size that it was given later. Pure."""

from datetime import datetime, timedelta

from grid.core.quantity import format_bytes
from grid.core.regexes import RepeatedExpression
from grid.core.translation import gettext as _
from grid.core.wording import folded
from grid.diagnosis.containers import OUT_OF_MEMORY
from grid.diagnosis.diagnosis import Diagnosis, Severity, Who, quoted, since, together
from grid.kube.objects import Pod

_IS_NEW = timedelta(minutes=5)
_BYTES = RepeatedExpression(r"\d{7,}")
# By a condition and its reason: how a pod runs otherwise than it was asked to, who can act, and how.
_UNLIKE_ASKED: dict[tuple[str, str], tuple[str, Who, str]] = {
    ("Ready", "ReadinessGatesNotReady"): (_("Running, but it gets no traffic: {says}."), "operator",
        _("Ask an operator what sets the readiness gate, such as the controller of a load balancer.")),
    ("PodResizePending", "Infeasible"): (_("It still has its old size, because its node can never give it the new one: {says}."),
        "you", _("Launch it again with the new size.")),
    ("PodResizePending", "Deferred"): (_("It still has its old size, until its node has room for the new one: {says}."),
        "you", _("It is tried again by itself; launched again with the new size, it may get another node.")),
    ("PodResizeInProgress", "Error"): (_("Running, but its size cannot be changed: {says}."), "you",
        _("Launch it again with the new size; to shrink it here, let it use less memory first.")),
}  # fmt: skip


def unlike_asked(pod: Pod, why: Diagnosis, now: datetime) -> Diagnosis:
    """Return why a pod that runs gets no traffic or not the size that was asked for, `why` when it has both. Beside want of memory a size
    that it did not get is a second cause."""
    is_short = why.code == OUT_OF_MEMORY
    for condition in pod.status.conditions if is_short or why.code == "running" else ():
        unlike = _UNLIKE_ASKED.get((condition.type, condition.reason))
        if unlike and (not is_short or condition.type == "PodResizePending"):
            words, who, step = unlike
            sentence = words.format(says=_BYTES.sub(lambda size: format_bytes(int(size[0])), folded(condition.message)))
            severity: Severity = "wait" if since(condition.last_transition_time, now) < _IS_NEW else "problem"
            other = Diagnosis("not_as_asked", sentence, severity, who, step, quoted(condition.message))
            return together(why, other) if is_short else other
    return why
