"""A log that is read in portions: each line once, whoever reads on and wherever he was broken off."""

from collections.abc import Sequence

from hypothesis import given, strategies as st

from grid.jobs.runmetrics.lines import LogReading
from grid.logs.logplace import LogPlace

# Several lines share a moment, and several moments a second.
GAPS = st.lists(st.sampled_from([0, 1, 400_000_000, 1_000_000_000, 7_000_000_000]), min_size=1, max_size=40)


def log_of(gaps: Sequence[int]) -> list[str]:
    lines, at = [], 0
    for number, gap in enumerate(gaps):
        at += gap
        second, fraction = divmod(at, 1_000_000_000)
        lines.append(
            f'2026-02-02T10:{second // 60:02}:{second % 60:02}.{fraction:09}Z {{"metric": "n", "value": {number}}}\n'
        )
    return lines


def since(place: LogPlace, lines: Sequence[str]) -> bytes:
    """What the kubelet answers: whole seconds count."""
    return "".join(line for line in lines if line[:19] >= place.since[:19]).encode()


def numbers(reading: LogReading) -> list[int]:
    return [int(value) for _, value in reading.measurements.values.get("n", ())]


@given(GAPS, st.lists(st.integers(0, 40), max_size=5), st.integers(1, 200))
def test_log_lines_are_taken_once_despite_interruptions(gaps: list[int], cuts: list[int], chunk: int) -> None:
    lines = log_of(gaps)
    place, taken = LogPlace(), list[int]()
    for end in [*sorted(cuts), len(lines)]:
        reading, answer = LogReading(place), since(place, lines[:end])
        for start in range(0, len(answer), chunk):
            reading.feed(answer[start : start + chunk])
        place, taken = reading.place, taken + numbers(reading)
    assert taken == list(range(len(lines)))


def test_rotated_log_loses_only_what_kubelet_dropped() -> None:
    lines = log_of([0, 1, 1, 1, 1, 1])
    first = LogReading(LogPlace())
    first.feed("".join(lines[:4]).encode())
    second = LogReading(first.place)
    second.feed("".join(lines[5:]).encode())
    assert (numbers(first), numbers(second)) == ([0, 1, 2, 3], [5])


def test_unterminated_last_line_is_taken_only_at_end() -> None:
    (line,) = log_of([0])
    reading = LogReading(LogPlace())
    reading.feed(line.rstrip("\n").encode())
    assert (numbers(reading), reading.place) == ([], LogPlace())
    reading.finish()
    assert (numbers(reading), reading.place.lines) == ([0], 1)


def test_giant_line_takes_no_memory_and_next_is_read() -> None:
    reading = LogReading(LogPlace())
    reading.feed(b'2026-02-02T10:00:00.1Z {"metric": "n", "value": 1, "x": "')
    for _ in range(1000):
        reading.feed(b"x" * 10_000)
    assert len(reading._rest) < 20_000
    reading.feed(b'"}\n' + "".join(log_of([1_000_000_000])).encode())
    assert numbers(reading) == [0]
