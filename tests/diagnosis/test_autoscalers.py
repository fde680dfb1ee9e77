"""What a person is told about an autoscaler: what it measures, and why it does not act."""

from datetime import timedelta

import pytest

from grid.diagnosis.autoscalers import Load, explain_autoscaler, loads
from grid.kube.objects import Autoscaler, RawObject
from tests.clusters.clustering import autoscaler, worker_pod
from tests.diagnosis.situations import as_text
from tests.diagnosis.snapshots import NOW, codes, member, on_demand, ready, scaler, snapshot, starting
from tests.support.builders import MOMENT, condition, decode, stamp
from tests.support.golden import assert_golden

NO_ANSWER = "unable to get metrics for resource cpu: no metrics returned from resource metrics API"
NO_SERVER = (
    "the HPA was unable to compute the replica count: failed to get cpu utilization: unable to get metrics for resource cpu: "
    "unable to fetch metrics from resource metrics API: the server could not find the requested resource"
)
DOWN = (
    "failed to get cpu utilization: unable to get metrics for resource cpu: "
    "unable to fetch metrics from resource metrics API: metrics are down"
)
NO_UPDATE = "the HPA controller was unable to update the target scale: "


BROKEN = [
    ("ScalingActive", "FailedGetResourceMetric", NO_SERVER),
    ("ScalingActive", "FailedGetResourceMetric", DOWN),
    ("ScalingActive", "FailedGetResourceMetric", NO_ANSWER),
    ("ScalingActive", "FailedGetResourceMetric", "did not receive metrics for targeted pods (pods might be unready)"),
    ("ScalingActive", "FailedGetResourceMetric", "missing request for cpu in container run of Pod w"),
    ("ScalingActive", "FailedGetResourceMetric", "missing request for memory"),
    ("ScalingActive", "FailedGetResourceMetric", "what nobody foresaw"),
    ("ScalingActive", "FailedGetExternalMetric", "unable to get external metric"),
    ("ScalingActive", "AmbiguousSelector", "pods by selector app=web are controlled by multiple HPAs"),
    ("ScalingActive", "AmbiguousSelector", "pods by selector app=web are controlled by multiple HPAs: [grid/web-2 grid/web]"),
    ("AbleToScale", "FailedGetScale", 'deployments.apps "absent" not found'),
    ("AbleToScale", "FailedGetScale", "the server is busy"),
    ("AbleToScale", "FailedUpdateScale", 'deployments.apps "web" not found'),
    ("AbleToScale", "FailedUpdateScale", f'{NO_UPDATE}Operation cannot be fulfilled on deployments "web": the object has been modified'),
    ("AbleToScale", "FailedUpdateScale", f'{NO_UPDATE}admission webhook "kyverno" denied the request: at most 5 replicas'),
    ("ScalingActive", "InvalidSelector", "the HPA target's scale is missing a selector"),
]  # fmt: skip


def test_the_whole_words_are_as_stored() -> None:
    situations = [(kind, reason, message, MOMENT) for kind, reason, message in BROKEN]
    young = ("ScalingActive", "FailedGetResourceMetric", NO_ANSWER, NOW)
    told_of = []
    for kind, reason, message, at in (*situations, young):
        broken = scaler(condition(kind, "False", reason, message, at=at))
        diagnosis = explain_autoscaler(broken, ready_since=None, now=NOW)
        assert diagnosis is not None
        assert codes(snapshot(ready(1), autoscaler=broken)) == [diagnosis.code]
        told_of.append(as_text(diagnosis))
    assert_golden("words-of-autoscalers", "\n".join(told_of), ending="txt")


