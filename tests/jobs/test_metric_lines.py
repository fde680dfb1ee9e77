"""Which lines of a program's output measure something, and what is kept of a metric's values."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, strategies as st

from grid.jobs.runmetrics.lines import LONGEST_LINE, LONGEST_NAME, measured
from grid.jobs.runmetrics.store import MOST_POINTS, Series, extended

HOSTILE = "<script>alert(1)</script>"
VALUES = st.lists(st.floats(-10, 10, width=16), max_size=1500)


@pytest.mark.parametrize(
    ("line", "step", "values", "refused"),
    [
        ('{"metric": "loss", "value": 0.31, "step": 12}', 12, {"loss": 0.31}, 0),
        ('  {"step": 12, "loss": 0.31, "accuracy": 0.9}\r', 12, {"loss": 0.31, "accuracy": 0.9}, 0),
        ('{"epoch": 2, "loss": 0.5}', 2, {"loss": 0.5}, 0),
        ('{"step": 7, "epoch": 2, "loss": 0.5}', 7, {"epoch": 2, "loss": 0.5}, 0),
        ('{"step": 1.5, "loss": 1, "best": true, "note": "x", "more": {"a": 1}, "no": null}', 1.5, {"loss": 1}, 0),
        ('{"step": 3, "loss": NaN, "accuracy": 0.5}', 3, {"accuracy": 0.5}, 1),
        (f'{{"metric": "loss", "value": {"9" * 400}}}', None, {}, 1),
        ('{"step": 1, "a\\u0000b": 1, "a\\u202eb": 2, "line\\nfeed": 3, " blank": 4}', 1, {}, 4),
        (json.dumps({"step": 1, "x" * LONGEST_NAME: 1, "y" * (LONGEST_NAME + 1): 2}), 1, {"x" * LONGEST_NAME: 1}, 1),
        (json.dumps({"step": 1, HOSTILE: 1, "__proto__": 2}), 1, {HOSTILE: 1, "__proto__": 2}, 0),
    ],
)
def test_a_line_with_numbers_is_measured(line: str, step: float | None, values: dict[str, float], refused: int) -> None:
    line_values = measured(line.encode())
    assert line_values is not None
    assert (line_values.step, dict(line_values.values), line_values.refused) == (step, values, refused)


@pytest.mark.parametrize(
    "line",
    [
        *("", "loss: 0.31", "{'step': 1, 'loss': 0.3}", '[{"step": 1, "loss": 1}]', '{"step": 1, "loss": 0x10}'),
        '{"level": "info", "ts": 1732500000.1, "msg": "started"}',
        *('{"step": 1}', '{"step": null, "loss": 1}', '{"step": NaN, "loss": 1}', '{"step": true, "loss": 1}'),
        *('{"metric": "loss", "value": "0.3"}', '{"metric": "loss", "value": 1e999}'),
        '{"step": 1, "loss": 1} {"step": 2, "loss": 1}',
        "{" * 5000 + "}" * 5000,
        '{"step": 1, "a": ' + "[" * 5000 + "NaN" + "]" * 5000 + "}",
        '{"step": 1, "loss": 1, "text": "' + "x" * LONGEST_LINE + '"}',
    ],
)
def test_any_other_line_measures_nothing(line: str) -> None:
    assert measured(line.encode()) is None


@given(st.binary(max_size=300))
def test_metric_lines_take_any_bytes(line: bytes) -> None:
    measured(line)
    measured(b'{"step": 1, ' + line + b"}")


@given(
    st.dictionaries(
        st.text(max_size=5), st.recursive(st.none() | st.floats() | st.integers() | st.text(), st.lists, max_leaves=5)
    )
)
def test_json_lines_never_raise_or_yield_infinite_values(members: dict[str, Any]) -> None:
    line = measured(json.dumps({"step": 1, **members}).encode())
    for _, value in line.values if line else ():
        assert abs(value) < float("inf")


def in_portions(values: Sequence[float], sizes: Sequence[int]) -> Series:
    series, left = Series(), list(values)
    for size in [*sizes, len(left)]:
        series, left = extended(series, [(None, value) for value in left[:size]]), left[size:]
        series = Series(
            series.count, [(int(n), step, value) for n, step, value in json.loads(json.dumps(series.points))]
        )
    return series


@given(VALUES, st.lists(st.integers(0, 400), max_size=6))
def test_kept_values_do_not_depend_on_portions(values: list[float], sizes: list[int]) -> None:
    assert in_portions(values, sizes) == in_portions(values, [])


@given(VALUES)
def test_first_last_lowest_and_highest_values_are_kept(values: list[float]) -> None:
    series = in_portions(values, [])
    kept = [value for _, _, value in series.points]
    assert (series.count, len(kept) <= MOST_POINTS) == (len(values), True)
    if values:
        assert (kept[0], kept[-1], min(kept), max(kept)) == (values[0], values[-1], min(values), max(values))
        assert all(values[number] == value for number, _, value in series.points)


def test_few_values_stay_complete_and_many_are_thinned_evenly() -> None:
    few = extended(Series(), [(step, 1.0) for step in range(250)])
    assert len(few.points) == 250
    many = Series()
    for start in range(0, 1_000_000, 50_000):
        many = extended(many, [(step, float(step % 97)) for step in range(start, start + 50_000)])
    gaps = [after[0] - before[0] for before, after in zip(many.points, many.points[1:], strict=False)]
    assert (many.count, 250 <= len(many.points) <= MOST_POINTS) == (1_000_000, True)
    assert max(gaps) <= 2 * 4096
