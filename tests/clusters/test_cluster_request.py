"""What a person may ask of a cluster, and what is written for it; refusals have tests of their own."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction

from grid.configuration import CLUSTER_SETTINGS, FRAMEWORK_SETTINGS, GLOBAL_QUEUE_LIMIT, MAXIMUM_EXECUTIONS_PER_USER
from grid.core.errors import Rejected
from grid.environments.declaredversions import declared_by, version_mismatch
from grid.executions.launch_choices import environments_for, tiers_for
from grid.executions.request import cluster_id_for, submit
from grid.executions.spec import ScalingSpec, parse_spec
from grid.models import Environment, Execution, HardwareTier, LifecycleEntry
from grid.queue.launches import why_not_launch
from tests.clusters.cluster_requests import alone, attached, problems_of
from tests.support.frozen import on_tier
from tests.support.reading import OWNER
from tests.support.shop import NOW, Shop

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


def test_editing_tiers_environments_and_configuration_later_changes_nothing_launched(
    shop: Shop, worker_tier: HardwareTier, configure: Configure
) -> None:
    cluster = submit(alone(shop, head_tier=worker_tier), gate=why_not_launch, now=NOW)
    configure(CLUSTER_SETTINGS["drain_seconds"], 5)
    HardwareTier.objects.update(memory="64Gi")
    Environment.objects.update(frameworks={"dask": "2027.1.0"})

    spec = parse_spec(Execution.objects.get(pk=cluster.pk)).cluster
    assert spec is not None
    assert (spec.version, spec.head_tier.memory, spec.drain_seconds) == ("2026.8.0", "8Gi", 60)


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
        return tiers_for(owner, kind, framework).filter(pk="worker").exists()

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


def test_environments_for_clusters_are_those_of_that_kind(shop: Shop) -> None:
    owner = shop.people.owner
    ray = Environment.objects.create(
        id="ray", name="Ray", kind="cluster", image="ray", frameworks={"ray": "2.60.0", "dask": "2026.8.0"}
    )
    assert set(environments_for(owner, "cluster")) == {ray, shop.cluster}


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