@pytest.mark.parametrize(
    "conditions",
    [
        [],
        [condition("AbleToScale", "True", "ReadyForNewScale")],
        [condition("AbleToScale", "True"), condition("ScalingActive", "True", "ValidMetricFound")],
        [condition("ScalingActive", "False", "ScalingDisabled", "scaling is disabled since the replica count is zero")],
        [condition("ScalingLimited", "True", "TooManyReplicas")],
    ],
)
def test_acting_or_disabled_autoscaler_is_no_news(conditions: list[RawObject]) -> None:
    assert explain_autoscaler(scaler(*conditions), ready_since=None, now=NOW) is None


@pytest.mark.parametrize(
    ("message", "failing", "ready", "code"),
    [
        ("did not receive metrics for targeted pods (pods might be unready)", 600, 30, "not_measured_yet"),
        ("did not receive metrics for targeted pods (pods might be unready)", 600, 300, "metrics_missing"),
        (NO_ANSWER, 600, 120, "metrics_missing"),
        (NO_ANSWER, 600, 119, "not_measured_yet"),
        (NO_SERVER, 600, 1, "metrics_missing"),
    ],
)
def test_a_worker_of_a_moment_ago_is_measured_soon(message: str, failing: int, ready: int, code: str) -> None:
    """However long the autoscaler has failed before there was anything to measure."""
    at, ready_since = NOW - timedelta(seconds=failing), NOW - timedelta(seconds=ready)
    young = scaler(condition("ScalingActive", "False", "FailedGetResourceMetric", message, at=at))
    diagnosis = explain_autoscaler(young, ready_since=ready_since, now=NOW)
    assert diagnosis is not None
    assert (diagnosis.code, diagnosis.severity) == (code, "wait" if code == "not_measured_yet" else "problem")
    pod = worker_pod("c", "a")
    for each_condition in pod["status"]["conditions"]:
        each_condition["lastTransitionTime"] = stamp(ready_since)
    assert codes(snapshot([member(pod)], desired=1, autoscaler=young)) == [code]


def test_autoscaler_without_a_transition_time_has_just_begun() -> None:
    timeless = {**condition("ScalingActive", "False", "FailedGetResourceMetric", NO_ANSWER), "lastTransitionTime": None}
    diagnosis = explain_autoscaler(scaler(timeless), ready_since=None, now=NOW)
    assert diagnosis is not None
    assert diagnosis.code == "not_measured_yet"


def test_without_a_ready_worker_missing_measurements_are_no_news() -> None:
    broken = scaler(condition("ScalingActive", "False", "FailedGetResourceMetric", NO_SERVER))
    assert "metrics_missing" not in codes(snapshot([member(starting("a"))], autoscaler=broken))


def test_cluster_of_fixed_size_is_not_asked_for_autoscaler() -> None:
    broken = scaler(condition("ScalingActive", "False", "FailedGetResourceMetric", NO_SERVER))
    assert codes(snapshot(ready(1), autoscaler=broken, autoscales=False)) == []


def test_demand_of_the_framework_is_a_load_as_well() -> None:
    (load,) = loads(on_demand(maximum=2, current=3, each="133334m"), maximum=3)
    assert (load.now, load.against, load.is_over) == ("400 workers", "maximum 3 workers", True)
    assert loads(on_demand(maximum=9, current=5, each="400"), maximum=9) == (
        Load("Wanted by the framework", 9, 2000, is_demand=True),
    )
    (load,) = loads(on_demand(maximum=3, current=2, each="500m"), maximum=3)
    assert (load.now, load.is_over) == ("1 worker", False)
    (load,) = loads(on_demand(maximum=3, current=2), maximum=3)
    assert (load.now, load.is_over) == ("not known", False)
    (load,) = loads(on_demand(maximum=3, current=2, each="many"), maximum=3)
    assert load.current is None


def measures(*named: tuple[str, int | None, int | None], conditions: list[RawObject] | None = None) -> Autoscaler:
    """Each with its name, its target in percent, and what was measured."""
    raw = autoscaler("c", conditions=conditions)
    raw["spec"]["metrics"] = [
        {"type": "Resource", "resource": {"name": name, "target": {"averageUtilization": target, "averageValue": "1"}}}
        for name, target, _ in named
    ]
    raw["status"]["currentMetrics"] = [
        {"type": "Resource", "resource": {"name": name, "current": {"averageUtilization": measured}}}
        for name, _, measured in reversed(named)
    ]
    return decode(raw, Autoscaler)


