"""When an execution is announced to be stopped, and when it is stopped; pure.

Nothing is stopped that was not announced: a stop is told `warning` before (of a short limit, half of it), also after the controller was
away. What happens until the announced time counts, and becomes known up to a minute and a half later, so a stop waits for that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from grid.executions.stopping import IDLE, LIFETIME
from grid.workspaces.shutdown.limits import StopLimits

LOOK = timedelta(minutes=1)
GAP = timedelta(minutes=5)  # nobody has looked for longer than this: what happened then is not known
SETTLED = timedelta(seconds=90)  # proxies write each minute who has used what


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
    announced = life.announced
    if announced is not None and not _holds(announced, stops):
        return _announcement(ready, limits, now) or Withdraw()
    if announced is None:
        return _announcement(ready, limits, now)
    is_certain = announced.cause == LIFETIME or life.is_idle_known
    if is_certain and now >= announced.at + SETTLED:
        return Stop(announced)
    if not is_certain and now > announced.at + GAP:
        return _announcement(ready, limits, now) or Withdraw()
    earlier = _announcement(ready, limits, now)
    return earlier if earlier is not None and earlier.stop.at < announced.at - LOOK else None


def keepable_until(stop: PlannedStop, life: Life, limits: StopLimits, now: datetime) -> datetime | None:
    """Return until when one more extension would keep it; None when it may not be kept longer."""
    until = max(stop.at, now) + limits.keep
    if stop.cause == LIFETIME:
        until = min(until, life.started_at + (limits.lifetime or timedelta()) + limits.extension)
    return until if until > max(stop.at, now) else None


def _holds(announced: PlannedStop, stops: Sequence[PlannedStop]) -> bool:
    """Return whether a limit still leads to the announced stop, or to an earlier one of its cause."""
    return any(stop.cause == announced.cause and stop.at <= announced.at for stop in stops)


def _announcement(stops: Sequence[PlannedStop], limits: StopLimits, now: datetime) -> Announce | None:
    for stop in stops:
        warning = warning_before(stop.cause, limits)
        if now >= stop.at - warning:
            # A look may come a little late; later than that, as after an outage, the whole warning is given.
            is_in_time = now <= stop.at - warning + min(2 * LOOK, warning / 2)
            return Announce(PlannedStop(stop.cause, stop.at if is_in_time else now + warning))
    return None
