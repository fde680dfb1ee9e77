"""What is left of an error budget: computed from the bad and all of each day of the window; pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from grid.servicelevels.levels import LevelTarget


@dataclass(frozen=True, slots=True)
class LevelDay:
    """What was counted on a day."""

    day: date
    bad: float
    total: float


@dataclass(frozen=True, slots=True)
class LevelStatus:
    """How a service level stands. `attained` is None when nothing was counted in the window; `burn` is how many times faster than allowed
    the budget was used up lately, None when that is not known. `left` is the share of the budget that is left, negative when overspent;
    `days` has the share that was left after each day."""

    target: LevelTarget
    total: float
    bad: float
    attained: float | None
    left: float | None
    burn: float | None
    days: tuple[tuple[date, float], ...]


def status_of(target: LevelTarget, days: Sequence[LevelDay], burn_ratio: float | None) -> LevelStatus:
    """Return the status over the window's days. `burn_ratio` is the share of bad ones lately."""
    counted = sorted((day for day in days if day.total > 0), key=lambda day: day.day)
    # Prometheus extrapolates an increase, so a day may have a little more bad ones than there were at all.
    parts = [(day.day, min(max(day.bad, 0.0), day.total), day.total) for day in counted]
    total, bad = sum(total for _, _, total in parts), sum(bad for _, bad, _ in parts)
    burn = None if burn_ratio is None else min(max(burn_ratio, 0.0), 1.0) / target.budget
    if not total:
        return LevelStatus(target, 0, 0, None, None, burn, ())
    allowed, spent, left = total * target.budget, 0.0, []
    for day, of_day, _ in parts:
        spent += of_day
        left.append((day, 1 - spent / allowed))
    return LevelStatus(target, total, bad, 1 - bad / total, 1 - bad / allowed, burn, tuple(left))
