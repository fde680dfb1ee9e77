"""When an execution is announced to be stopped, and when it is stopped; pure. Nothing is stopped that was not announced: a stop is told
`warning` before (of a short limit, half of it), also after the controller was away. What happens until the announced time counts, and
becomes known up to a minute and a half later, so a stop waits for that."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from grid import configuration as central
from grid.configuration import values_of
from grid.core.reasons import Reader, Reason, Sentence, Values
from grid.core.translation import gettext as _
from grid.core.wording import duration, exact_duration
from grid.executions.stopping import IDLE, LIFETIME
from grid.models.environment import Kind

KINDS = (Kind.WORKSPACE, Kind.APP)
LOOK = timedelta(minutes=1)
GAP = timedelta(minutes=5)  # nobody has looked for longer than this: what happened then is not known
SETTLED = timedelta(seconds=90)  # proxies write each minute who has used what
_KEPT = _("What it has written to the project's files and to HOME stays; what its programs hold in memory is lost.")


@dataclass(frozen=True, slots=True)
class OwnLimits:
    """What a tier or a project says itself: None leaves it to the next, 0 is no limit."""

    idle_minutes: int | None = None
    lifetime_hours: int | None = None


@dataclass(frozen=True, slots=True)
class StopLimits:
    """The limits, None for none: `warning` is announced before a stop, an extension adds `keep`, all together at most `extension`."""

    idle: timedelta | None
    lifetime: timedelta | None
    warning: timedelta
    keep: timedelta
    extension: timedelta

    @property
    def any(self) -> bool:
        return self.idle is not None or self.lifetime is not None


def effective(base: int, own: int | None, bound: int) -> int:
    """Return the limit of a project that says `own` instead of `base`: a shorter always holds, a longer up to `bound`; 0 is none."""
    if own is None or own == 0:
        return base
    if base == 0 or own <= base:
        return own
    return min(own, max(base, bound))


def limits_of(kind: str, values: Mapping[str, int], tier: OwnLimits, project: OwnLimits) -> StopLimits:
    """Return the limits of an execution of this kind; `values` are those of the central configuration in force, by key."""
    of_kind = (central.APP_IDLE, central.APP_LIFETIME)
    if kind != Kind.APP:
        of_kind = (central.WORKSPACE_IDLE, central.WORKSPACE_LIFETIME)
    idle = values[of_kind[0].key] if tier.idle_minutes is None else tier.idle_minutes
    lifetime = values[of_kind[1].key] if tier.lifetime_hours is None else tier.lifetime_hours
    minutes = effective(idle, project.idle_minutes, values[central.PROJECT_IDLE_BOUND.key])
    hours = effective(lifetime, project.lifetime_hours, values[central.PROJECT_LIFETIME_BOUND.key])
    return StopLimits(
        idle=timedelta(minutes=minutes) if minutes else None,
        lifetime=timedelta(hours=hours) if hours else None,
        warning=timedelta(minutes=values[central.STOP_WARNING.key]),
        keep=timedelta(hours=values[central.KEEP_TIME.key]),
        extension=timedelta(hours=values[central.LIFETIME_EXTENSION.key]),
    )


def values_in_force() -> dict[str, int]:
    """Return the settings' values by key, with one query."""
    keys = (setting.key for setting in central.SHUTDOWN_SETTINGS)
    return dict(zip(keys, values_of(*central.SHUTDOWN_SETTINGS), strict=True))


@dataclass(frozen=True, slots=True)
class Look:
    """What one look has found. `active_at` is the latest use that is known, in the past. Unknown is never idle."""

    is_known: bool
    is_active: bool = False
    active_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class LookOutcome:
    """A look at one execution, and what it has found in words."""

    observation: Look
    evidence: str


@dataclass(frozen=True, slots=True)
class PlannedStop:
    cause: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Life:
    """What decides about one execution. `active_at` is None before the first look that could tell; `is_idle_known` is what the present look
    says; `announced` is the stop that its owner was told."""

    started_at: datetime
    active_at: datetime | None = None
    is_idle_known: bool = False
    kept_idle_until: datetime | None = None
    kept_lifetime_until: datetime | None = None
    announced: PlannedStop | None = None


@dataclass(frozen=True, slots=True)
class Announce:
    stop: PlannedStop


@dataclass(frozen=True, slots=True)
class Withdraw:
    """The announced stop no longer comes: it is in use again, was kept, the limit was changed, or nobody knows whether it is idle."""


@dataclass(frozen=True, slots=True)
class Stop:
    stop: PlannedStop


Decision = Announce | Withdraw | Stop | None


def last_active(
    before: datetime | None, looked_at: datetime | None, observation: Look, now: datetime
) -> datetime | None:
    """Return since when it is idle; `before` is what the looks up to `looked_at` have found, and after a gap it begins now."""
    if not observation.is_known:
        return before
    if observation.is_active or before is None or looked_at is None or now - looked_at > GAP:
        return now
    return max(before, min(observation.active_at or before, now))


