"""What a launch freezes: the same before it and after it, kept as it was written, and read as an earlier version meant it."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from django.db import IntegrityError, connection, transaction

from grid.clusters.changes import resize, restart_head
from grid.clusters.kind import HEAD_ADDRESS
from grid.executions import lifecycle
from grid.executions.launchrequest import LaunchRequest
from grid.executions.manifests import Manifest, build
from grid.executions.preview import Preview
from grid.executions.request import draft, submit
from grid.executions.spec import parse_spec
from grid.executions.stopping import request_stop
from grid.executions.storage import DEFAULT_STORAGE
from grid.models import Execution, HardwareTier, Workspace
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

ID = "0123456789ab"


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
