"""A list is sorted in runs that are merged piece by piece, and its pages are in order at each moment."""

import random

import pytest

from dashboard.shell.viewmodels.window import OrderedWindow


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
