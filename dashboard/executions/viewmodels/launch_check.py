"""The cluster's own answer about a launch, on the card beside the form; pure."""

from dataclasses import dataclass
from datetime import datetime

from grid.core.translation import gettext as _
from grid.diagnosis.diagnosis import Severity


@dataclass(frozen=True, slots=True)
class CheckLine:
    """The answer in words; `evidence` is Kubernetes' own text, and while `is_awaited` the page asks again."""

    severity: Severity
    headline: str
    sentence: str
    evidence: str = ""
    at: datetime | None = None
    is_awaited: bool = False


TOO_OFTEN = CheckLine(
    "wait", _("Not checked"), _("You have checked often within the last minute; try again in a moment.")
)
_HEADLINES: dict[str, tuple[Severity, str]] = {
    "confirmed": ("ok", _("Confirmed by the cluster")),
    "refused": ("problem", _("The cluster would refuse the launch")),
    "not_known": ("wait", _("Not confirmed")),
}


def check_line(
    outcome: str,
    message: str,
    evidence: str,
    *,
    answered_at: datetime | None,
    is_current: bool,
    never_starts: str = "",
) -> CheckLine:
    """Return the line of a stored request; `is_current` is False once an answer is no longer waited for. `never_starts` says why what
    the cluster accepts would find no node, which a dry run does not try."""
    if answered_at is not None:
        severity, headline = _HEADLINES[outcome]
        if outcome == "confirmed" and never_starts:
            # Kubernetes' dryRun=All stops after admission: its scheduler sees none of it.
            severity, headline = "problem", _("The cluster accepts it, but it would not start")
            message = f"{message} {never_starts}"
        return CheckLine(severity, headline, message, evidence, answered_at)
    if is_current:
        return CheckLine("wait", _("Asking the cluster"), _("It tries a dry run of the objects."), is_awaited=True)
    sentence = _("The controller did not answer in time. You can launch it anyway.")
    return CheckLine("wait", _("Not confirmed"), sentence)
