"""An execution belongs to the data plane of its tier, and is settled by the later of two writes: its end, and the freeing of its slots."""

from collections.abc import Callable
from datetime import timedelta
from itertools import permutations
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from pytest_django import DjangoCaptureOnCommitCallbacks

from grid.clusters import attached
from grid.clusters.changes import resize
from grid.configuration import GLOBAL_QUEUE_LIMIT, MAXIMUM_EXECUTIONS_PER_USER
from grid.database.changefeed import Change
from grid.executions import ledger, lifecycle
from grid.executions.ledger import EventRecord
from grid.executions.lifecycle import Transition
from grid.models import ConfigRecord, DataPlane, Execution, HardwareTier, LifecycleEntry, Membership, State
from grid.models.dataplane import LOCAL
from grid.observability import telemetry
from grid.projects import departures
from tests.clusters import cluster_requests
from tests.controller.world import World, fresh, in_world, to_running
from tests.support.frozen import write_frozen
from tests.support.shop import NOW, Shop, admit_waiting

Configure = Callable[[Any, int], None]
END, FREE = "end", "free"


@pytest.fixture
def west(shop: Shop) -> HardwareTier:
    """A tier of a second data plane."""
    plane = DataPlane.objects.create(id="west", name="West")
    return HardwareTier.objects.create(
        id="west", name="Western", data_plane=plane, node_pool="default", cores="1", memory="1Gi"
    )


def test_workspace_and_cluster_get_the_data_plane_of_tiers(shop: Shop, west: HardwareTier) -> None:
    workspace, cluster = shop.launch_with_cluster()
    assert (fresh(workspace).data_plane_id, cluster.data_plane_id) == (LOCAL, LOCAL)
    assert fresh(shop.launch(tier=west)).data_plane_id == "west"


def test_cluster_with_tiers_of_two_data_planes_is_refused(shop: Shop, west: HardwareTier) -> None:
    alone = cluster_requests.problems_of(cluster_requests.alone(shop, tier=west))
    assert alone == {
        "worker_tier": "Western is in the data plane “West” and Small in “This cluster”, and pods cannot reach each other from one to "
        "the other. Choose tiers of one data plane."
    }
    assert cluster_requests.problems_of(cluster_requests.alone(shop, tier=west, head_tier=west)) == {}


@in_world
async def test_each_controller_runs_what_is_in_its_data_plane(shop: Shop, west: HardwareTier) -> None:
    ours, theirs = shop.launch(), shop.launch(tier=west)
    here, there = World(), World()
    await to_running(here, here.controller())
    assert (fresh(ours).state, fresh(theirs).state, theirs.revision) == ("running", "queued", 0)
    await to_running(there, there.controller(data_plane="west"))
    assert fresh(theirs).state == "running"
    assert (len(here.pods()), len(there.pods())) == (1, 1)


@in_world
async def test_controller_told_of_foreign_execution_does_nothing(shop: Shop, west: HardwareTier) -> None:
    theirs, world = shop.launch(tier=west), World()
    admit_waiting("west", now=NOW)
    controller = world.controller()
    world.refresh(controller)
    before = Execution.objects.values().get(pk=theirs.pk)
    await controller.poll_told({Change(theirs.pk)})
    while not controller.idle:
        await controller.work()
    assert world.pods() == []
    assert Execution.objects.values().get(pk=theirs.pk) == before


def test_slots_held_in_a_data_plane_are_free_elsewhere(shop: Shop, west: HardwareTier, configure: Configure) -> None:
    configure(MAXIMUM_EXECUTIONS_PER_USER, 3)
    theirs, ours = shop.launch(tier=west), shop.launch_cluster(workers_minimum=1, workers_maximum=1)
    assert admit_waiting("west", now=NOW) == [theirs.pk]
    assert admit_waiting(LOCAL, now=NOW) == [ours.pk]
    resize(ours, minimum=1, maximum=2, by="alice", now=NOW)
    assert fresh(ours).slots == 3


def test_queue_of_another_data_plane_stays_empty(shop: Shop, west: HardwareTier, configure: Configure) -> None:
    configure(GLOBAL_QUEUE_LIMIT, 1)
    configure(MAXIMUM_EXECUTIONS_PER_USER, 1)
    shop.launch(tier=west)
    shop.launch(tier=west)
    assert shop.launch(after=60).data_plane_id == LOCAL


NOTE = EventRecord("away", NOW, "Cluster", "Normal", "Away", "It was away.", 1)
WORK: dict[str, Callable[[], object]] = {
    "what ends with its parents": lambda: attached.stop_with_parents(LOCAL, now=NOW),
    "who has left": lambda: departures.stop_departed(LOCAL, now=NOW),
    "who waits": lambda: admit_waiting(LOCAL, now=NOW),
    "what is told of all": lambda: ledger.note_for_all(LOCAL, NOTE),
}


@pytest.mark.parametrize("work", WORK)
def test_round_of_a_data_plane_writes_only_there(shop: Shop, west: HardwareTier, work: str) -> None:
    executions = everything_to_do(shop)
    for execution in executions:
        write_frozen(execution, data_plane="west")
    before = written()
    assert not WORK[work]()
    assert written() == before
    assert (len(ledger.row_versions(LOCAL)), len(ledger.running_clusters(LOCAL, {})[0])) == (0, 0)
    for execution in executions:
        write_frozen(execution, data_plane=LOCAL)
    assert (len(ledger.row_versions(LOCAL)), len(ledger.running_clusters(LOCAL, {})[0])) == (3, 1)
    before = written()
    WORK[work]()
    assert written() != before


