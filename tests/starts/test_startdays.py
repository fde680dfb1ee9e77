"""The starts of a day added up: percentiles beside the exact ones, and that what is taken away was never there."""

import math
from itertools import starmap

from hypothesis import given, strategies as st

from grid.starts.startdays import (
    ACCURACY_PERCENT,
    SLOWEST,
    WHOLE,
    StartSums,
    count,
    percentile,
    read_sums,
    seconds_together,
    sums_text,
    together,
    whole_percentile,
)

TIMES = st.lists(st.floats(0, 200_000), min_size=1, max_size=60)
COUNTED = st.tuples(TIMES, st.none() | st.booleans(), st.none() | st.booleans())


def summed(times: list[float], cached: bool | None = None, new_node: bool | None = None) -> StartSums:
    sums = StartSums()
    for number, seconds in enumerate(times):
        count(sums, f"e{number}", {WHOLE: seconds}, image_cached=cached, node_started=new_node)
    return sums


def is_close(value: float | None, exact: float) -> bool:
    if value is None:
        return False
    return value == 0 if exact < 0.05 else abs(value - exact) <= exact * ACCURACY_PERCENT / 100


@given(TIMES, st.integers(1, 100))
def test_percentile_is_within_accuracy_of_exact_one(times: list[float], percent: int) -> None:
    exact = sorted(times)[math.ceil(len(times) * percent / 100) - 1]
    assert is_close(percentile(summed(times).times[WHOLE], percent), exact)


@given(st.lists(TIMES, max_size=4), st.integers(1, 100))
def test_whole_percentile_is_accurate_and_exact_for_few(days: list[list[float]], percent: int) -> None:
    times = sorted(seconds for day in days for seconds in day)
    value = whole_percentile(together(map(summed, days)), percent)
    if not times:
        assert value is None
        return
    exact = times[math.ceil(len(times) * percent / 100) - 1]
    assert is_close(value, exact) or value == exact
    assert value == exact or len(times) > SLOWEST


@given(TIMES)
def test_the_time_together_is_within_the_accuracy_too(times: list[float]) -> None:
    exact = math.fsum(seconds for seconds in times if seconds >= 0.05)
    assert abs(seconds_together(summed(times).times[WHOLE]) - exact) <= exact * ACCURACY_PERCENT / 100


@given(st.lists(COUNTED, max_size=6))
def test_summed_days_equal_a_single_day_of_all(days: list[tuple[list[float], bool | None, bool | None]]) -> None:
    whole = StartSums()
    for times, cached, new_node in days:
        for number, seconds in enumerate(times):
            count(whole, f"e{number}", {WHOLE: seconds}, image_cached=cached, node_started=new_node)
    assert together(starmap(summed, days)) == whole


@given(TIMES, st.floats(0, 1000))
def test_a_start_that_is_taken_away_again_leaves_nothing(times: list[float], seconds: float) -> None:
    before = summed(times[: SLOWEST - 1])
    sums = read_sums(sums_text(before))
    for sign in (1, -1):
        count(sums, "late", {WHOLE: seconds, "pulling": 1}, image_cached=False, node_started=True, times=sign)
    assert sums == before


def test_a_percentile_of_nothing_is_not_known() -> None:
    assert percentile({}, 50) is None


def test_the_slowest_are_kept_and_no_more() -> None:
    sums = summed([float(number) for number in range(SLOWEST + 5)])
    assert sums.slowest[0] == (SLOWEST + 4.0, f"e{SLOWEST + 4}")
    assert len(sums.slowest) == SLOWEST
