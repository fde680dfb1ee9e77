"""How long failures are waited out."""

import random

from grid.core.backoff import Backoff


class Drawn(random.Random):
    """Draws the least or the most of every range."""

    def __init__(self, most: bool) -> None:
        super().__init__()
        self._most = most

    def uniform(self, a: float, b: float) -> float:
        return b if self._most else a


def test_delays_double_to_a_maximum_and_restart_after_success() -> None:
    backoff = Backoff(rng=Drawn(most=True))
    assert [backoff.next() for _ in range(7)] == [0.5, 1, 2, 4, 8, 15, 15]
    backoff.reset()
    assert backoff.next() == 0.5


def test_each_delay_is_drawn_from_its_upper_half() -> None:
    backoff = Backoff(first=2, longest=9, rng=Drawn(most=False))
    assert [backoff.next() for _ in range(4)] == [1, 2, 4, 4.5]


def test_years_of_failures_change_nothing() -> None:
    backoff = Backoff(rng=Drawn(most=True))
    assert {backoff.next() for _ in range(5000)} == {0.5, 1, 2, 4, 8, 15}
