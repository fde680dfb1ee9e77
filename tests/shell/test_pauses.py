"""Nothing that grows with the cluster is done at once on the event loop, or looked at by the garbage collector."""

import random

import pytest

from dashboard.shell.viewmodels.window import MERGED_AT_ONCE, OrderedWindow


def test_runs_are_merged_in_steps_into_one_order() -> None:
    window, numbers = OrderedWindow[int](sort_key=lambda number: -number), list(range(3 * MERGED_AT_ONCE))
    random.Random(1).shuffle(numbers)
    for place, number in enumerate(numbers):
        window.append(str(number), number)
        if place % 100 == 99:
            window.end_run()
    assert sum(1 for _ in window.merge_runs()) == 3
    assert list(window.page(1, len(numbers)).items) == sorted(numbers, reverse=True)
    assert window.put("7.5", 7) == len(numbers) - 7


@pytest.mark.parametrize("is_reversed", [False, True])
def test_page_of_unmerged_runs_is_in_order(is_reversed: bool) -> None:
    window, numbers = OrderedWindow[int](sort_key=lambda number: number, is_reversed=is_reversed), list(range(90))
    random.Random(1).shuffle(numbers)
    for place, number in enumerate(numbers):
        window.append(str(number), number)
        if place % 10 == 9:
            window.end_run()
    expected = sorted(numbers, reverse=is_reversed)
    assert list(window.page(2, 20).items) == expected[20:40]
    merging = window.merge_runs()
    next(merging)
    assert list(window.page(2, 20).items) == expected[20:40]
