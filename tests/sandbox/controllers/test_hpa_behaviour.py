"""How fast replicas may change: what an autoscaler's behaviour says, and what windows, policies and bounds make of it."""

from datetime import UTC, datetime, timedelta

import pytest

from grid.sandbox.controllers.scaling.behaviour import (
    KEPT_DOWN,
    KEPT_UP,
    TOO_FAST_DOWN,
    TOO_FAST_UP,
    TOO_FEW,
    TOO_MANY,
    UNSTABILISED,
    WITHIN,
    Behaviour,
    ReplicaBounds,
    Rules,
    ScalingPolicy,
    limit,
    read_behaviour,
    read_tolerance,
    remember_rescale,
    stabilise,
)
from grid.sandbox.controllers.scaling.model import Memory, Recommendation, Rescale, ScalingSettings, Tolerance

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
SETTINGS = ScalingSettings()
FRESH = Memory()


def test_unset_behaviour_has_kubernetes_defaults() -> None:
    assert read_behaviour({}, SETTINGS) is None
    behaviour = read_behaviour({"behavior": {}}, SETTINGS)
    quarter = timedelta(seconds=15)
    both = (ScalingPolicy("Pods", 4, quarter), ScalingPolicy("Percent", 100, quarter))
    assert behaviour == Behaviour(
        Rules(timedelta(), "Max", both), Rules(timedelta(minutes=5), "Max", (ScalingPolicy("Percent", 100, quarter),))
    )


def test_set_behaviour_is_used_even_when_empty() -> None:
    policy = {"type": "Pods", "value": 1, "periodSeconds": 60}
    up = {"stabilizationWindowSeconds": 30, "selectPolicy": "Min", "policies": [policy]}
    behaviour = read_behaviour({"behavior": {"scaleUp": up, "scaleDown": {"stabilizationWindowSeconds": 0}}}, SETTINGS)
    assert behaviour is not None
    assert behaviour.up == Rules(timedelta(seconds=30), "Min", (ScalingPolicy("Pods", 1, timedelta(minutes=1)),))
    assert behaviour.down.window == timedelta()


def test_tolerance_is_per_direction_with_default_tenth() -> None:
    assert read_tolerance({}, SETTINGS) == Tolerance(down=0.1, up=0.1)
    assert read_tolerance({"behavior": {"scaleUp": {"tolerance": "50m"}}}, SETTINGS) == Tolerance(down=0.1, up=0.05)
    assert read_tolerance({"behavior": {"scaleDown": {"tolerance": "0"}}}, SETTINGS) == Tolerance(down=0, up=0.1)


@pytest.mark.parametrize(
    ("current", "desired", "expected"),
    [
        (1, 9, (4, "ScaleUpLimit")),
        (3, 9, (6, "ScaleUpLimit")),
        (3, 6, (6, "DesiredWithinRange")),
        (30, 60, (50, "TooManyReplicas")),
        (9, 1, (2, "TooFewReplicas")),
        (9, 2, (2, "DesiredWithinRange")),
    ],
)
def test_step_without_behaviour_doubles_at_most_and_shrinks_freely(
    current: int, desired: int, expected: tuple[int, str]
) -> None:
    replicas, (reason, _) = limit(None, FRESH, current, desired, ReplicaBounds(2, 50), NOW)
    assert (replicas, reason) == expected


def test_only_changes_within_policy_period_count() -> None:
    minute = timedelta(minutes=1)
    behaviour = Behaviour(
        Rules(timedelta(), "Max", (ScalingPolicy("Pods", 4, minute),)),
        Rules(timedelta(), "Max", (ScalingPolicy("Pods", 3, minute),)),
    )
    changes = (Rescale(NOW - minute, 7), Rescale(NOW - minute / 2, 2))
    grown, shrunk = Memory(ups=changes), Memory(downs=changes)
    assert limit(behaviour, grown, 10, 40, ReplicaBounds(1, 50), NOW)[0] == 12
    assert limit(behaviour, shrunk, 10, 1, ReplicaBounds(1, 50), NOW)[0] == 9
    assert remember_rescale(behaviour, grown, 10, 12, NOW).ups == (changes[1], Rescale(NOW, 2))
    assert remember_rescale(behaviour, shrunk, 10, 9, NOW).downs == (changes[1], Rescale(NOW, 1))
    assert remember_rescale(None, grown, 10, 12, NOW) is grown


