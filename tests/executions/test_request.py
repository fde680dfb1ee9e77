"""Who may launch what, what is refused and why; what a launch freezes stays as it was written, and is read as it was meant."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError, connection, transaction

from grid.clusters.changes import resize, restart_head
from grid.clusters.kind import HEAD_ADDRESS
from grid.configuration import GLOBAL_QUEUE_LIMIT, HOME_VOLUME_SIZE, MAXIMUM_EXECUTIONS_PER_USER
from grid.core.errors import Rejected
from grid.executions import lifecycle
from grid.executions.launchrequest import LaunchRequest, Offers, projects_for
from grid.executions.manifests import Manifest, build
from grid.executions.preview import Preview
from grid.executions.request import draft, submit, validate
from grid.executions.spec import parse_spec
from grid.executions.stopping import request_stop
from grid.executions.storage import DEFAULT_STORAGE
from grid.models import Environment, Execution, HardwareTier, LifecycleEntry, QueueOrder, State, Workspace
from grid.models.execution import FROZEN_AT_LAUNCH, FrozenAtLaunch
from grid.queue.launches import why_not_launch
from tests.clusters.cluster_requests import alone, attached
from tests.clusters.test_cluster_attached import both_running
from tests.clusters.test_cluster_life import to_end
from tests.controller.world import World, fresh, in_world
from tests.executions.test_manifests import spec
from tests.support.frozen import write_frozen
from tests.support.shop import NOW, Shop
from tests.support.virtual import passes

Configure = Callable[[Any, int], None]
ID = "0123456789ab"


def paths(problems: list[Any]) -> list[tuple[str, str]]:
    return [(problem.path, problem.code) for problem in problems]


def test_launch_is_a_queued_row_with_first_history_line(shop: Shop) -> None:
    execution = submit(shop.request(title="  Explore "), gate=why_not_launch, now=NOW)

    stored = Execution.objects.get(pk=execution.pk)
    assert (stored.state, stored.title, stored.revision, stored.requested_at) == ("queued", "Explore", 0, NOW)
    entry = LifecycleEntry.objects.get(execution=execution)
    assert (entry.to_state, entry.from_state, entry.actor, entry.reason) == ("queued", "", "alice", "requested")


def test_owner_and_members_launch_and_nobody_else(shop: Shop) -> None:
    people = shop.people
    assert list(projects_for(people.owner)) == [shop.project]
    for other in (people.stranger, people.operator, people.admin):
        assert not projects_for(other).exists()
        assert paths(validate(shop.request(owner=other))) == [("project", "not_contributor")]
    assert list(projects_for(people.teammate)) == [shop.project]


def test_home_registry_and_browser_rights_are_frozen_at_launch(shop: Shop, configure: Configure) -> None:
    configure(HOME_VOLUME_SIZE, 7)
    Environment.objects.filter(pk=shop.workspace.pk).update(image_pull_secret="ours", allows_service_workers=True)
    launched = submit(shop.request(), gate=why_not_launch, now=NOW)
    owner = shop.people.owner.pk
    assert launched.spec["home"] == {"volume_name": f"home-{shop.project.pk}-{owner}", "volume_size": "7Gi"}
    environment = launched.spec["environment"]
    assert (environment["image_pull_secret"], environment["allows_service_workers"]) == ("ours", True)


def test_all_problems_are_told_at_once_at_their_fields(shop: Shop) -> None:
    shop.project.is_archived = shop.workspace.is_archived = True
    shop.tier.is_visible = False
    for row in (shop.project, shop.workspace, shop.tier):
        row.save()

    with pytest.raises(Rejected) as refused:
        submit(shop.request(title="x" * 121), gate=why_not_launch, now=NOW)

    assert paths(list(refused.value.problems)) == [
        ("title", "too_long"),
        ("project", "not_contributor"),
        ("environment", "not_offered"),
        ("tier", "not_offered"),
    ]
    assert not Execution.objects.exists()


@pytest.mark.parametrize("title", ["two\nlines", "nul\x00", "\u202eevil"])
def test_a_title_that_cannot_be_seen_is_refused(shop: Shop, title: str) -> None:
    assert paths(validate(shop.request(title=title))) == [("title", "unprintable")]


def test_environment_is_launched_only_as_its_kind(shop: Shop) -> None:
    assert paths(validate(shop.request(kind="job"))) == [("environment", "kind")]
    assert validate(shop.request(kind="job", environment=shop.job)) == []
    assert Offers(shop.people.owner).environments("job") == [shop.job]


@pytest.mark.parametrize("kind", ["", "root"])
def test_an_unknown_kind_is_refused(shop: Shop, kind: str) -> None:
    assert ("kind", "kind") in paths(validate(shop.request(kind=kind)))


def test_tier_of_groups_is_offered_to_members_only_once(shop: Shop) -> None:
    groups = [Group.objects.create(name=name) for name in ("vision", "speech")]
    shop.tier.groups.set(groups)
    shop.people.owner.groups.set(groups)

    assert [tier.pk for tier in Offers(shop.people.owner).tiers("workspace")] == ["small"]
    assert not Offers(shop.people.teammate).tiers("workspace")
    assert paths(validate(shop.request(owner=shop.people.teammate))) == [("tier", "group")]


def test_a_tier_for_jobs_is_not_offered_for_workspaces(shop: Shop) -> None:
    shop.tier.kinds = ["job"]
    shop.tier.save()

    assert paths(validate(shop.request())) == [("tier", "kind")]
    assert Offers(shop.people.owner).tiers("job")


def test_launch_beyond_the_queue_limit_is_refused(shop: Shop, configure: Configure) -> None:
    configure(MAXIMUM_EXECUTIONS_PER_USER, 1)
    configure(GLOBAL_QUEUE_LIMIT, 1)
    shop.launch()  # will start
    shop.launch(after=1)  # will wait

    with pytest.raises(Rejected, match="1 executions wait for a free slot already, and the queue holds 1"):
        shop.launch(after=2)
    assert Execution.objects.count() == 2
    QueueOrder.objects.create(execution=Execution.objects.latest("requested_at"), held_at=NOW)
    with pytest.raises(Rejected, match=r"already \(1 is held by an operator\), and the queue holds 1"):
        shop.launch(after=2)
    # Somebody with a free slot does not wait, so the limit is none of his business.
    shop.launch(shop.people.teammate, after=3)


def test_a_queued_execution_stops_at_once(shop: Shop) -> None:
    execution = shop.launch()
    request_stop(execution, by="bob", now=NOW + timedelta(seconds=5))

    assert (execution.state, execution.stop_requested_by, execution.ended_at) == (
        State.STOPPED,
        "bob",
        NOW + timedelta(seconds=5),
    )
    assert [entry.to_state for entry in execution.lifecycle.all()] == ["queued", "stopped"]


def test_stopping_twice_or_after_the_end_changes_nothing(shop: Shop) -> None:
    execution = shop.launch()
    Execution.objects.filter(pk=execution.pk).update(state="running", revision=7)
    for by in ("alice", "bob"):
        request_stop(execution, by=by, now=NOW)
    assert (execution.state, execution.stop_requested_by, execution.revision) == ("running", "alice", 8)

    Execution.objects.filter(pk=execution.pk).update(state="failed", stop_requested_at=None)
    request_stop(execution, by="bob", now=NOW)
    assert (execution.state, execution.stop_requested_at) == ("failed", None)


def test_forged_choice_is_checked_against_the_rows(shop: Shop) -> None:
    forged = HardwareTier(id="secret", name="Secret", node_pool="x", cores="1", memory="1Gi")
    assert paths(validate(replace(shop.request(), tier=forged))) == [("tier", "not_offered")]


def stored() -> dict[str, tuple[Any, ...]]:
    """The frozen columns of each execution as the database has them, byte for byte."""
    names = FROZEN_AT_LAUNCH.intersection(field.column for field in Execution._meta.concrete_fields)
    columns = ", ".join(f"CAST({name} AS text)" for name in sorted(names))
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT id, {columns} FROM grid_execution")
        return {row[0]: row[1:] for row in cursor.fetchall()}


@in_world
async def test_changed_restarted_and_stopped_pair_keeps_its_frozen_columns(shop: Shop) -> None:
    world = World()
    workspace, cluster = shop.launch_with_cluster()
    frozen = stored()
    controller = world.controller()
    await both_running(world, controller, workspace, cluster)
    for minimum, maximum in ((3, 8), (1, 2)):
        resize(cluster, minimum=minimum, maximum=maximum, by="alice", now=world.now)
        restart_head(cluster, by="alice", now=world.now)
        await both_running(world, controller, workspace, cluster)
        await passes(60)
        await world.step(controller)
    assert (fresh(cluster).workers_minimum, cluster.workers_maximum) == (1, 2)
    assert cluster.status["restart_taken_up"]
    request_stop(cluster, by="alice", now=world.now)
    await to_end(world, controller, cluster)
    request_stop(workspace, by="alice", now=world.now)
    await to_end(world, controller, workspace)
    assert stored() == frozen


def saved_as_if_it_were_new(execution: Execution) -> None:
    execution._state.adding = True
    execution.save(force_update=True)


OVER_IT: dict[str, Any] = {"update_conflicts": True, "unique_fields": ["id"], "update_fields": ["spec"]}
WRITES: dict[str, Callable[[Execution], object]] = {
    "saved": lambda row: row.save(),
    "saved by name": lambda row: row.save(update_fields=["title", "spec"]),
    "saved as if it were new": saved_as_if_it_were_new,
    "updated": lambda row: Execution.objects.filter(pk=row.pk).update(spec={}),
    "updated in bulk": lambda row: Execution.objects.bulk_update([row], ["spec"]),
    "by the writer of states": lambda row: lifecycle.update(row.pk, {"spec": {}}, revision=row.revision, now=NOW),
    "by the base manager": lambda row: Execution._base_manager.filter(pk=row.pk).update(spec={}),
    "created over it": lambda row: Execution.objects.bulk_create([row], **OVER_IT),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_no_way_of_writing_a_stored_execution_changes_it(shop: Shop, write: Callable[[Execution], object]) -> None:
    execution, frozen = shop.launch(), stored()
    execution.spec = {"another": "one"}
    with pytest.raises(FrozenAtLaunch, match=r"only the launch writes .*spec"), transaction.atomic():
        write(execution)
    assert stored() == frozen


def test_no_frozen_column_is_updated(shop: Shop) -> None:
    rows = Execution.objects.filter(pk=shop.launch().pk)
    for column in FROZEN_AT_LAUNCH:
        with pytest.raises(FrozenAtLaunch, match=column):
            rows.update(**{column: 0})


GPU_TIER = {"cores": "3500m", "memory": "14Gi", "gpus": 2, "gpu_resource": "amd.com/gpu", "cost_per_hour": "0.5301"}


@pytest.fixture
def gpu_tier(shop: Shop) -> HardwareTier:
    return HardwareTier.objects.create(id="gpu", name="GPU", node_pool="default-gpu", **GPU_TIER)


OF_A_POD = ("node_pool", "millicores", "memory_bytes", "gpus", "gpu_resource", "price_per_hour")
ON_SMALL = ("default", 1000, 4 * 2**30, 0, "", Decimal("0.05"))
ON_GPU = ("default-gpu", 3500, 14 * 2**30, 2, "amd.com/gpu", Decimal("0.5301"))
NOTHING = ("", 0, 0, 0, "", 0)


def of_a_pod(execution: Execution, prefix: str = "") -> tuple[Any, ...]:
    return tuple(getattr(fresh(execution), f"{prefix}{name}") for name in OF_A_POD)


def test_launch_notes_request_and_cost_despite_later_edits(shop: Shop, gpu_tier: HardwareTier) -> None:
    execution = shop.launch(tier=gpu_tier)
    HardwareTier.objects.update(node_pool="other", cores="9", memory="9Gi", gpus=9, cost_per_hour=9)
    assert of_a_pod(execution) == ON_GPU
    assert (of_a_pod(execution, "head_"), execution.framework) == (NOTHING, "")


def test_a_cluster_notes_its_worker_and_its_head_apart(shop: Shop, gpu_tier: HardwareTier) -> None:
    workspace, cluster = shop.launch_with_cluster(tier=gpu_tier, workers_minimum=2, workers_maximum=5)
    assert (of_a_pod(workspace), of_a_pod(cluster), of_a_pod(cluster, "head_")) == (ON_SMALL, ON_GPU, ON_SMALL)
    assert (cluster.framework, cluster.workers_minimum, cluster.workers_maximum) == ("dask", 2, 5)


def test_cluster_of_fixed_size_has_equal_minimum_and_maximum(shop: Shop) -> None:
    cluster = shop.launch_cluster(autoscale=False, workers_minimum=3, workers_maximum=9)
    assert (cluster.workers_minimum, cluster.workers_maximum) == (3, 3)


NO_CLUSTER = "cluster_has_head_and_workers"
REFUSED: list[tuple[str, str, object, str]] = [
    *(("cluster", column, -1, "(?i)check") for column in ("millicores", "memory_bytes", "gpus", "price_per_hour")),
    *(("workspace", column, 1, NO_CLUSTER) for column in ("head_millicores", "head_gpus", "head_price_per_hour")),
    *(("cluster", "workers_minimum", number, NO_CLUSTER) for number in (0, 6)),
    ("cluster", "head_tier", None, NO_CLUSTER),
    ("cluster", "kind", "job", NO_CLUSTER),
]


def test_database_refuses_impossible_requests_and_halves_of_clusters(shop: Shop) -> None:
    rows = {"cluster": shop.launch_cluster(), "workspace": shop.launch()}
    for kind, column, value, constraint in REFUSED:
        with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
            write_frozen(rows[kind], **{column: value})


def test_spec_from_before_clusters_gives_the_same_objects() -> None:
    frozen: dict[str, Any] = msgspec.to_builtins(spec())
    now = build(parse_spec(Execution(spec=frozen)), namespace="compute-grid", token="t")
    then = build(
        parse_spec(Execution(spec={key: value for key, value in frozen.items() if key != "cluster"})),
        namespace="compute-grid",
        token="t",
    )
    assert then == now


@pytest.mark.parametrize("stored", [None, {}, [], {"id": 1}, "text"])
def test_a_spec_that_cannot_be_read_says_so(stored: object) -> None:
    with pytest.raises(ValueError, match="What was stored at launch cannot be read"):
        parse_spec(Execution(spec=stored))


def drafted(request: LaunchRequest) -> list[Execution]:
    return draft(request, now=NOW + timedelta(minutes=1), execution_id=ID)


def objects(unit: list[Execution]) -> list[Manifest]:
    return Preview.of(unit).objects(namespace="compute-grid", storage=DEFAULT_STORAGE, token="t")


@pytest.mark.django_db
@pytest.mark.parametrize("shape", ["workspace", "job", "cluster", "workspace with cluster"])
def test_the_previewed_objects_are_those_that_the_launch_creates(shop: Shop, shape: str) -> None:
    request = {
        "workspace": shop.request(),
        "job": shop.request(kind="job", environment=shop.job),
        "cluster": alone(shop),
        "workspace with cluster": attached(shop),
    }[shape]
    before = objects(drafted(request))
    assert (Execution.objects.count(), Workspace.objects.count()) == (0, 0)
    submit(request, gate=why_not_launch, now=NOW, execution_id=ID)
    rows = list(Execution.objects.order_by("attached_to"))
    rows.sort(key=lambda row: row.attached_to_id is not None)
    assert before == objects(rows)
    assert (f"{HEAD_ADDRESS}" in str(before)) is ("cluster" in shape)
    kinds = [manifest.resource.kind for manifest in before]
    assert kinds.count("PersistentVolumeClaim") == (1 if shape == "cluster" else 2)


@pytest.mark.django_db
def test_pods_are_those_started_with_their_tier_requests(shop: Shop, worker_tier: HardwareTier) -> None:
    (pod,) = Preview.of(drafted(shop.request())).pods()
    assert (pod.tier, pod.pool, pod.count, pod.requests["pods"]) == (shop.tier.name, shop.tier.node_pool, 1, 1)
    pods = Preview.of(drafted(attached(shop, tier=worker_tier))).pods()
    assert [(pod.tier, pod.count) for pod in pods] == [(shop.tier.name, 1), (shop.tier.name, 1), (worker_tier.name, 2)]
