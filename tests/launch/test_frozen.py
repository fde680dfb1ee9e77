"""What a launch has frozen stays as it was written, whatever people and the controller do with the execution afterwards."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from grid.launch import lifecycle
from grid.launch.changes import resize, restart_head
from grid.launch.request import request_stop
from grid.models import Execution
from grid.models.execution import FROZEN_AT_LAUNCH, FrozenAtLaunch
from tests.launch.conftest import NOW, Shop
from tests.launch.test_cluster_attached import both_running
from tests.launch.test_cluster_life import to_end
from tests.launch.world import World, fresh, in_world
from tests.support.virtual import passes


def stored() -> dict[str, tuple[Any, ...]]:
    """The frozen columns of each execution as the database has them, byte for byte."""
    columns = ", ".join(f"CAST({name} AS text)" for name in sorted(FROZEN_AT_LAUNCH))
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT id, {columns} FROM grid_execution")
        return {row[0]: row[1:] for row in cursor.fetchall()}


@in_world
async def test_a_pair_that_is_changed_restarted_and_stopped_keeps_what_was_frozen(shop: Shop) -> None:
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


def test_a_workspace_whose_cluster_was_stopped_before_it_started_keeps_what_was_frozen(shop: Shop) -> None:
    _, cluster = shop.launch_with_cluster()
    frozen = stored()
    request_stop(cluster, by="alice", now=NOW)
    assert stored() == frozen


def saved(execution: Execution) -> None:
    execution.save()


def saved_by_name(execution: Execution) -> None:
    execution.save(update_fields=["title", "spec"])


def updated(execution: Execution) -> None:
    Execution.objects.filter(pk=execution.pk).update(spec={})


def updated_in_bulk(execution: Execution) -> None:
    Execution.objects.bulk_update([execution], ["spec"])


def updated_by_the_writer_of_states(execution: Execution) -> None:
    lifecycle.update(execution.pk, {"spec": {}}, revision=execution.revision, now=NOW)


WRITES = [saved, saved_by_name, updated, updated_in_bulk, updated_by_the_writer_of_states]


@pytest.mark.parametrize("write", WRITES)
def test_no_way_of_writing_a_stored_execution_changes_it(shop: Shop, write: Callable[[Execution], None]) -> None:
    execution, frozen = shop.launch(), stored()
    execution.spec = {"another": "one"}
    with pytest.raises(FrozenAtLaunch, match=r"Only the launch writes .*spec"), transaction.atomic():
        write(execution)
    assert stored() == frozen


def test_what_may_change_is_saved_by_its_name(shop: Shop) -> None:
    execution = shop.launch()
    execution.title = "Another"
    execution.save(update_fields=["title"])
    assert fresh(execution).title == "Another"


@pytest.mark.parametrize(
    "columns",
    [
        {"workers_minimum": 0},
        {"workers_minimum": 6},
        {"workers_maximum": 1},
        {"head_tier": None},
        {"kind": "job"},
    ],
)
def test_the_database_refuses_a_cluster_without_head_or_workers(shop: Shop, columns: dict[str, Any]) -> None:
    cluster = shop.launch_cluster()
    with pytest.raises(IntegrityError, match="cluster_has_head_and_workers"), transaction.atomic():
        Execution.objects.filter(pk=cluster.pk).update(**columns)
