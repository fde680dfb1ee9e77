"""Which limits hold for one execution: the central configuration, its tier's own values and its project's, within the admin's bounds."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from grid.configuration import (
    APP_IDLE,
    APP_LIFETIME,
    KEEP_TIME,
    LIFETIME_EXTENSION,
    PROJECT_IDLE_BOUND,
    PROJECT_LIFETIME_BOUND,
    SHUTDOWN_SETTINGS,
    STOP_WARNING,
    WORKSPACE_IDLE,
    WORKSPACE_LIFETIME,
    values_of,
)
from grid.models.environment import Kind

KINDS = (Kind.WORKSPACE, Kind.APP)


@dataclass(frozen=True, slots=True)
class OwnLimits:
    """What a tier or a project says itself: None leaves it to the next, 0 is no limit."""

    idle_minutes: int | None = None
    lifetime_hours: int | None = None


@dataclass(frozen=True, slots=True)
class StopLimits:
    """The limits of one execution, None for none. `warning` is announced before a stop, `keep` is what one extension adds, and
    `extension` the most that all together add to a lifetime."""

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
    of_kind = (APP_IDLE, APP_LIFETIME) if kind == Kind.APP else (WORKSPACE_IDLE, WORKSPACE_LIFETIME)
    idle = values[of_kind[0].key] if tier.idle_minutes is None else tier.idle_minutes
    lifetime = values[of_kind[1].key] if tier.lifetime_hours is None else tier.lifetime_hours
    minutes = effective(idle, project.idle_minutes, values[PROJECT_IDLE_BOUND.key])
    hours = effective(lifetime, project.lifetime_hours, values[PROJECT_LIFETIME_BOUND.key])
    return StopLimits(
        idle=timedelta(minutes=minutes) if minutes else None,
        lifetime=timedelta(hours=hours) if hours else None,
        warning=timedelta(minutes=values[STOP_WARNING.key]),
        keep=timedelta(hours=values[KEEP_TIME.key]),
        extension=timedelta(hours=values[LIFETIME_EXTENSION.key]),
    )


def values_in_force() -> dict[str, int]:
    """Return the settings' values by key, with one query."""
    return dict(zip((setting.key for setting in SHUTDOWN_SETTINGS), values_of(*SHUTDOWN_SETTINGS), strict=True))
