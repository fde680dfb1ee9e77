"""The last half hour of each node's usage: what is kept, for how long, and in how much memory."""

import sys

from grid.metrics.usage import KEPT_MINUTES, RecentUsage, Usage, UsageSample

GIB = 2**30


def minutes(recent: RecentUsage, name: str) -> list[int]:
    return [sample.minute for sample in recent.of(name)]


def test_minute_holds_the_highest_measurement() -> None:
    recent = RecentUsage()
    for cpu, memory in ((200, GIB), (900, GIB), (100, 2 * GIB)):
        recent.add(7, {"n1": Usage(cpu, memory)})
    recent.add(8, {"n1": Usage(300, 0)})
    assert recent.of("n1") == [UsageSample(7, 900, 2048), UsageSample(8, 300, 0)]


def test_a_minute_without_a_measurement_is_a_gap() -> None:
    recent = RecentUsage()
    for minute in (100, 101, 105):
        recent.add(minute, {"n1": Usage(1, GIB)})
    assert minutes(recent, "n1") == [100, 101, 105]


def test_usage_older_than_half_an_hour_is_dropped() -> None:
    recent = RecentUsage()
    for minute in range(1000, 1100):
        recent.add(minute, {"n1": Usage(minute, GIB)})
    assert recent.of("n1") == [UsageSample(minute, minute, 1024) for minute in range(1100 - KEPT_MINUTES, 1100)]
    recent.add(5000, {"n2": Usage(1, GIB)})
    assert recent.of("n1") == []


def test_node_missing_in_a_round_keeps_known_usage() -> None:
    recent = RecentUsage()
    recent.add(10, {"n1": Usage(1, GIB), "n2": Usage(1, GIB)})
    recent.add(11, {"n2": Usage(1, GIB)})
    recent.add(12, {"n1": Usage(1, GIB), "n2": Usage(1, GIB)})
    assert minutes(recent, "n1") == [10, 12]


def test_a_clock_that_was_set_back_loses_nothing() -> None:
    recent = RecentUsage()
    recent.add(50, {"n1": Usage(5, GIB)})
    recent.add(20, {"n1": Usage(7, GIB)})
    assert recent.of("n1") == [UsageSample(50, 7, 1024)]


def test_value_beyond_capacity_is_clamped() -> None:
    recent = RecentUsage()
    recent.add(1, {"n1": Usage(2**40, 2**80)})
    assert recent.of("n1") == [UsageSample(1, 2**32 - 2, 2**32 - 2)]


def test_changing_nodes_take_bounded_memory() -> None:
    recent = RecentUsage()
    for minute in range(1, 500):
        recent.add(minute, {f"node-{minute}": Usage(1, GIB)})
    held = recent._nodes
    assert len(held) == KEPT_MINUTES
    assert all(sys.getsizeof(samples) < 400 for samples in held.values())
