"""What holds for every autoscaler, whatever is measured: bounds, tolerance, policies, stabilisation."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.sandbox.controllers.scaling.behaviour import read_behaviour
from grid.sandbox.controllers.scaling.model import Change, Memory, PodState, PodUsage, Recommendation, Settings, Usage
from grid.sandbox.controllers.scaling.reading import read_duration, read_selector, write_amount
from grid.sandbox.controllers.scaling.sync import Decision, Scale, Situation, conclude, decide
from grid.sandbox.controllers.selectors import matches_labels

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=1)
SETTINGS = Settings()
FRESH = Memory()

policies = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["Pods", "Percent"]),
            "value": st.integers(1, 200),
            "periodSeconds": st.integers(1, 600),
        }
    ),
    min_size=1,
    max_size=3,
)
rules = st.fixed_dictionaries(
    {
        "policies": policies,
        "selectPolicy": st.sampled_from(["Max", "Min", "Disabled"]),
        "stabilizationWindowSeconds": st.integers(0, 600),
    }
)
behaviours = st.none() | st.fixed_dictionaries({}, optional={"scaleUp": rules, "scaleDown": rules})
moments = st.integers(0, 900).map(lambda seconds: NOW - timedelta(seconds=seconds))
memories = st.builds(
    Memory,
    recommendations=st.lists(st.builds(Recommendation, moments, st.integers(1, 60)), max_size=6).map(tuple),
    ups=st.lists(st.builds(Change, moments, st.integers(1, 20)), max_size=4).map(tuple),
    downs=st.lists(st.builds(Change, moments, st.integers(1, 20)), max_size=4).map(tuple),
)


def autoscaler(minimum: int = 1, maximum: int = 50, *, behaviour: object = None, target: int = 50) -> dict[str, Any]:
    metric = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": target}}
    spec: dict[str, Any] = {
        "minReplicas": minimum,
        "maxReplicas": maximum,
        "metrics": [{"type": "Resource", "resource": metric}],
    }
    return {"spec": spec if behaviour is None else {**spec, "behavior": behaviour}}


def pod(name: str, *, phase: str = "Running", ready: bool = True) -> PodState:
    return PodState(name, phase, False, ready, LONG_AGO + timedelta(minutes=1), LONG_AGO, (("app", {"cpu": 1000}),))


def decision(
    scaler: dict[str, Any], usages: Sequence[int | None], memory: Memory = FRESH, *, replicas: int | None = None
) -> Decision:
    """One pod with a request of one core for each usage; None: nobody measured it."""
    pods = [pod(f"web-{number}") for number in range(len(usages))]
    measured = {
        f"web-{number}": PodUsage({"app": {"cpu": used}}, NOW, timedelta(seconds=10))
        for number, used in enumerate(usages)
        if used is not None
    }
    scale = Scale(len(usages) if replicas is None else replicas, "app=web")
    return decide(Situation(scaler, scale, pods, Usage("default", measured)), memory, SETTINGS, NOW)


usage_lists = st.lists(st.none() | st.integers(0, 4000), min_size=1, max_size=40)


@given(st.integers(1, 20), st.integers(0, 30), behaviours, memories, usage_lists, st.integers(1, 100))
def test_replicas_stay_within_their_bounds(
    minimum: int, more: int, behaviour: object, memory: Memory, usages: list[int | None], replicas: int
) -> None:
    scaler = autoscaler(minimum, minimum + more, behaviour=behaviour)
    decided = decision(scaler, usages, memory, replicas=replicas).replicas
    assert decided is None or minimum <= decided <= minimum + more


@given(st.integers(1, 40), st.integers(450, 550), st.booleans())
def test_within_the_tolerance_nothing_changes(count: int, used: int, with_behaviour: bool) -> None:
    scaler = autoscaler(behaviour={"scaleUp": {}, "scaleDown": {}} if with_behaviour else None)
    decided = decision(scaler, [used] * count)
    assert decided.replicas == count
    assert not decided.rescale


@given(rules, memories, st.integers(1, 20), st.integers(0, 4000))
def test_growing_never_passes_what_the_policies_allow(
    up: dict[str, Any], memory: Memory, count: int, used: int
) -> None:
    decided = decision(autoscaler(maximum=1000, behaviour={"scaleUp": up}), [used] * count, memory).replicas
    assert decided is not None
    allowed = []
    for policy in up["policies"]:
        since = NOW - timedelta(seconds=policy["periodSeconds"])
        added = sum(change.replicas for change in memory.ups if change.at > since)
        start = count - added + sum(change.replicas for change in memory.downs if change.at > since)
        grown = start + policy["value"] if policy["type"] == "Pods" else start * (100 + policy["value"]) / 100 + 1
        allowed.append(grown)
    most = {"Max": max(allowed), "Min": min(allowed), "Disabled": count}[up["selectPolicy"]]
    assert decided <= max(most, count)


@given(behaviours, memories, st.integers(1, 30), st.integers(0, 500))
def test_shrinking_stops_at_the_highest_recent_recommendation(
    behaviour: dict[str, Any] | None, memory: Memory, count: int, used: int
) -> None:
    scaler = autoscaler(behaviour=behaviour)
    decided = decision(scaler, [used] * count, memory).replicas
    read = read_behaviour(scaler["spec"], SETTINGS)
    window = read.down.window if read else timedelta(seconds=SETTINGS.down_seconds)
    recent = [item.replicas for item in memory.recommendations if item.at > NOW - window]
    assert decided is not None
    assert decided >= min([count, max(recent, default=0)])


@given(usage_lists)
def test_pods_that_nobody_measured_never_turn_the_direction_round(usages: list[int | None]) -> None:
    known = [used for used in usages if used is not None]
    decided = decision(autoscaler(behaviour={"scaleDown": {"stabilizationWindowSeconds": 0}}), usages).replicas
    if not known:
        assert decided is None
    else:
        share = sum(known) * 100 // (1000 * len(known))
        assert decided is not None
        assert decided >= len(usages) if share > 50 else decided <= len(usages)


def test_a_refused_resize_is_told_and_counts_for_no_policy() -> None:
    scaler = autoscaler(behaviour={"scaleUp": {}})
    scale = Scale(1, "app=web")
    usage = Usage("default", {"web-0": PodUsage({"app": {"cpu": 1000}}, NOW, timedelta(seconds=10))})
    situation = Situation(scaler, scale, [pod("web-0")], usage)
    outcome = conclude(situation, decide(situation, Memory(), SETTINGS, NOW), SETTINGS, NOW, refusal="try later")
    assert outcome.memory.ups == ()
    assert [item.reason for item in outcome.events] == ["FailedRescale"]
    assert outcome.events[0].message == (
        "New size: 2; reason: cpu resource utilization (percentage of request) above target; error: try later"
    )
    able = outcome.status["conditions"][0]
    assert (able["status"], able["reason"]) == ("False", "FailedUpdateScale")
    assert "lastScaleTime" not in outcome.status


def test_a_restart_does_not_shrink_at_once() -> None:
    assert decision(autoscaler(), [0] * 8).replicas == 8


@pytest.mark.parametrize(
    ("resource", "thousandths", "text"),
    [
        ("cpu", 0, "0"),
        ("cpu", 17, "17m"),
        ("cpu", 2000, "2"),
        ("cpu", 1_000_000, "1k"),
        ("memory", 128 * 2**20 * 1000, "128Mi"),
        ("memory", 1025 * 1000, "1025"),
        ("memory", 1024 * 1000 - 1, "1Ki"),
        ("memory", 0, "0"),
    ],
)
def test_amounts_are_written_in_their_shortest_exact_form(resource: str, thousandths: int, text: str) -> None:
    assert write_amount(resource, thousandths) == text


@pytest.mark.parametrize(
    ("text", "matching", "other"),
    [
        ("app=web,tier=worker", {"app": "web", "tier": "worker"}, {"app": "web"}),
        ("tier in (a,b),app=web", {"app": "web", "tier": "b"}, {"app": "web", "tier": "c"}),
        ("app=web,tier notin (a, b)", {"app": "web"}, {"app": "web", "tier": "b"}),
        ("!old,app", {"app": "x"}, {"app": "x", "old": ""}),
        ("app!=web", {"app": "x"}, {"app": "web"}),
    ],
)
def test_the_text_of_a_selector_selects_the_same(text: str, matching: dict[str, str], other: dict[str, str]) -> None:
    assert matches_labels(read_selector(text), matching)
    assert not matches_labels(read_selector(text), other)


def test_durations_are_read_as_go_writes_them() -> None:
    assert read_duration("1m30s") == timedelta(seconds=90)
    assert read_duration("15.2s") == timedelta(seconds=15.2)
    assert read_duration("500ms") == timedelta(seconds=0.5)
