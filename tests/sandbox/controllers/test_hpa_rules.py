"""What holds for every autoscaler, whatever is measured: bounds, tolerance, policies, stabilisation."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st

from grid.sandbox.controllers.scaling.behaviour import read_behaviour
from grid.sandbox.controllers.scaling.model import (
    Memory,
    NamespaceUsage,
    PodMetrics,
    PodState,
    Recommendation,
    Rescale,
    ScalingSettings,
)
from grid.sandbox.controllers.scaling.reading import read_duration, read_pod, read_selector, read_usage, write_amount
from grid.sandbox.controllers.scaling.sync import Scale, ScalingDecision, Situation, conclude, decide, without_scale
from grid.sandbox.controllers.selectors import matches_labels

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=1)
SETTINGS = ScalingSettings()
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
    ups=st.lists(st.builds(Rescale, moments, st.integers(1, 20)), max_size=4).map(tuple),
    downs=st.lists(st.builds(Rescale, moments, st.integers(1, 20)), max_size=4).map(tuple),
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


def using(cpu: int) -> PodMetrics:
    return PodMetrics({"app": {"cpu": cpu}}, NOW, timedelta(seconds=10))


def decision(
    scaler: dict[str, Any], usages: Sequence[int | None], memory: Memory = FRESH, *, replicas: int | None = None
) -> ScalingDecision:
    """One pod with a request of one core for each usage; None: nobody measured it."""
    pods = [pod(f"web-{number}") for number in range(len(usages))]
    measured = {f"web-{number}": using(used) for number, used in enumerate(usages) if used is not None}
    scale = Scale(len(usages) if replicas is None else replicas, "app=web")
    return decide(Situation(scaler, scale, pods, NamespaceUsage("default", measured)), memory, SETTINGS, NOW)


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


def test_container_requests_and_usage_add_up() -> None:
    two = replace(pod("web-0"), requests=(("app", {"cpu": 300}), ("sidecar", {"cpu": 700})))
    used = PodMetrics({"app": {"cpu": 400}, "sidecar": {"cpu": 100}}, NOW, timedelta(seconds=10))
    situation = Situation(autoscaler(), Scale(1, "app=web"), [two], NamespaceUsage("default", {"web-0": used}))
    decided = decide(situation, FRESH, SETTINGS, NOW)
    assert decided.metrics is not None
    assert decided.metrics[0]["resource"]["current"] == {"averageValue": "500m", "averageUtilization": 50}


@pytest.mark.parametrize(
    ("pods", "problem"),
    [
        ([pod("web-0")], "no metrics returned matched known pods"),
        ([], "no pods returned by selector while calculating replica count"),
    ],
    ids=["another pod", "no pod"],
)
def test_metrics_of_gone_pods_are_ignored(pods: list[PodState], problem: str) -> None:
    gone = {"old-1": using(100)}
    situation = Situation(autoscaler(), Scale(1, "app=web"), pods, NamespaceUsage("default", gone))
    first = decide(situation, FRESH, SETTINGS, NOW).events[0]
    assert first.message == f"failed to get cpu utilization: {problem}"


@pytest.mark.parametrize(
    ("other", "replicas"),
    [
        (pod("web-0", phase="Failed"), 2),
        (replace(pod("web-0"), terminating=True), 2),
        (pod("web-0", phase="Pending"), 2),
        (replace(pod("web-0"), ready_since=None), 2),
        (pod("web-0"), 3),
    ],
    ids=["failed", "ending", "pending", "not known to be ready", "running"],
)
def test_only_pods_that_can_be_judged_add_replicas(other: PodState, replicas: int) -> None:
    """Both use three quarters of a core, where half of one is the target."""
    used = {f"web-{number}": using(750) for number in range(2)}
    situation = Situation(autoscaler(), Scale(2, "app=web"), [other, pod("web-1")], NamespaceUsage("default", used))
    assert decide(situation, FRESH, SETTINGS, NOW).replicas == replicas


def test_refused_resize_is_reported_and_counts_for_no_policy() -> None:
    usage = NamespaceUsage("default", {"web-0": using(1000)})
    situation = Situation(autoscaler(behaviour={"scaleUp": {}}), Scale(1, "app=web"), [pod("web-0")], usage)
    outcome = conclude(situation, decide(situation, Memory(), SETTINGS, NOW), SETTINGS, NOW, refusal="try later")
    assert outcome.memory.ups == ()
    assert [(item.reason, item.type) for item in outcome.events] == [("FailedRescale", "Warning")]
    assert outcome.events[0].message == (
        "New size: 2; reason: cpu resource utilization (percentage of request) above target; error: try later"
    )
    able = outcome.status["conditions"][0]
    assert (able["status"], able["reason"]) == ("False", "FailedUpdateScale")
    assert "lastScaleTime" not in outcome.status


def test_status_names_the_observed_generation() -> None:
    situation = Situation(autoscaler() | {"metadata": {"generation": 4}}, Scale(0, "app=web"))
    outcome = conclude(situation, decide(situation, FRESH, SETTINGS, NOW), SETTINGS, NOW)
    assert (outcome.status["observedGeneration"], outcome.status["desiredReplicas"]) == (4, 0)


def test_without_a_scale_the_rest_of_the_status_stays() -> None:
    scaler = autoscaler() | {"status": {"desiredReplicas": 3, "conditions": []}}
    status, event = without_scale(scaler, "no such thing", NOW)
    assert status["desiredReplicas"] == 3
    assert [(item["type"], item["status"], item["reason"]) for item in status["conditions"]] == [
        ("AbleToScale", "False", "FailedGetScale")
    ]
    assert (event.reason, event.message, event.type) == ("FailedGetScale", "no such thing", "Warning")


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
        ("app==web", {"app": "web"}, {"app": "=web"}),
    ],
)
def test_the_text_of_a_selector_selects_the_same(text: str, matching: dict[str, str], other: dict[str, str]) -> None:
    assert matches_labels(read_selector(text), matching)
    assert not matches_labels(read_selector(text), other)


def test_durations_are_read_as_go_writes_them() -> None:
    assert read_duration("1m30s") == timedelta(seconds=90)
    assert read_duration("15.2s") == timedelta(seconds=15.2)
    assert read_duration("500ms") == timedelta(seconds=0.5)
    assert read_duration("2h") == timedelta(hours=2)
    assert read_duration("1500us1500µs") == timedelta(milliseconds=3)
    assert read_duration("") == timedelta()


def test_pod_requests_include_only_lasting_containers() -> None:
    state = read_pod(
        {
            "metadata": {"name": "web-0", "deletionTimestamp": "2026-11-21T12:00:00Z"},
            "spec": {
                "containers": [
                    {"name": "app", "resources": {"requests": {"cpu": "500m", "memory": "1Ki"}}},
                    {"name": "bare"},
                ],
                "initContainers": [
                    {"name": "sidecar", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
                    {"name": "setup", "resources": {"requests": {"cpu": "8"}}},
                ],
            },
            "status": {
                "phase": "Running",
                "startTime": "2026-11-21T11:00:00Z",
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-21T11:01:00Z"}],
            },
        }
    )
    requests: tuple[tuple[str, dict[str, int]], ...] = (
        ("app", {"cpu": 500, "memory": 1024_000}),
        ("bare", {}),
        ("sidecar", {"cpu": 1000}),
    )
    assert state == PodState("web-0", "Running", True, True, LONG_AGO + timedelta(minutes=1), LONG_AGO, requests)
    assert read_pod({"metadata": {"name": "new"}}) == PodState("new", "", False, None, None, None, ())


@pytest.mark.parametrize(("status", "ready"), [("True", True), ("False", False), ("Unknown", True)])
def test_unknown_readiness_counts_as_ready(status: str, ready: bool) -> None:
    conditions = [{"type": "Ready", "status": status}]
    assert read_pod({"metadata": {"name": "p"}, "status": {"conditions": conditions}}).ready is ready


def test_measurements_are_read_with_their_moment_and_window() -> None:
    item = {
        "metadata": {"name": "web-0"},
        "timestamp": "2026-11-21T12:00:00Z",
        "window": "15s",
        "containers": [{"name": "app", "usage": {"cpu": "250m", "memory": "2"}}, {"name": "bare"}],
    }
    measured = PodMetrics({"app": {"cpu": 250, "memory": 2000}, "bare": {}}, NOW, timedelta(seconds=15))
    assert read_usage("shop", [item]) == NamespaceUsage("shop", {"web-0": measured})
    unsaid = read_usage("shop", [{"metadata": {"name": "p"}}]).pods["p"]
    assert unsaid == PodMetrics({}, datetime.fromtimestamp(0, UTC), timedelta())


def test_target_without_number_is_reported_in_kubernetes_words() -> None:
    scaler = autoscaler()
    del scaler["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"]
    assert decision(scaler, [500]).events[0].message == (
        "failed to get cpu utilization: invalid resource metric source: neither an average utilization target nor an "
        "average value (usage) target was set"
    )
