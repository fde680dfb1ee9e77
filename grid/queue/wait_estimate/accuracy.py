"""How right expected waits were; pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from grid.core.translation import gettext as _

FEWEST_OUTCOMES = 10
NEAR, NEAR_SECONDS = 0.3, 10.0


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How many of the latest predictions were near what happened. `sentence` is "" below `FEWEST_OUTCOMES`."""

    near: int = 0
    all: int = 0

    @property
    def sentence(self) -> str:
        if self.all < FEWEST_OUTCOMES:
            return ""
        return _(
            "{near} of the last {all} expected waits were within 30 % or 10 seconds of what happened.",
            near=self.near,
            all=self.all,
        )


def is_near(expected: float, actual: float) -> bool:
    """Return whether a prediction was right enough: 30 % off at most, or 10 seconds."""
    return abs(expected - actual) <= max(NEAR * actual, NEAR_SECONDS)


def accuracy_of(outcomes: Iterable[tuple[float | None, float | None]]) -> Accuracy:
    pairs = [(expected, actual) for expected, actual in outcomes if expected is not None and actual is not None]
    return Accuracy(sum(is_near(expected, actual) for expected, actual in pairs), len(pairs))