def coming(life: Life, limits: StopLimits) -> list[PlannedStop]:
    """Return the stops that the limits lead to if nothing changes, the earliest first."""
    stops = []
    if limits.idle is not None and life.active_at is not None:
        stops.append(PlannedStop(IDLE, max(life.active_at + limits.idle, life.kept_idle_until or life.active_at)))
    if limits.lifetime is not None:
        end = life.started_at + limits.lifetime
        latest = end + limits.extension
        stops.append(PlannedStop(LIFETIME, max(end, min(life.kept_lifetime_until or end, latest))))
    return sorted(stops, key=lambda stop: stop.at)


def warning_before(cause: str, limits: StopLimits) -> timedelta:
    """Return how long before a stop it is announced."""
    limit = limits.idle if cause == IDLE else limits.lifetime
    return min(limits.warning, (limit or limits.warning) / 2)


def decide(life: Life, limits: StopLimits, now: datetime) -> Decision:
    """Return what to do now. An announced stop is not moved to an earlier time, unless the other limit leads to one, announced as well.
    While nobody can tell whether it is idle, no idle stop is announced, and one whose time has passed is withdrawn."""
    stops = coming(life, limits)
    ready = [stop for stop in stops if stop.cause == LIFETIME or life.is_idle_known]
    announced, coming_now = life.announced, _announcement(ready, limits, now)
    if announced is None:
        return coming_now
    # Whether a limit still leads to the announced stop, or to an earlier one of its cause.
    holds = any(stop.cause == announced.cause and stop.at <= announced.at for stop in stops)
    is_certain = announced.cause == LIFETIME or life.is_idle_known
    if not holds or (not is_certain and now > announced.at + GAP):
        return coming_now or Withdraw()
    if is_certain and now >= announced.at + SETTLED:
        return Stop(announced)
    return coming_now if coming_now is not None and coming_now.stop.at < announced.at - LOOK else None


def keepable_until(stop: PlannedStop, life: Life, limits: StopLimits, now: datetime) -> datetime | None:
    """Return until when one more extension would keep it; None when it may not be kept longer."""
    until = max(stop.at, now) + limits.keep
    if stop.cause == LIFETIME:
        until = min(until, life.started_at + (limits.lifetime or timedelta()) + limits.extension)
    return until if until > max(stop.at, now) else None


def _announcement(stops: Sequence[PlannedStop], limits: StopLimits, now: datetime) -> Announce | None:
    for stop in stops:
        warning = warning_before(stop.cause, limits)
        if now >= stop.at - warning:
            # A look may come a little late; later than that, as after an outage, the whole warning is given.
            is_in_time = now <= stop.at - warning + min(2 * LOOK, warning / 2)
            return Announce(PlannedStop(stop.cause, stop.at if is_in_time else now + warning))
    return None


def idle_words(seconds: float) -> str:
    """Return a time in whole minutes: "52 min", "1 h 5 min"."""
    return exact_duration(max(60, int(seconds) // 60 * 60))


def limit_words(limit: timedelta | None) -> str:
    return exact_duration(int((limit or timedelta()).total_seconds()))


def announcement(stop: PlannedStop, limits: StopLimits, *, idle: float, evidence: str, now: datetime) -> Reason:
    """Return what is said of a coming stop: why, when, what is lost, and how its owner prevents it."""
    values = stop_reason(stop.cause, limits, idle=idle, evidence=evidence).values
    wait, keep = (stop.at - now).total_seconds(), limits.keep.total_seconds()
    return Reason("StopAnnounced", {**values, "wait": wait, "at": stop.at.isoformat(), "keep": keep})


def stop_reason(cause: str, limits: StopLimits, *, idle: float, evidence: str) -> Reason:
    """Return why it was stopped, with the evidence, for its history."""
    lifetime = (limits.lifetime or timedelta()).total_seconds()
    return Reason("StoppedByRule", {"cause": cause, "idle": idle, "evidence": evidence, "lifetime": lifetime})


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
    lifetime = exact_duration(int(values["lifetime"]))
    return _("Stopped at the end of its maximum lifetime of {lifetime}.", lifetime=lifetime)


def _kept_longer(values: Values, reader: Reader) -> str:
    until, instead_of = (datetime.fromisoformat(values[name]) for name in ("until", "instead_of"))
    sentence = _("{name} keeps it until {until:%H:%M} UTC instead of {at:%H:%M} UTC.")
    return sentence.format(name=values["by"], until=until, at=instead_of)


SENTENCES: dict[str, Sentence] = {"StopAnnounced": _announced, "StoppedByRule": _stopped, "KeptLonger": _kept_longer}
