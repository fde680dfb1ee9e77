"""From numbers outside the pods to replicas. How the real controller does it, and in which words, is in `tests/contract`."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from grid.sandbox.controllers.scaling.external import propose_external, query_of, shown_selector
from grid.sandbox.controllers.scaling.metrics import compute
from grid.sandbox.controllers.scaling.model import (
    CannotCompute,
    External,
    MetricView,
    NamespaceUsage,
    PodState,
    ScalingSettings,
    Tolerance,
)

NOW = datetime(2026, 11, 21, 4, 0, tzinfo=UTC)


def metric(target: dict[str, Any], selector: dict[str, Any] | None = None) -> dict[str, Any]:
    identity: dict[str, Any] = {"name": "wanted"} | ({"selector": selector} if selector is not None else {})
    return {"type": "External", "external": {"metric": identity, "target": target}}


def pod(name: str, *, phase: str = "Running", ready: bool = True) -> PodState:
    return PodState(name, phase, terminating=False, ready=ready, ready_since=NOW, started=NOW, requests=())


def view(*values: int, current: int = 2, present: int | None = None, pods: int = 2, problem: str = "") -> MetricView:
    return MetricView(
        current,
        [pod(f"p{number}") for number in range(pods)],
        NamespaceUsage("default"),
        Tolerance(0.1, 0.1),
        ScalingSettings(),
        NOW,
        present=current if present is None else present,
        external={("wanted", ""): External(values, problem)},
    )


@pytest.mark.parametrize(
    ("values", "present", "replicas", "average"),
    [
        ((3000,), 2, 3, 1500),
        ((1000, 2500), 2, 4, 1750),
        ((2100,), 2, 2, 1050),
        ((2201,), 2, 3, 1101),
        ((1900,), 2, 2, 950),
        ((0,), 2, 0, 0),
        ((5000,), 0, 5, 0),
        ((0,), 0, 0, 0),
    ],
)
def test_an_average_is_what_each_pod_shall_have(
    values: tuple[int, ...], present: int, replicas: int, average: int
) -> None:
    proposal = propose_external(metric({"averageValue": "1"}), view(*values, present=present))
    assert proposal == (replicas, {"averageValue": average})


@pytest.mark.parametrize(
    ("value", "current", "pods", "replicas"),
    [(30_000, 2, 2, 3), (21_000, 2, 2, 2), (30_000, 4, 2, 3), (10_000, 4, 4, 2), (50_000, 0, 0, 3), (21_000, 4, 0, 4)],
)
def test_external_value_is_shared_by_all_ready_pods(value: int, current: int, pods: int, replicas: int) -> None:
    seen = view(value, current=current, pods=pods)
    assert propose_external(metric({"value": "20"}), seen) == (replicas, {"value": value})


def test_external_value_without_pods_cannot_be_computed() -> None:
    with pytest.raises(CannotCompute, match="unable to calculate ready pods: no pods returned by selector"):
        propose_external(metric({"value": "20"}), view(30_000, pods=0))


@pytest.mark.parametrize("idle", [{"phase": "Pending"}, {"ready": False}])
def test_only_running_ready_pods_carry_the_external_value(idle: dict[str, Any]) -> None:
    seen = replace(view(30_000), pods=[pod("p0"), pod("p1", **idle)])
    assert propose_external(metric({"value": "20"}), seen) == (2, {"value": 30_000})


@pytest.mark.parametrize(
    ("target", "which"), [({"averageValue": "1"}, "wanted external metric"), ({"value": "1"}, "external metric wanted")]
)
def test_unavailable_metric_is_named_in_kubernetes_order(target: dict[str, str], which: str) -> None:
    computed = compute([metric(target)], "app=x", view(problem="no adapter"), ())
    problem = "unable to get external metric default/wanted/nil: no adapter"
    first = f"failed to get wanted external metric value: failed to get {which}: {problem}"
    assert [(event.reason, event.type, event.message) for event in computed.events] == [
        ("FailedGetExternalMetric", "Warning", problem),
        ("FailedComputeMetricsReplicas", "Warning", f"invalid metrics (1 invalid out of 1), first error is: {first}"),
    ]
    assert computed.message == f"the HPA was unable to compute the replica count: {problem}"


def test_a_metric_without_any_value_is_told() -> None:
    problem = "unable to get external metric default/wanted/nil: no metrics returned from external metrics API"
    with pytest.raises(CannotCompute, match=f"^{problem}$"):
        propose_external(metric({"value": "20"}), view())


def test_a_target_without_a_number_is_told() -> None:
    with pytest.raises(CannotCompute, match="neither a value target nor an average value target was set"):
        propose_external(metric({"type": "Value"}), view(1))


def test_selector_is_sent_as_text_and_shown_like_go() -> None:
    expressions = [
        {"key": "tier", "operator": "In", "values": ["b", "a"]},
        {"key": "old", "operator": "DoesNotExist"},
        {"key": "new", "operator": "Exists"},
        {"key": "zone", "operator": "NotIn", "values": ["x"]},
    ]
    spec = metric({}, {"matchLabels": {"queue": "blue", "a": "b"}, "matchExpressions": expressions})
    assert query_of(spec) == "a=b,new,!old,queue=blue,tier in (a,b),zone notin (x)"
    assert shown_selector(metric({}, {"matchExpressions": expressions[:2]})) == (
        "&LabelSelector{MatchLabels:map[string]string{},MatchExpressions:[]LabelSelectorRequirement{"
        "LabelSelectorRequirement{Key:tier,Operator:In,Values:[b a],},"
        "LabelSelectorRequirement{Key:old,Operator:DoesNotExist,Values:[],},},}"
    )
    assert shown_selector(metric({}, {"matchLabels": {"queue": "blue", "a": "b"}})) == (
        "&LabelSelector{MatchLabels:map[string]string{a: b,queue: blue,},MatchExpressions:[]LabelSelectorRequirement{},}"
    )
    assert (query_of(metric({})), shown_selector(metric({}))) == ("", "nil")


def test_a_metric_that_fails_stops_shrinking_and_not_growing() -> None:
    good, bad = metric({"averageValue": "1"}), metric({"value": "1"}, {"matchLabels": {"a": "b"}})
    grows = compute([bad, good], "app=x", view(4000), ())
    assert (grows.replicas, grows.metric) == (4, "external metric wanted(nil)")
    assert [event.reason for event in grows.events] == ["FailedGetExternalMetric"]
    stays = compute([good, bad], "app=x", view(1000), ())
    assert (stays.replicas, stays.reason) == (None, "FailedGetExternalMetric")
    assert stays.events[-1].message.startswith(
        "invalid metrics (1 invalid out of 2), first error is: failed to get wanted external metric value: "
        "failed to get external metric wanted: unable to get"
    )
    assert stays.statuses is not None
    assert stays.statuses[0] == {
        "type": "External",
        "external": {"metric": {"name": "wanted"}, "current": {"averageValue": "500m"}},
    }
