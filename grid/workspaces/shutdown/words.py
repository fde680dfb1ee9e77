"""What is said of a coming stop and of one that came; pure."""

from datetime import datetime, timedelta

from grid.core.reasons import Reader, Reason, Sentence, Value, Values
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


def announcement(stop: PlannedStop, limits: StopLimits, *, idle: float, evidence: str, now: datetime) -> Reason:
    """Return what is said of a coming stop: why, when, what is lost, and how its owner prevents it."""
    values = _of(stop.cause, limits, idle, evidence)
    values |= {"wait": (stop.at - now).total_seconds(), "at": stop.at.isoformat(), "keep": limits.keep.total_seconds()}
    return Reason("StopAnnounced", values)


def stop_reason(cause: str, limits: StopLimits, *, idle: float, evidence: str) -> Reason:
    """Return why it was stopped, with the evidence, for its history."""
    return Reason("StoppedByRule", _of(cause, limits, idle, evidence))


def _of(cause: str, limits: StopLimits, idle: float, evidence: str) -> dict[str, Value]:
    lifetime = (limits.lifetime or timedelta()).total_seconds()
    return {"cause": cause, "idle": idle, "evidence": evidence, "lifetime": lifetime}


def _announced(values: Values, reader: Reader) -> str:
    sentence = _(
        "Its maximum lifetime of {lifetime} ends: it is stopped in {wait}, at {end:%H:%M} UTC. "
        "To prevent that, choose “Keep it {keep} longer” on its page. {kept}"
    )
    if values["cause"] == IDLE:
        sentence = _(
            "Idle {idle}: {evidence}. It is stopped in {wait}, at {end:%H:%M} UTC. "
            "To prevent that, choose “Keep it {keep} longer” on its page, or use it. {kept}"
        )
    return sentence.format(
        idle=idle_words(values["idle"]),
        evidence=values["evidence"],
        lifetime=exact_duration(int(values["lifetime"])),
        wait=duration(timedelta(seconds=values["wait"])),
        end=datetime.fromisoformat(values["at"]),
        keep=exact_duration(int(values["keep"])),
        kept=_KEPT,
    )


def _stopped(values: Values, reader: Reader) -> str:
    if values["cause"] == IDLE:
        idle, evidence = idle_words(values["idle"]), values["evidence"]
        return _("Stopped after {idle} without use: {evidence}.", idle=idle, evidence=evidence)
    return _(
        "Stopped at the end of its maximum lifetime of {lifetime}.", lifetime=exact_duration(int(values["lifetime"]))
    )


def _kept_longer(values: Values, reader: Reader) -> str:
    until, instead_of = (datetime.fromisoformat(values[name]) for name in ("until", "instead_of"))
    sentence = _("{name} keeps it until {until:%H:%M} UTC instead of {at:%H:%M} UTC.")
    return sentence.format(name=values["by"], until=until, at=instead_of)


SENTENCES: dict[str, Sentence] = {"StopAnnounced": _announced, "StoppedByRule": _stopped, "KeptLonger": _kept_longer}
