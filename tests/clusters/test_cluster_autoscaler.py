"""The autoscaler of a cluster: what it grows by and how fast, and when there is none."""

import pytest

from grid.executions.spec import ScalingSpec
from grid.kube.resources import AUTOSCALERS, DEPLOYMENTS
from tests.clusters.cluster_objects import object_of, seconds
from tests.clusters.cluster_specs import cluster, spec


@pytest.mark.parametrize(
    ("scaling", "metrics"),
    [
        (ScalingSpec(target_cpu=80, target_memory=0), ["cpu"]),
        (ScalingSpec(target_cpu=0, target_memory=80), ["memory"]),
        (ScalingSpec(target_cpu=0, target_memory=0, on_demand=True), ["compute_grid_wanted_workers"]),
    ],
)
def test_a_metric_that_is_not_used_is_left_out(scaling: ScalingSpec, metrics: list[str]) -> None:
    body = object_of(seconds(spec(of=cluster(scaling=scaling))), AUTOSCALERS)
    names = [m.get("resource", m.get("external", {}).get("metric"))["name"] for m in body["spec"]["metrics"]]
    assert names == metrics


@pytest.mark.parametrize(
    ("cpu", "memory", "demand", "seconds_waited"),
    [(0, 0, True, 0), (80, 0, True, 300), (0, 80, True, 300), (80, 0, False, 300)],
)
def test_shrinking_waits_for_nothing_on_demand_alone(cpu: int, memory: int, demand: bool, seconds_waited: int) -> None:
    scaling = ScalingSpec(target_cpu=cpu, target_memory=memory, on_demand=demand)
    behavior = object_of(seconds(spec(of=cluster(scaling=scaling))), AUTOSCALERS)["spec"]["behavior"]
    assert behavior["scaleDown"]["stabilizationWindowSeconds"] == seconds_waited
    assert behavior["scaleUp"]["stabilizationWindowSeconds"] == 0


@pytest.mark.parametrize(
    "scaling",
    [ScalingSpec(autoscale=False, on_demand=True), ScalingSpec(target_cpu=0, target_memory=0)],
    ids=["switched off", "nothing to scale on"],
)
def test_a_cluster_of_a_fixed_size_has_no_autoscaler(scaling: ScalingSpec) -> None:
    of = spec(of=cluster(scaling=scaling, workers_minimum=3))
    assert [m.resource for m in seconds(of)] == [DEPLOYMENTS]
    assert object_of(seconds(of), DEPLOYMENTS)["spec"]["replicas"] == 3


def test_empty_policy_is_omitted_and_no_policies_disable_scaling() -> None:
    scaling = ScalingSpec(up_workers=0, down_percent=0)
    behavior = object_of(seconds(spec(of=cluster(scaling=scaling))), AUTOSCALERS)["spec"]["behavior"]
    assert behavior["scaleUp"]["policies"] == [{"type": "Percent", "value": 100, "periodSeconds": 15}]
    assert behavior["scaleDown"]["selectPolicy"] == "Disabled"