def test_loads_name_what_is_measured_with_its_target() -> None:
    assert [load.words for load in loads(scaler(cpu=45), maximum=5)] == ["CPU 45 %, target 80 %"]
    assert [load.words for load in loads(scaler(cpu=None), maximum=5)] == ["CPU not known, target 80 %"]
    several = measures(("cpu", 80, 45), ("memory", 70, 90), ("hugepages", 50, None), ("ephemeral-storage", None, 3))
    assert [load.words for load in loads(several, maximum=5)] == [
        "CPU 45 %, target 80 %", "memory 90 %, target 70 %", "hugepages not known, target 50 %",
    ]  # fmt: skip


ACTIVE = condition("ScalingActive", "True", "ValidMetricFound")
NOT_ACTIVE = condition("ScalingActive", "False", "FailedGetResourceMetric", NO_ANSWER)
NOT_REQUESTED = condition("ScalingActive", "False", "FailedGetResourceMetric", "missing request for memory")


@pytest.mark.parametrize(
    ("memory", "cpu", "active", "code", "evidence"),
    [
        (None, 90, ACTIVE, "partly_measured", 0),
        (None, 24, NOT_ACTIVE, "partly_measured", 1),
        (None, 24, NOT_REQUESTED, "requests_missing", 1),
        (None, None, NOT_ACTIVE, "metrics_missing", 1),
        (None, None, ACTIVE, "", 0),
        (70, 90, ACTIVE, "", 0),
    ],
)
def test_cluster_with_missing_metric_is_told_not_to_shrink(
    memory: int | None, cpu: int | None, active: RawObject, code: str, evidence: int
) -> None:
    """Kubernetes scales up by the metrics that it knows, and never down without all of them."""
    known = measures(("cpu", 60, cpu), ("memory", 70, memory), conditions=[active])
    diagnosis = explain_autoscaler(known, ready_since=None, now=NOW)
    assert ((diagnosis.code, len(diagnosis.evidence)) if diagnosis else ("", 0)) == (code, evidence)
    if diagnosis and code == "partly_measured":
        assert diagnosis.severity == "wait"
        assert (
            diagnosis.sentence
            == "The workers' memory use is not known now, so the cluster may grow but does not shrink."
        )


def test_all_metrics_that_are_missing_are_named() -> None:
    raw = autoscaler("c", conditions=[ACTIVE])
    names = ("cpu", "memory")
    target = {"type": "AverageValue", "averageValue": "1"}
    raw["spec"]["metrics"] = [
        *({"type": "Resource", "resource": {"name": name, "target": {"averageUtilization": 70}}} for name in names),
        {"type": "External", "external": {"metric": {"name": "wanted"}, "target": target}},
    ]
    diagnosis = explain_autoscaler(decode(raw, Autoscaler), ready_since=None, now=NOW)
    assert diagnosis is not None
    assert diagnosis.sentence == (
        "The workers' memory use and the framework's waiting work are not known now, so the cluster may grow but does not shrink."
    )


@pytest.mark.parametrize(("current", "over"), [(None, False), (80, False), (88, False), (89, True)])
def test_a_tenth_over_the_target_is_not_over(current: int | None, over: bool) -> None:
    assert Load("CPU", 80, current).is_over is over


def test_unknown_demand_is_told_with_the_maximum() -> None:
    assert Load("Wanted by the framework", 3, None, is_demand=True).words == (
        "Wanted by the framework not known, maximum 3 workers"
    )
    assert Load("Wanted by the framework", 3, 1, is_demand=True).words == "the framework would like to have 1 worker"
