"""What a person may ask of a cluster, what is refused and where, and what is written for it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction
from pytest_django.fixtures import Settings

from grid.centralconfig import CLUSTER_SETTINGS, FRAMEWORK_SETTINGS, GLOBAL_QUEUE_LIMIT, MAXIMUM_EXECUTIONS_PER_USER
from grid.diagnosis.tierfit import PoolOffer
from grid.errors import Rejected
from grid.launch.offers import cluster_environments_for, environments_for, tiers_for
from grid.launch.request import (
    ClusterFacts,
    LaunchRequest,
    cluster_id_for,
    submit,
    validate,
    validate_cluster,
    version_mismatch,
)
from grid.launch.spec import AttachedSpec, ScalingSpec, thaw
from grid.models import Environment, Execution, HardwareTier, LifecycleEntry
from tests.launch.conftest import NOW, Shop

Configure = Callable[[Any, int], None]


def alone(shop: Shop, **changes: Any) -> LaunchRequest:
    cluster = shop.cluster_request(**changes)
    return shop.request(kind="cluster", environment=cluster.environment, tier=cluster.tier, cluster=cluster)


def attached(shop: Shop, **changes: Any) -> LaunchRequest:
    return shop.request(cluster=shop.cluster_request(**changes))


def told(request: LaunchRequest, facts: ClusterFacts | None = None) -> dict[str, str]:
    """The problems by field."""
    found = validate(request, facts=facts or ClusterFacts())
    return {problem.path: problem.message for problem in found}


@pytest.fixture
def worker_tier(shop: Shop) -> HardwareTier:
    return HardwareTier.objects.create(
        id="worker", name="Worker", node_pool="default", cores="2", memory="8Gi", cost_per_hour="0.10"
    )


# --- What is written ---


def test_a_cluster_alone_is_one_queued_row_with_its_frozen_spec(shop: Shop, worker_tier: HardwareTier) -> None:
    submit(alone(shop, tier=worker_tier, local_storage=" 20Gi "), now=NOW)

    stored = Execution.objects.get()
    assert (stored.kind, stored.state, stored.slots, stored.attached_to) == ("cluster", "queued", 6, None)
    assert (stored.tier_id, stored.head_tier_id, stored.environment_id) == ("worker", "small", "dask-cluster")
    spec = thaw(stored.spec)
    assert spec.cluster is not None
    assert (spec.cluster.framework, spec.cluster.version, spec.cluster.attached_to) == ("dask", "2026.8.0", "")
    assert (spec.tier.id, spec.cluster.head_tier.id, spec.cluster.local_storage) == ("worker", "small", "20Gi")
    assert spec.cluster.scaling == ScalingSpec(target_cpu=80, target_memory=0)
    assert LifecycleEntry.objects.get(execution=stored).message.endswith("as soon as its 6 slots are given to it.")


def test_a_workspace_and_its_cluster_are_two_rows_that_know_each_other(shop: Shop) -> None:
    workspace = submit(attached(shop), now=NOW)

    cluster = Execution.objects.get(attached_to=workspace)
    assert (workspace.slots, cluster.slots, cluster.project_id, cluster.title) == (1, 6, "churn", "Explore")
    assert thaw(workspace.spec).attached == AttachedSpec(id=cluster.pk, framework="dask")
    spec = thaw(cluster.spec)
    assert spec.cluster is not None
    assert (spec.cluster.attached_to, spec.attached, spec.environment.id) == (workspace.pk, None, "dask-cluster")


def test_editing_tiers_environments_and_configuration_later_changes_nothing_launched(
    shop: Shop, worker_tier: HardwareTier, configure: Configure
) -> None:
    cluster = submit(alone(shop, head_tier=worker_tier), now=NOW)
    configure(CLUSTER_SETTINGS["drain_seconds"], 5)
    HardwareTier.objects.update(memory="64Gi")
    Environment.objects.update(frameworks={"dask": "2027.1.0"})

    spec = thaw(Execution.objects.get(pk=cluster.pk).spec).cluster
    assert spec is not None
    assert (spec.version, spec.head_tier.memory, spec.drain_seconds) == ("2026.8.0", "8Gi", 60)


def test_what_the_admin_says_of_scaling_is_frozen_per_framework(shop: Shop, configure: Configure) -> None:
    for name, value in (("up_workers", 2), ("up_percent", 50), ("up_period_seconds", 30), ("drain_seconds", 90)):
        configure(FRAMEWORK_SETTINGS["dask"][name], value)
    configure(CLUSTER_SETTINGS["down_stabilisation_seconds"], 60)
    configure(FRAMEWORK_SETTINGS["ray"]["down_percent"], 10)

    spec = thaw(submit(alone(shop, on_demand=True, target_memory=70), now=NOW).spec).cluster
    assert spec is not None
    assert spec.drain_seconds == 90
    assert spec.scaling == ScalingSpec(
        target_memory=70,
        on_demand=True,
        up_workers=2,
        up_percent=50,
        up_period_seconds=30,
        down_stabilisation_seconds=60,
    )


def test_without_autoscaling_there_are_as_many_workers_as_asked_for_always(shop: Shop, configure: Configure) -> None:
    configure(CLUSTER_SETTINGS["autoscaling"], 0)
    request = alone(shop, autoscale=False, workers_minimum=4, workers_maximum=0, target_cpu=900, on_demand=True)
    execution = submit(request, now=NOW)

    spec = thaw(execution.spec).cluster
    assert spec is not None
    assert (spec.workers_minimum, spec.workers_maximum, execution.slots) == (4, 4, 5)
    assert spec.scaling == ScalingSpec(autoscale=False, target_cpu=0, target_memory=0)


def test_one_request_sent_twice_is_written_once_both_rows_of_it(shop: Shop) -> None:
    workspace = submit(attached(shop), now=NOW, execution_id="abcdefabcdef")
    with pytest.raises(IntegrityError), transaction.atomic():
        submit(attached(shop), now=NOW, execution_id="abcdefabcdef")

    assert Execution.objects.count() == 2
    assert workspace.attached.get().pk == cluster_id_for("abcdefabcdef") != "abcdefabcdef"


def test_a_pair_whose_cluster_cannot_be_written_is_not_written_at_all(shop: Shop) -> None:
    """As if the process died between the two rows: the id of the cluster is taken."""
    Execution.objects.create(
        id=cluster_id_for("abcdefabcdef"),
        kind="job",
        owner=shop.people.owner,
        project=shop.project,
        environment=shop.job,
        tier=shop.tier,
    )
    with pytest.raises(IntegrityError), transaction.atomic():
        submit(attached(shop), now=NOW, execution_id="abcdefabcdef")
    assert [one.kind for one in Execution.objects.all()] == ["job"]
    assert not LifecycleEntry.objects.exists()


def test_beyond_the_queue_limit_a_pair_is_refused_as_one(shop: Shop, configure: Configure) -> None:
    configure(MAXIMUM_EXECUTIONS_PER_USER, 8)
    configure(GLOBAL_QUEUE_LIMIT, 1)
    shop.launch_with_cluster()  # will start
    shop.launch_with_cluster(after=1)  # will wait, as one
    with pytest.raises(Rejected, match="1 executions wait for a free slot already"):
        shop.launch_with_cluster(after=2)
    assert Execution.objects.count() == 4


# --- What is offered ---


def test_a_tier_for_a_framework_is_offered_for_its_clusters_only(shop: Shop, worker_tier: HardwareTier) -> None:
    worker_tier.kinds = ["ray", "job"]
    worker_tier.save()
    owner = shop.people.owner

    def offered(kind: str, framework: str = "") -> bool:
        return tiers_for(owner, kind, framework).filter(pk="worker").exists()

    assert (offered("cluster", "ray"), offered("cluster"), offered("job")) == (True, True, True)
    assert (offered("cluster", "dask"), offered("workspace")) == (False, False)
    assert told(alone(shop, tier=worker_tier)) == {
        "worker_tier": "Worker is not for Dask clusters; choose another tier."
    }
    worker_tier.kinds = ["cluster"]
    worker_tier.save()
    assert told(alone(shop, tier=worker_tier, head_tier=worker_tier)) == {}


def test_the_head_tier_is_checked_like_the_workers(shop: Shop, worker_tier: HardwareTier) -> None:
    worker_tier.groups.add(Group.objects.create(name="vision"))
    assert told(alone(shop, head_tier=worker_tier)) == {
        "head_tier": "Worker is kept for certain groups; choose another, or ask your admin."
    }
    worker_tier.is_archived = True
    worker_tier.save()
    assert told(alone(shop, head_tier=worker_tier))["head_tier"].startswith("This hardware tier is not offered")


def test_environments_for_clusters_are_those_that_contain_the_framework(shop: Shop) -> None:
    owner = shop.people.owner
    ray = Environment.objects.create(
        id="ray", name="Ray", kind="cluster", image="ray", frameworks={"ray": "2.60.0", "dask": "2026.8.0"}
    )
    assert set(environments_for(owner, "cluster")) == {ray, shop.cluster}
    assert set(cluster_environments_for(owner, "ray")) == {ray}
    assert set(cluster_environments_for(owner, "dask")) == {ray, shop.cluster}
    assert not cluster_environments_for(owner, "flink").exists()


# --- What is refused ---


def test_a_good_request_has_no_problems(shop: Shop) -> None:
    assert told(alone(shop)) == told(attached(shop)) == {}


@pytest.mark.parametrize(
    ("changes", "field", "sentence"),
    [
        ({"workers_minimum": 0}, "workers_minimum", "A cluster has at least one worker."),
        ({"workers_minimum": -3, "autoscale": False}, "workers_minimum", "A cluster has at least one worker."),
        (
            {"workers_minimum": 6},
            "workers_maximum",
            "The most is less than the least, which is 6; give 6 or more.",
        ),
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
                "Say what the cluster grows by: a target of CPU, one of memory, or what waits in it. "
                "Or switch autoscaling off."
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
            "At most 64 TiB for each worker; large data belongs into the project's files.",
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
    assert told(alone(shop, **changes)) == {field: sentence}


def test_all_problems_of_both_parts_are_told_at_once(shop: Shop) -> None:
    request = replace(attached(shop, workers_minimum=0, workers_maximum=40, local_storage="x"), title="x" * 200)
    Environment.objects.update(is_archived=True)
    assert list(told(request)) == [
        "title",
        "environment",
        "cluster_environment",
        "workers_minimum",
        "workers_maximum",
        "local_storage",
    ]
    with pytest.raises(Rejected):
        submit(request, now=NOW)
    assert not Execution.objects.exists()


def test_the_quota_counts_the_workspace_as_well(shop: Shop) -> None:
    assert told(alone(shop, workers_maximum=24)) == {}
    assert told(attached(shop, workers_maximum=24)) == {
        "workers_maximum": (
            "This takes 26 slots (the head, the workspace and each worker take one), and one user may hold 25. "
            "Choose at most 23 workers, or ask your admin."
        )
    }
    assert list(told(alone(shop, autoscale=False, workers_minimum=25))) == ["workers_minimum"]


@pytest.mark.parametrize(("slots", "end"), [(1, "Ask your admin for more slots."), (2, "ask your admin.")])
def test_a_quota_too_small_for_any_cluster_is_said(shop: Shop, configure: Configure, slots: int, end: str) -> None:
    configure(MAXIMUM_EXECUTIONS_PER_USER, slots)
    assert told(alone(shop))["workers_maximum"].endswith(end)


def test_with_launching_switched_off_a_cluster_waits_like_everything_else(shop: Shop, configure: Configure) -> None:
    configure(MAXIMUM_EXECUTIONS_PER_USER, 0)
    assert told(alone(shop)) == {}


def test_the_admins_limit_holds_per_framework(shop: Shop, configure: Configure) -> None:
    configure(FRAMEWORK_SETTINGS["dask"]["maximum_workers"], 4)
    assert told(alone(shop)) == {"workers_maximum": "Your admin allows at most 4 workers in one cluster; choose fewer."}


def test_the_admins_bounds_of_targets_hold(shop: Shop, configure: Configure) -> None:
    configure(CLUSTER_SETTINGS["minimum_target"], 50)
    configure(CLUSTER_SETTINGS["maximum_target"], 90)
    assert told(alone(shop, target_cpu=50, target_memory=90)) == {}
    assert list(told(alone(shop, target_cpu=49, target_memory=91))) == ["target_cpu", "target_memory"]


def test_autoscaling_that_is_switched_off_cannot_be_asked_for(shop: Shop, configure: Configure) -> None:
    configure(CLUSTER_SETTINGS["autoscaling"], 0)
    assert told(alone(shop)) == {
        "autoscale": "Autoscaling of Dask clusters is switched off by your admin; ask for a fixed number of workers."
    }
    configure(FRAMEWORK_SETTINGS["dask"]["autoscaling"], 1)
    assert told(alone(shop)) == {}


def test_growing_with_demand_needs_no_other_target(shop: Shop) -> None:
    assert told(alone(shop, target_cpu=0, on_demand=True)) == {}


def test_what_waits_is_no_reason_to_grow_where_nobody_serves_it(shop: Shop, settings: Settings) -> None:
    settings.DEMAND_IS_SERVED = False
    assert "not set up here" in told(alone(shop, on_demand=True))["on_demand"]
    assert told(alone(shop, on_demand=False)) == {}


@pytest.mark.parametrize("emptied", [{"cores": "0"}, {"memory": "0"}, {"memory": "much"}])
def test_a_tier_that_asks_for_nothing_cannot_be_measured(shop: Shop, emptied: dict[str, str]) -> None:
    HardwareTier.objects.update(**emptied)
    assert set(told(alone(shop))) == {"head_tier", "worker_tier"}
    assert "asks for no cores or no memory" in told(alone(shop))["worker_tier"]


def test_a_tier_that_fits_no_node_of_its_pool_is_refused_when_the_nodes_are_known(
    shop: Shop, worker_tier: HardwareTier
) -> None:
    small_nodes = ClusterFacts({"default": PoolOffer("default", ({"cpu": "1500m", "memory": "16Gi"},), 3)})
    request = alone(shop, tier=worker_tier)
    assert told(request) == {}
    assert told(request, small_nodes) == {
        "worker_tier": (
            "No node of the pool default is large enough for this tier, not even an empty one: it asks for 2 cores, but the "
            "largest node has 1.5. Choose a smaller tier, or tell your admin."
        )
    }
    assert [problem.path for problem in validate_cluster(request, facts=small_nodes)] == ["worker_tier"]
    with pytest.raises(Rejected, match="large enough"):
        submit(request, now=NOW, facts=small_nodes)


@pytest.mark.parametrize("offers", [{}, {"default": PoolOffer("default", (), 4)}])
def test_a_pool_without_nodes_may_still_get_them(shop: Shop, offers: dict[str, PoolOffer]) -> None:
    assert told(alone(shop), ClusterFacts(offers)) == {}


def test_a_cluster_says_what_it_is_made_of(shop: Shop) -> None:
    assert told(shop.request(kind="cluster")) == {"framework": "Say what the cluster runs: Dask, Ray or Spark."}
    assert validate_cluster(shop.request(), facts=ClusterFacts()) == []


def test_an_app_has_no_cluster_of_its_own(shop: Shop) -> None:
    app = Environment.objects.create(id="app", name="App", kind="app", image="app", port=8080)
    request = replace(attached(shop), kind="app", environment=app)
    assert told(request) == {"with_cluster": "Only a workspace or a job can have a cluster of its own."}


def test_a_workspaces_environment_makes_no_cluster(shop: Shop) -> None:
    shop.workspace.frameworks = {"dask": "2026.8.0"}
    shop.workspace.save()
    assert told(alone(shop, environment=shop.workspace)) == {
        "cluster_environment": "JupyterLab is not made for clusters; choose another environment."
    }


def test_a_pair_that_needs_more_places_than_a_tier_ever_has_is_refused(shop: Shop, worker_tier: HardwareTier) -> None:
    HardwareTier.objects.filter(pk="small").update(maximum_simultaneous=1)
    sentence = (
        "The workspace and its cluster would both take a place on Small, which runs at most 1 execution at once. "
        "Choose another tier for one of them."
    )
    assert told(alone(shop)) == {}
    assert told(attached(shop, head_tier=worker_tier)) == {"worker_tier": sentence}
    assert told(attached(shop)) == {"head_tier": sentence, "worker_tier": sentence}
    assert told(attached(shop, head_tier=worker_tier, tier=worker_tier)) == {}


# --- Versions ---


@pytest.mark.parametrize(
    ("framework", "workspace", "cluster", "agrees"),
    [
        ("dask", "2026.8.0", "2026.8.0", True),
        ("dask", "2026.8.0", "2026.8.1", False),
        ("ray", "2.60.0", "2.59.0", False),
        ("spark", "4.3.0", "4.3.1", True),
        ("spark", "4.2.9", "4.3.0", False),
    ],
)
def test_versions_of_workspace_and_cluster_are_compared(
    framework: str, workspace: str, cluster: str, agrees: bool
) -> None:
    ours = Environment(name="Lab", frameworks={framework: workspace})
    sentence = version_mismatch(ours, Environment(name="Grid", frameworks={framework: cluster}), framework)
    assert (sentence == "") is agrees
    if not agrees:
        assert workspace in sentence
        assert cluster in sentence


def test_a_workspace_without_the_framework_is_told_what_to_install() -> None:
    lab, grid = Environment(name="Lab", frameworks={}), Environment(name="Grid", frameworks={"ray": "2.60.0"})
    assert version_mismatch(lab, grid, "ray") == (
        "Lab is not known to contain Ray, so its code may not be able to use the cluster. "
        "Choose an environment with Ray 2.60.0, or install that version in it."
    )
    assert version_mismatch(lab, grid, "dask") == ""
