"""What is left of an error budget."""

from datetime import date, timedelta

import pytest

from grid.servicelevels.levels import LevelDay, default_targets, status_of

FIRST = date(2026, 3, 1)
STARTS = next(target for target in default_targets() if target.level.id == "start-time")  # 95 %


def days(*counted: tuple[float, float]) -> list[LevelDay]:
    return [LevelDay(FIRST + timedelta(days=number), bad, total) for number, (bad, total) in enumerate(counted)]


def test_budget_is_spent_by_bad_events_of_all_days() -> None:
    status = status_of(STARTS, days((0, 100), (2, 200), (8, 100)), burn_ratio=0.1)
    assert (status.bad, status.total, status.attained) == (10, 400, 0.975)
    assert status.left == pytest.approx(0.5)
    assert [round(left, 3) for _, left in status.days] == [1, 0.9, 0.5]
    assert status.burn == pytest.approx(2)
    overspent = status_of(STARTS, days((10, 100)), burn_ratio=None)
    assert overspent.left == pytest.approx(-1)
    assert overspent.burn is None


def test_empty_days_are_neutral_and_empty_level_undecided() -> None:
    assert status_of(STARTS, days((0, 0), (1, 10)), None).total == 10
    nothing = status_of(STARTS, days((0, 0)), None)
    assert (nothing.attained, nothing.left, nothing.days) == (None, None, ())


def test_bad_count_above_total_is_capped() -> None:
    status = status_of(STARTS, days((10.3, 10), (-0.2, 10)), burn_ratio=1.2)
    assert (status.bad, status.attained) == (10, 0.5)
    assert status.burn == pytest.approx(20)
