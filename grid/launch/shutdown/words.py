"""What is said of a coming stop and of one that came; pure."""

from datetime import datetime, timedelta

from grid.launch.shutdown.limits import StopLimits
from grid.launch.shutdown.rules import PlannedStop
from grid.launch.stopping import IDLE
from grid.wording import duration, exact_duration

_KEPT = "What it has written to the project's files and to HOME stays; what its programs hold in memory is lost."


def idle_words(seconds: float) -> str:
    """Return a time in whole minutes: "52 min", "1 h 5 min"."""
    return exact_duration(max(60, int(seconds) // 60 * 60))


def limit_words(limit: timedelta | None) -> str:
    return exact_duration(int((limit or timedelta()).total_seconds()))


def announcement(stop: PlannedStop, limits: StopLimits, *, idle: float, evidence: str, now: datetime) -> str:
    """Return the sentence that tells its owner: why, when, what is lost, and how to prevent it."""
    when = f"in {duration(stop.at - now)}, at {stop.at:%H:%M} UTC"
    keep = f"To prevent that, choose “Keep it {limit_words(limits.keep)} longer” on its page"
    if stop.cause == IDLE:
        return f"Idle {idle_words(idle)}: {evidence}. It is stopped {when}. {keep}, or use it. {_KEPT}"
    return f"Its maximum lifetime of {limit_words(limits.lifetime)} ends: it is stopped {when}. {keep}. {_KEPT}"


def stop_sentence(cause: str, limits: StopLimits, *, idle: float, evidence: str) -> str:
    """Return why it was stopped, with the evidence, for its history."""
    if cause == IDLE:
        return f"Stopped after {idle_words(idle)} without use: {evidence}."
    return f"Stopped at the end of its maximum lifetime of {limit_words(limits.lifetime)}."