def everything_to_do(shop: Shop) -> list[Execution]:
    """A running cluster whose workspace has ended, and one that waits, of somebody who has left."""
    workspace, cluster = shop.launch_with_cluster()
    left = shop.launch(shop.people.teammate)
    Membership.objects.filter(user=shop.people.teammate).delete()
    Execution.objects.filter(pk=workspace.pk).update(state=State.STOPPING)
    Execution.objects.filter(pk=cluster.pk).update(state=State.RUNNING)
    return [workspace, cluster, left]


def written() -> list[object]:
    return [*Execution.objects.order_by("pk").values(), *LifecycleEntry.objects.order_by("pk").values()]


def write(execution: Execution, what: str, seconds: int) -> None:
    now = NOW + timedelta(seconds=seconds)
    execution.refresh_from_db()
    change = Transition(State.STOPPED, "stopped", "Stopped.")
    if what == END:
        done = lifecycle.enter(execution.pk, change, revision=execution.revision, left=execution.state, now=now)
    else:
        done = lifecycle.update(execution.pk, {"slots_freed_at": now}, revision=execution.revision, now=now)
    assert done
    execution.refresh_from_db()


@pytest.mark.parametrize("order", list(permutations([END, FREE])))
def test_execution_with_slots_is_settled_by_the_later_write(shop: Shop, order: tuple[str, str]) -> None:
    execution = shop.launch()
    Execution.objects.update(state=State.RUNNING, slots_reserved_at=NOW)
    write(execution, order[0], 1)
    assert execution.settled_at is None
    write(execution, order[1], 2)
    assert execution.settled_at == NOW + timedelta(seconds=2)


def test_single_write_of_end_and_slots_settles_the_execution(shop: Shop) -> None:
    execution = shop.launch()
    Execution.objects.update(state=State.STOPPING, slots_reserved_at=NOW)
    execution.refresh_from_db()
    change = Transition(State.STOPPED, "stopped", "Stopped.")
    fields = {"slots_freed_at": NOW}
    assert lifecycle.enter(execution.pk, change, revision=execution.revision, left="stopping", now=NOW, fields=fields)
    execution.refresh_from_db()
    assert execution.settled_at == NOW


def test_execution_that_never_held_slots_settles_by_its_end(shop: Shop) -> None:
    execution = shop.launch()
    write(execution, END, 1)
    assert execution.settled_at == execution.ended_at


@pytest.mark.parametrize(
    "columns", [{"state": State.RUNNING}, {"state": State.STOPPED, "slots_reserved_at": NOW}], ids=["living", "holding"]
)
def test_database_refuses_to_settle_what_lives_or_holds_slots(shop: Shop, columns: dict[str, object]) -> None:
    shop.launch()
    with pytest.raises(IntegrityError), transaction.atomic():
        Execution.objects.update(settled_at=NOW, **columns)


def test_only_unsettled_executions_count_as_queued_and_holding(shop: Shop) -> None:
    queued, holding, gone = (shop.launch(after=second) for second in range(3))
    Execution.objects.filter(pk=holding.pk).update(state=State.ERROR, slots_reserved_at=NOW)
    write(gone, END, 5)
    assert list(Execution.objects.queued()) == [queued]
    assert list(Execution.objects.holding_slots()) == [holding]
    assert set(Execution.objects.unsettled()) == {queued, holding}


def test_entered_state_is_counted_once_committed(
    shop: Shop, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    execution, name = shop.launch(), "compute_grid_execution_failures_total"
    labels = {"state": "error", "reason": "test_settling"}
    change = Transition(State.ERROR, "test_settling", "It failed.")
    with django_capture_on_commit_callbacks(execute=True) as called:
        lifecycle.enter(execution.pk, change, revision=execution.revision + 1, left=execution.state, now=NOW)
        assert not called
        lifecycle.enter(execution.pk, change, revision=execution.revision, left=execution.state, now=NOW)
        assert telemetry.REGISTRY.get_sample_value(name, labels) is None
    assert telemetry.REGISTRY.get_sample_value(name, labels) == 1


def test_launches_and_admission_results_are_counted_once_per_reason(
    shop: Shop, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    def counted() -> list[float]:
        results = [{"result": result} for result in ("admitted", "deferred", "timed_out")]
        counts = [
            telemetry.REGISTRY.get_sample_value("compute_grid_admissions_total", labels) or 0 for labels in results
        ]
        launches = telemetry.REGISTRY.get_sample_value("compute_grid_launches_total", {"kind": "workspace"}) or 0
        return [launches, *counts]

    def grown(*, after: float = 0) -> list[float]:
        before = counted()
        with django_capture_on_commit_callbacks(execute=True):
            if not after:
                shop.launch()
                shop.launch(after=1)
            admit_waiting(LOCAL, now=NOW + timedelta(seconds=after))
        return [now - then for now, then in zip(counted(), before, strict=True)]

    ConfigRecord.objects.create(key=MAXIMUM_EXECUTIONS_PER_USER.key, value="1")
    assert grown() == [2, 1, 1, 0]
    work = ledger.unsettled_work([LOCAL], now=NOW + timedelta(seconds=31))
    assert work.queue_oldest_seconds == 30
    assert sum(work.counts.values()) == 2
    assert grown(after=10) == [0, 0, 0, 0]
    assert grown(after=1e6) == [0, 0, 0, 1]
    assert ledger.unsettled_work([LOCAL], now=NOW).queue_oldest_seconds == 0
