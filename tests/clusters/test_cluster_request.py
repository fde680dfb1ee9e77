"""What a person may ask of a cluster, what is written for it, and what is refused: each problem at its field, in one sentence."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction

from grid.clusters.request import validate_cluster
from grid.configuration import CLUSTER_SETTINGS, FRAMEWORK_SETTINGS, GLOBAL_QUEUE_LIMIT, MAXIMUM_EXECUTIONS_PER_USER
from grid.core.errors import Rejected
from grid.diagnosis.launchfit import AlikeNodes, LaunchPool, Pools
from grid.environments.revisions import declared_by, version_mismatch
from grid.executions.launchrequest import Offers
from grid.executions.request import cluster_id_for, submit
from grid.executions.spec import ScalingSpec, parse_spec
from grid.models import Environment, Execution, HardwareTier, LifecycleEntry
from grid.queue.launches import why_not_launch
from tests.clusters.cluster_requests import alone, attached, problems_of
from tests.support.frozen import on_tier
from tests.support.golden import assert_golden
from tests.support.shop import NOW, OWNER, Shop

Configure = Callable[[Any, int], None]


# --- What is written ---


def test_standalone_cluster_is_a_queued_row_with_frozen_spec(shop: Shop, worker_tier: HardwareTier) -> None:
    submit(alone(shop, tier=worker_tier, local_storage=" 20Gi "), gate=why_not_launch, now=NOW)

    stored = Execution.objects.get()
    assert (stored.kind, stored.state, stored.slots, stored.attached_to) == ("cluster", "queued", 6, None)
    assert (stored.tier_id, stored.head_tier_id, stored.environment_id) == ("worker", "small", "dask-cluster")
    spec = parse_spec(stored)
    assert spec.cluster is not None
    assert (spec.cluster.framework, spec.cluster.version, spec.cluster.attached_to) == ("dask", "2026.8.0", "")
    assert (spec.tier.id, spec.cluster.head_tier.id, spec.cluster.local_storage) == ("worker", "small", "20Gi")
    assert spec.cluster.scaling == ScalingSpec(target_cpu=80, target_memory=0)
    assert LifecycleEntry.objects.get(execution=stored).words(OWNER) == "Waiting for 6 free slots."


def test_workspace_and_its_cluster_are_two_linked_rows(shop: Shop) -> None:
    workspace = submit(attached(shop), gate=why_not_launch, now=NOW)

    cluster = Execution.objects.get(attached_to=workspace)
    assert (workspace.slots, cluster.slots, cluster.project_id, cluster.title) == (1, 6, "churn", "Explore")
    spec = parse_spec(cluster)
    assert spec.cluster is not None
    assert (spec.cluster.attached_to, spec.environment.id) == (workspace.pk, "dask-cluster")


def test_scaling_settings_of_admin_are_frozen_per_framework(shop: Shop, configure: Configure) -> None:
    for name, value in (("up_workers", 2), ("up_percent", 50), ("up_period_seconds", 30), ("drain_seconds", 90)):
        configure(FRAMEWORK_SETTINGS["dask"][name], value)
    configure(CLUSTER_SETTINGS["down_stabilisation_seconds"], 60)
    configure(FRAMEWORK_SETTINGS["ray"]["down_percent"], 10)

    spec = parse_spec(submit(alone(shop, on_demand=True, target_memory=70), gate=why_not_launch, now=NOW)).cluster
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


def test_fixed_cluster_always_has_the_requested_workers(shop: Shop, configure: Configure) -> None:
    configure(CLUSTER_SETTINGS["autoscaling"], 0)
    request = alone(shop, autoscale=False, workers_minimum=4, workers_maximum=0, target_cpu=900, on_demand=True)
    execution = submit(request, gate=why_not_launch, now=NOW)

    spec = parse_spec(execution).cluster
    assert spec is not None
    assert (spec.workers_minimum, spec.workers_maximum, execution.slots) == (4, 4, 5)
    assert spec.scaling == ScalingSpec(autoscale=False, target_cpu=0, target_memory=0)


def test_request_sent_twice_writes_both_rows_once(shop: Shop) -> None:
    workspace = submit(attached(shop), gate=why_not_launch, now=NOW, execution_id="abcdefabcdef")
    with pytest.raises(IntegrityError), transaction.atomic():
        submit(attached(shop), gate=why_not_launch, now=NOW, execution_id="abcdefabcdef")

    assert Execution.objects.count() == 2
    assert workspace.attached.get().pk == cluster_id_for("abcdefabcdef") != "abcdefabcdef"


def test_pair_with_unwritable_cluster_is_not_written_at_all(shop: Shop) -> None:
    """As if the process died between the two rows: the id of the cluster is taken."""
    Execution.objects.create(
        id=cluster_id_for("abcdefabcdef"),
        kind="job",
        owner=shop.people.owner,
        project=shop.project,
        environment=shop.job,
        **on_tier(shop.tier),
    )
    with pytest.raises(IntegrityError), transaction.atomic():
        submit(attached(shop), gate=why_not_launch, now=NOW, execution_id="abcdefabcdef")
    assert [execution.kind for execution in Execution.objects.all()] == ["job"]
    assert not LifecycleEntry.objects.exists()


def test_pair_beyond_the_queue_limit_is_refused_together(shop: Shop, configure: Configure) -> None:
    configure(MAXIMUM_EXECUTIONS_PER_USER, 8)
    configure(GLOBAL_QUEUE_LIMIT, 1)
    shop.launch_with_cluster()  # will start
    shop.launch_with_cluster(after=1)  # will wait, as one
    with pytest.raises(Rejected, match="1 executions wait for a free slot already"):
        shop.launch_with_cluster(after=2)
    assert Execution.objects.count() == 4


# --- What is offered ---


def test_tier_of_a_framework_is_for_its_clusters_only(shop: Shop, worker_tier: HardwareTier) -> None:
    worker_tier.kinds = ["ray", "job"]
    worker_tier.save()
    owner = shop.people.owner

    def offered(kind: str, framework: str = "") -> bool:
        return any(tier.pk == "worker" for tier in Offers(owner).tiers(kind, framework))

    assert (offered("cluster", "ray"), offered("cluster"), offered("job")) == (True, True, True)
    assert (offered("cluster", "dask"), offered("workspace")) == (False, False)
    assert problems_of(alone(shop, tier=worker_tier)) == {
        "worker_tier": "Worker is not for Dask clusters; choose another tier."
    }
    worker_tier.kinds = ["cluster"]
    worker_tier.save()
    assert problems_of(alone(shop, tier=worker_tier, head_tier=worker_tier)) == {}


def test_the_head_tier_is_checked_like_the_workers(shop: Shop, worker_tier: HardwareTier) -> None:
    worker_tier.groups.add(Group.objects.create(name="vision"))
    assert problems_of(alone(shop, head_tier=worker_tier)) == {
        "head_tier": "Worker is limited to certain groups; choose another, or ask your admin."
    }
    worker_tier.is_archived = True
    worker_tier.save()
    assert problems_of(alone(shop, head_tier=worker_tier))["head_tier"].startswith(
        "This hardware tier is no longer available"
    )


# --- Versions ---


def test_images_with_other_versions_of_python_are_told() -> None:
    lab, grid = (
        Environment(name=name, image=f"rayproject/ray:2.60.0-py{python}", frameworks={"ray": "2.60.0"})
        for name, python in (("Lab", "311"), ("Grid", "312"))
    )
    assert version_mismatch(lab, grid, "ray") == (
        "Lab has Python 3.11 and the cluster would have 3.12; Ray Client refuses another minor version. "
        "Choose environments with the same Python."
    )


def test_built_image_names_and_marked_requirements_say_nothing(db: None) -> None:
    lab = Environment.objects.create(id="py39", name="Lab", image="python:3.12", port=1, frameworks={"ray": "2.60.0"})
    requirements = 'ray==2.9.3; python_version < "3.9"\ndask==2026.8.0'
    lab.revisions.create(
        number=2, image="built/py39:2", base=lab.revisions.get(), requirements=requirements, state="ready"
    )
    Environment.objects.update(current_revision=2, image="built/py39:2")
    [declared] = declared_by(list(Environment.objects.all()))
    assert (declared.python, declared.packages) == ("3.12", {"dask": "2026.8.0"})


def test_workspace_without_the_framework_is_told_the_installation() -> None:
    lab, grid = Environment(name="Lab", frameworks={}), Environment(name="Grid", frameworks={"ray": "2.60.0"})
    assert version_mismatch(lab, grid, "ray") == (
        "Lab is not known to contain Ray, so its code may not be able to use the cluster. "
        "Choose an environment with Ray 2.60.0, or install that version in it."
    )
    assert version_mismatch(lab, grid, "dask") == ""


# --- What is refused ---


WRONG: list[dict[str, Any]] = [
    {"workers_minimum": 0},
    {"workers_minimum": 6},
    {"workers_maximum": 25},
    {"target_cpu": 101},
    {"target_cpu": 10},
    {"target_cpu": 0, "target_memory": 0},
    *({"local_storage": amount} for amount in ("lots", "0", "20", "1Pi")),
    {"framework": "flink"},
    {"framework": "ray"},
]


def test_each_problem_is_said_at_its_field_as_stored(shop: Shop) -> None:
    blocks = []
    for changes in WRONG:
        [(field, sentence)] = problems_of(alone(shop, **changes)).items()
        blocks.append(f"# {', '.join(f'{name} {value}' for name, value in changes.items())}\n{field}: {sentence}")
    assert_golden("words-of-cluster-problems", "\n".join(blocks), ending="txt")


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
