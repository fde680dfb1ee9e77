"""What is refused of a cluster: each problem at its field, in one sentence, before anything is written."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from grid.clusters.request import validate_cluster
from grid.configuration import CLUSTER_SETTINGS, FRAMEWORK_SETTINGS, MAXIMUM_EXECUTIONS_PER_USER
from grid.core.errors import Rejected
from grid.diagnosis.launchfit import AlikeNodes, LaunchPool, Pools
from grid.executions.request import submit
from grid.models import Environment, Execution, HardwareTier
from grid.queue.launches import why_not_launch
from tests.clusters.cluster_requests import alone, attached, problems_of
from tests.support.shop import NOW, Shop

Configure = Callable[[Any, int], None]


def test_a_good_request_has_no_problems(shop: Shop) -> None:
    assert problems_of(alone(shop)) == problems_of(attached(shop)) == {}


@pytest.mark.parametrize(
    ("changes", "field", "sentence"),
    [
        ({"workers_minimum": 0}, "workers_minimum", "A cluster has at least one worker."),
        ({"workers_minimum": -3, "autoscale": False}, "workers_minimum", "A cluster has at least one worker."),
        ({"workers_minimum": 6}, "workers_maximum", "The maximum is less than the minimum of 6; enter 6 or more."),
        (
            {"workers_maximum": 25},
            "workers_maximum",
            (
                "This takes 26 slots (the head and each worker take one), and one user may hold 25. "
                "Choose at most 24 workers, or ask your admin."
            ),
        ),
        ({"target_cpu": 101}, "target_cpu", "Give a target of 1 to 100 percent, or leave it out."),
        ({"target_memory": -1}, "target_memory", "Give a target of 1 to 100 percent, or leave it out."),
        ({"target_cpu": 10}, "target_cpu", "Your admin allows targets of 20 to 100 percent."),
        (
            {"target_cpu": 0, "target_memory": 0},
            "target_cpu",
            (
                "Choose what the cluster scales by: a CPU target, a memory target or waiting tasks. Or switch autoscaling off."
            ),
        ),
        (
            {"local_storage": "lots"},
            "local_storage",
            "“lots” is not a quantity; write for example 500m, 2, 512Mi or 4Gi.",
        ),
        ({"local_storage": "0"}, "local_storage", "Give more than zero, such as 20Gi, or leave it empty for none."),
        ({"local_storage": "-5Gi"}, "local_storage", "Give more than zero, such as 20Gi, or leave it empty for none."),
        ({"local_storage": "20"}, "local_storage", "20 is 20 B; write the unit as well, such as 20Gi."),
        (
            {"local_storage": "1Pi"},
            "local_storage",
            "At most 64 TiB for each worker; large data belongs in the project's files.",
        ),
        ({"framework": "flink"}, "framework", "Choose Dask, Ray or Spark."),
        (
            {"framework": "ray"},
            "cluster_environment",
            "Dask cluster does not contain Ray, only Dask; choose another environment.",
        ),
    ],
)
def test_each_problem_is_said_at_its_field(shop: Shop, changes: dict[str, Any], field: str, sentence: str) -> None:
    assert problems_of(alone(shop, **changes)) == {field: sentence}


def test_all_problems_of_both_parts_are_told_at_once(shop: Shop) -> None:
    request = replace(attached(shop, workers_minimum=0, workers_maximum=40, local_storage="x"), title="x" * 200)
    Environment.objects.update(is_archived=True)
    assert list(problems_of(request)) == [
        "title",
        "environment",
        "cluster_environment",
        "workers_minimum",
        "workers_maximum",
        "local_storage",
    ]
    with pytest.raises(Rejected):
        submit(request, gate=why_not_launch, now=NOW)
    assert not Execution.objects.exists()


def test_the_quota_counts_the_workspace_as_well(shop: Shop) -> None:
    assert problems_of(alone(shop, workers_maximum=24)) == {}
    assert problems_of(attached(shop, workers_maximum=24)) == {
        "workers_maximum": (
            "This takes 26 slots (the head, the workspace and each worker take one), and one user may hold 25. "
            "Choose at most 23 workers, or ask your admin."
        )
    }
    assert list(problems_of(alone(shop, autoscale=False, workers_minimum=25))) == ["workers_minimum"]


@pytest.mark.parametrize(("slots", "end"), [(1, "Ask your admin for more slots."), (2, "ask your admin.")])
def test_a_quota_too_small_for_any_cluster_is_said(shop: Shop, configure: Configure, slots: int, end: str) -> None:
    configure(MAXIMUM_EXECUTIONS_PER_USER, slots)
    assert problems_of(alone(shop))["workers_maximum"].endswith(end)


def test_cluster_waits_while_launching_is_switched_off(shop: Shop, configure: Configure) -> None:
    configure(MAXIMUM_EXECUTIONS_PER_USER, 0)
    assert problems_of(alone(shop)) == {}


def test_the_admins_limit_holds_per_framework(shop: Shop, configure: Configure) -> None:
    configure(FRAMEWORK_SETTINGS["dask"]["maximum_workers"], 4)
    assert problems_of(alone(shop)) == {
        "workers_maximum": "Your admin allows at most 4 workers in one cluster; choose fewer."
    }


def test_the_admins_bounds_of_targets_hold(shop: Shop, configure: Configure) -> None:
    configure(CLUSTER_SETTINGS["minimum_target"], 50)
    configure(CLUSTER_SETTINGS["maximum_target"], 90)
    assert problems_of(alone(shop, target_cpu=50, target_memory=90)) == {}
    assert list(problems_of(alone(shop, target_cpu=49, target_memory=91))) == ["target_cpu", "target_memory"]


def test_autoscaling_that_is_switched_off_cannot_be_asked_for(shop: Shop, configure: Configure) -> None:
    configure(CLUSTER_SETTINGS["autoscaling"], 0)
    assert problems_of(alone(shop)) == {
        "autoscale": "Autoscaling of Dask clusters is switched off by your admin; ask for a fixed number of workers."
    }
    configure(FRAMEWORK_SETTINGS["dask"]["autoscaling"], 1)
    assert problems_of(alone(shop)) == {}


def test_growing_with_demand_needs_no_other_target(shop: Shop) -> None:
    assert problems_of(alone(shop, target_cpu=0, on_demand=True)) == {}


def test_growth_on_demand_is_refused_where_it_is_unserved(shop: Shop, settings: Settings) -> None:
    settings.DEMAND_IS_SERVED = False
    assert "not set up here" in problems_of(alone(shop, on_demand=True))["on_demand"]
    assert problems_of(alone(shop, on_demand=False)) == {}


@pytest.mark.parametrize("emptied", [{"cores": "0"}, {"memory": "0"}, {"memory": "much"}])
def test_a_tier_that_asks_for_nothing_cannot_be_measured(shop: Shop, emptied: dict[str, str]) -> None:
    HardwareTier.objects.update(**emptied)
    assert set(problems_of(alone(shop))) == {"head_tier", "worker_tier"}
    assert "requests no cores or no memory" in problems_of(alone(shop))["worker_tier"]


def test_tier_that_fits_no_known_node_is_refused(shop: Shop, worker_tier: HardwareTier) -> None:
    room = {"cpu": 1500, "memory": 16 * 2**30, "ephemeral-storage": 100 * 2**30, "pods": 110}
    small_nodes = {"default": LaunchPool("default", (AlikeNodes(room, room),), 3)}
    request = alone(shop, tier=worker_tier)
    assert problems_of(request) == {}
    assert problems_of(request, small_nodes) == {
        "worker_tier": (
            "Worker asks for 2 cores; the largest node of the pool default offers 1.5 cores after overhead. "
            "Choose another tier, or ask an admin to make this one smaller."
        )
    }
    assert [problem.path for problem in validate_cluster(request, pools=small_nodes)] == ["worker_tier"]
    with pytest.raises(Rejected, match="the largest node of the pool"):
        submit(request, gate=why_not_launch, now=NOW, pools=small_nodes)


@pytest.mark.parametrize("pools", [{}, {"default": LaunchPool("default", (), 4)}])
def test_a_pool_without_nodes_may_still_get_them(shop: Shop, pools: Pools) -> None:
    assert problems_of(alone(shop), pools) == {}


def test_a_cluster_says_what_it_is_made_of(shop: Shop) -> None:
    assert problems_of(shop.request(kind="cluster")) == {"framework": "Say what the cluster runs: Dask, Ray or Spark."}
    assert validate_cluster(shop.request(), pools=None) == []


def test_an_app_has_no_cluster_of_its_own(shop: Shop) -> None:
    app = Environment.objects.create(id="app", name="App", kind="app", image="app", port=8080)
    request = replace(attached(shop), kind="app", environment=app)
    assert problems_of(request) == {"with_cluster": "Only a workspace or a job can have a cluster of its own."}


def test_a_workspaces_environment_makes_no_cluster(shop: Shop) -> None:
    shop.workspace.frameworks = {"dask": "2026.8.0"}
    shop.workspace.save()
    assert problems_of(alone(shop, environment=shop.workspace)) == {
        "cluster_environment": "JupyterLab is not for clusters; choose another environment."
    }


def test_pair_above_the_places_of_tier_is_refused(shop: Shop, worker_tier: HardwareTier) -> None:
    HardwareTier.objects.filter(pk="small").update(maximum_simultaneous=1)
    sentence = (
        "The workspace and its cluster would both take a place on Small, which runs at most 1 execution at once. "
        "Choose another tier for one of them."
    )
    assert problems_of(alone(shop)) == {}
    assert problems_of(attached(shop, head_tier=worker_tier)) == {"worker_tier": sentence}
    assert problems_of(attached(shop)) == {"head_tier": sentence, "worker_tier": sentence}
    assert problems_of(attached(shop, head_tier=worker_tier, tier=worker_tier)) == {}
