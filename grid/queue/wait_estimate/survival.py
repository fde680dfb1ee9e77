"""How long executions of one kind last or take to start, from those that did and from those that have not yet: the survival estimate of
Kaplan and Meier; pure. What is still under way counts as "at least so long", so that short ones do not count twice."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from math import inf

FEWEST = 5  # below this number of known durations nothing is said
_FEWEST_LONGER = 2  # of them longer than the present age


class SurvivalCurve:
    """`durations` are pairs of seconds, and whether that was the end."""

    def __init__(self, durations: Iterable[tuple[float, bool]]) -> None:
        ordered = sorted((seconds, not is_over) for seconds, is_over in durations)
        self.known = sum(not is_open for _, is_open in ordered)
        self._times: list[float] = []
        self._ended: list[float] = []  # the share that has ended by that time
        left, alive = len(ordered), 1.0
        for seconds, is_open in ordered:
            if not is_open:
                alive *= (left - 1) / left
                self._times.append(seconds)
                self._ended.append(1.0 - alive)
            left -= 1

    def covers(self, age: float) -> bool:
        """Return whether enough is known to say something of one that is `age` seconds old."""
        return self.known >= FEWEST and (
            age <= 0 or len(self._times) - bisect_right(self._times, age) >= _FEWEST_LONGER
        )

    def remaining(self, share: float, age: float = 0.0) -> float:
        """Return the seconds from `age` within which this share of those of that age ends; infinity when that was never seen."""
        place = bisect_right(self._times, age)
        ended = self._ended[place - 1] if place else 0.0
        index = bisect_left(self._ended, ended + share * (1.0 - ended) - 1e-12, lo=place)
        return max(0.0, self._times[index] - age) if index < len(self._times) else inf
