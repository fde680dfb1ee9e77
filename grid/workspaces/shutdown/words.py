"""What is said of a coming stop and of one that came; pure."""

from datetime import datetime, timedelta

from grid.core.translation import gettext as _
from grid.core.wording import duration, exact_duration
from grid.executions.stopping import IDLE
from grid.workspaces.shutdown.limits import StopLimits
from grid.workspaces.shutdown.rules import PlannedStop

_KEPT = _("What it has written to the project's files and to HOME stays; what its programs hold in memory is lost.")


def idle_words(seconds: float) -> str:
    """Return a time in whole minutes: "52 min", "1 h 5 min"."""
    return exact_duration(max(60, int(seconds) // 60 * 60))


def limit_words(limit: timedelta | None) -> str:
    return exact_duration(int((limit or timedelta()).total_seconds()))


def announcement(stop: PlannedStop, limits: StopLimits, *, idle: float, evidence: str, now: datetime) -> str:
    """Return the sentence that tells its owner: why, when, what is lost, and how to prevent it."""
    sentence = _(
        "Its maximum lifetime of {lifetime} ends: it is stopped in {wait}, at {end:%H:%M} UTC. "
        "To prevent that, choose “Keep it {keep} longer” on its page. {kept}"
    )
    if stop.cause == IDLE:
        sentence = _(
            "Idle {idle}: {evidence}. It is stopped in {wait}, at {end:%H:%M} UTC. "
            "To prevent that, choose “Keep it {keep} longer” on its page, or use it. {kept}"
        )
    return sentence.format(
        idle=idle_words(idle),
        evidence=evidence,
        lifetime=limit_words(limits.lifetime),
        wait=duration(stop.at - now),
        end=stop.at,
        keep=limit_words(limits.keep),
        kept=_KEPT,
    )


def stop_sentence(cause: str, limits: StopLimits, *, idle: float, evidence: str) -> str:
    """Return why it was stopped, with the evidence, for its history."""
    if cause == IDLE:
        return _("Stopped after {idle} without use: {evidence}.", idle=idle_words(idle), evidence=evidence)
    return _("Stopped at the end of its maximum lifetime of {lifetime}.", lifetime=limit_words(limits.lifetime))
