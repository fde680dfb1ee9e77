"""The last half hour of each node's usage: what is kept, for how long, and in how much memory."""

import sys

import pytest

from grid.metrics.usage import KEPT_MINUTES, RecentUsage, Usage, UsageSample

GIB = 2**30


@pytest.mark.parametrize(
    ("rounds", "samples"),
    [
        ([(7, 200, GIB), (7, 900, GIB), (7, 100, 2 * GIB), (8, 300, 0)], [(7, 900, 2048), (8, 300, 0)]),
        ([(100, 1, GIB), (101, 1, GIB), (105, 1, GIB)], [(100, 1, 1024), (101, 1, 1024), (105, 1, 1024)]),
        ([(50, 5, GIB), (20, 7, GIB)], [(50, 7, 1024)]),
        ([(1, 2**40, 2**80)], [(1, 2**32 - 2, 2**32 - 2)]),
    ],
    ids=["the highest of a minute", "a gap", "a clock that was set back", "beyond capacity"],
)
def test_each_measured_minute_has_a_sample(
    rounds: list[tuple[int, int, int]], samples: list[tuple[int, int, int]]
) -> None:
    recent = RecentUsage()
    for minute, cpu, memory in rounds:
        recent.add(minute, {"n1": Usage(cpu, memory)})
    assert recent.of("n1") == samples


def test_usage_older_than_half_an_hour_is_dropped() -> None:
    recent = RecentUsage()
    for minute in range(1000, 1100):
        recent.add(minute, {"n1": Usage(minute, GIB)})
    assert recent.of("n1") == [UsageSample(minute, minute, 1024) for minute in range(1100 - KEPT_MINUTES, 1100)]
    recent.add(5000, {"n2": Usage(1, GIB)})
    assert recent.of("n1") == []


def test_changing_nodes_take_bounded_memory() -> None:
    recent = RecentUsage()
    for minute in range(1, 500):
        recent.add(minute, {f"node-{minute}": Usage(1, GIB)})
    held = recent._nodes
    assert len(held) == KEPT_MINUTES
    assert all(sys.getsizeof(samples) < 400 for samples in held.values())