def test_a_percentage_rounds_in_favour_of_change() -> None:
    tenth = (ScalingPolicy("Percent", 10, timedelta(minutes=1)),)
    behaviour = Behaviour(Rules(timedelta(), "Max", tenth), Rules(timedelta(), "Max", tenth))
    assert limit(behaviour, FRESH, 11, 40, ReplicaBounds(1, 50), NOW) == (13, TOO_FAST_UP)
    assert limit(behaviour, FRESH, 11, 1, ReplicaBounds(1, 50), NOW) == (9, TOO_FAST_DOWN)
    half = (ScalingPolicy("Percent", 50, timedelta(minutes=1)),)
    behaviour = Behaviour(Rules(timedelta(), "Max", half), Rules(timedelta(), "Max", half))
    assert limit(behaviour, FRESH, 404, 999, ReplicaBounds(1, 999), NOW)[0] == 606
    assert limit(behaviour, FRESH, 404, 1, ReplicaBounds(1, 999), NOW)[0] == 202


def test_bound_is_the_reason_when_it_meets_the_speed() -> None:
    step = (ScalingPolicy("Pods", 2, timedelta(minutes=1)),)
    behaviour = Behaviour(Rules(timedelta(), "Max", step), Rules(timedelta(), "Max", step))
    assert limit(None, FRESH, 2, 9, ReplicaBounds(1, 4), NOW) == (4, TOO_MANY)
    assert limit(behaviour, FRESH, 2, 9, ReplicaBounds(1, 4), NOW) == (4, TOO_MANY)
    assert limit(behaviour, FRESH, 5, 1, ReplicaBounds(3, 9), NOW) == (3, TOO_FEW)


def test_disabled_direction_stays_with_too_fast_reason() -> None:
    off = Rules(timedelta(), "Disabled", (ScalingPolicy("Pods", 9, timedelta(minutes=1)),))
    behaviour = Behaviour(off, off)
    assert limit(behaviour, FRESH, 5, 9, ReplicaBounds(1, 50), NOW) == (5, TOO_FAST_UP)
    assert limit(behaviour, FRESH, 5, 2, ReplicaBounds(1, 50), NOW) == (5, TOO_FAST_DOWN)
    assert limit(behaviour, FRESH, 5, 5, ReplicaBounds(1, 50), NOW) == (5, WITHIN)


def test_recommendations_in_window_hold_replicas_and_older_are_dropped() -> None:
    def recommended(seconds: float, replicas: int) -> Recommendation:
        return Recommendation(NOW - timedelta(seconds=seconds), replicas)

    memory = Memory(recommendations=(recommended(301, 30), recommended(300, 9), recommended(10, 8)))
    stable, reason, later = stabilise(None, memory, 10, 5, SETTINGS, NOW)
    assert (stable, reason) == (9, KEPT_UP)
    assert later.recommendations == (recommended(300, 9), recommended(10, 8), Recommendation(NOW, 5))
    behaviour = Behaviour(Rules(timedelta(seconds=60), "Max", ()), Rules(timedelta(seconds=300), "Max", ()))
    low = Memory(recommendations=(recommended(60, 1), recommended(59, 12), recommended(300, 40)))
    assert stabilise(behaviour, low, 10, 20, SETTINGS, NOW)[:2] == (12, KEPT_DOWN)
    assert stabilise(behaviour, low, 10, 10, SETTINGS, NOW)[:2] == (10, UNSTABILISED)
    assert stabilise(behaviour, low, 20, 5, SETTINGS, NOW)[:2] == (12, KEPT_UP)
