"""The controller's record of which pod held a node from when to when."""

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import cast

import pytest
from django.db import IntegrityError, connection
from django.test.utils import CaptureQueriesContext

from grid.controller.controller import Controller
from grid.controller.downtime import Downtime
from grid.core.errors import ClusterUnavailable
from grid.executions import ledger
from grid.executions.ledger import LedgerRecord
from grid.executions.stopping import request_stop
from grid.kube.objects import RawObject
from grid.kube.resources import PODS
from grid.models import Execution, HardwareTier, UsageInterval
from grid.usage import usage
from grid.usage.intervals import Changes, Interval
from tests.clusters import test_cluster_life as clusters
from tests.controller.world import Fault, Killed, World, fresh, in_world, to_running
from tests.support.builders import NAMESPACE
from tests.support.shop import NOW, Shop


def held(execution: Execution) -> list[tuple[float, float | None]]:
    """The seconds since NOW from which and until which its pods held nodes."""

    def second(at: datetime | None) -> float | None:
        return None if at is None else (at - NOW).total_seconds()

    rows = UsageInterval.objects.filter(execution=execution).order_by("began_at", "pk")
    return [(second(row.began_at) or 0, second(row.ended_at)) for row in rows]


def gone(world: World, pod: RawObject) -> None:
    world.cluster.remove(PODS, pod["metadata"]["name"], namespace=NAMESPACE)


async def bound(world: World, controller: Controller, *, after: float = 10) -> None:
    """The one pod gets its node after so many seconds, and the controller looks ten seconds later."""
    await world.step(controller)
    world.passes(after)
    world.behave()
    world.passes(10)
    await world.step(controller)


@in_world
async def test_workspace_uses_its_node_from_binding_to_pod_end(shop: Shop) -> None:
    world, execution = World(), shop.launch()
    controller = world.controller()
    await bound(world, controller)
    assert held(execution) == [(10, None)]
    row = UsageInterval.objects.get()
    assert (row.pod_name, row.node_name, row.owner, row.project) == (
        execution.object_name, "node-1", shop.people.owner, shop.project,
    )  # fmt: skip
    assert (row.tier, row.node_pool, row.price_per_hour) == (shop.tier, "default", Decimal("0.05"))
    assert (row.millicores, row.mebibytes, row.gpus) == (1000, 4096, 0)
    world.behave()
    await world.step(controller)
    request_stop(fresh(execution), by="alice", now=world.now)
    await world.step(controller)
    world.passes(20)
    assert held(execution) == [(10, None)], "while it ends it holds its node"
    world.behave()
    await world.step(controller)
    assert fresh(execution).settled_at is not None
    assert held(execution) == [(10, 40)]


@in_world
async def test_head_and_workers_use_machines_of_their_tiers(shop: Shop, worker_tier: HardwareTier) -> None:
    world, execution = World(), shop.launch_cluster(tier=worker_tier)
    controller = world.controller()
    await clusters.to_running(world, controller, execution)
    world.behave()
    await world.step(controller)
    rows = UsageInterval.objects.order_by("pk").values_list("tier", "millicores", "mebibytes", "price_per_hour")
    assert sorted(rows) == [
        ("small", 1000, 4096, Decimal("0.05")),
        ("worker", 2000, 8192, Decimal("0.10")),
        ("worker", 2000, 8192, Decimal("0.10")),
    ]


@in_world
async def test_execution_at_rest_costs_no_query_and_request(shop: Shop) -> None:
    world, execution = World(), shop.launch()
    controller = world.controller()
    await to_running(world, controller)
    before = world.cluster.count()
    await controller._reconciler.reconcile(execution.pk)
    assert world.cluster.count() == before
    with CaptureQueriesContext(connection) as captured:
        await controller.audit()
        await world.step(controller)
    assert any(execution.pk in query["sql"] for query in captured.captured_queries), "it was looked at"
    assert not any("usageinterval" in query["sql"] for query in captured.captured_queries)


@in_world
@pytest.mark.parametrize(
    ("is_gone", "is_known", "until"),
    [(False, True, None), (True, True, 30), (True, False, 1020)],
    ids=["it goes on", "gone, until the last controller lived", "gone, until noticed"],
)
async def test_restart_counts_what_somebody_watched(
    shop: Shop, is_gone: bool, is_known: bool, until: float | None
) -> None:
    world, execution = World(), shop.launch()
    await bound(world, world.controller())
    if is_gone:
        gone(world, world.pod_of(execution))
    world.passes(1000)
    away = Downtime("controller", NOW + timedelta(seconds=30), world.now)
    await world.step(world.controller(away=away) if is_known else world.controller())
    assert held(execution) == [(10, until)]


@in_world
async def test_job_that_began_and_ended_unwatched_is_counted(shop: Shop) -> None:
    world, execution = World(), shop.launch(kind="job", environment=shop.job)
    await world.step(world.controller())
    world.passes(10)
    world.behave()
    pod = world.pod_of(execution)
    scheduled = pod["status"]["conditions"]
    world.finish(pod, 0)
    pod["status"]["conditions"] = scheduled
    pod["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"] = "2026-03-04T09:00:30Z"
    world.cluster.put(PODS, pod)
    world.passes(1000)
    await world.step(world.controller())
    assert held(execution) == [(10, 30)]


@in_world
async def test_a_cache_that_lacks_the_pod_ends_nothing(shop: Shop) -> None:
    """A new controller's first list may be older than what the one before it saw."""
    world, execution = World(), shop.launch()
    await bound(world, world.controller())
    controller = world.controller()
    await world.step(controller, fresh=False)
    assert held(execution) == [(10, None)]
    world.cluster.available = False
    with pytest.raises(ClusterUnavailable):
        await world.controller()._reconciler.reconcile(execution.pk)
    assert held(execution) == [(10, None)], "who cannot ask concludes nothing"


@in_world
async def test_pod_end_missed_by_cache_counts_until_found(shop: Shop) -> None:
    world, execution = World(), shop.launch()
    controller = world.controller()
    await bound(world, controller)
    gone(world, world.pod_of(execution))
    await controller.audit()
    world.passes(5)
    await controller._reconciler.reconcile(execution.pk)
    assert held(execution)[0] == (10, 25)
    await controller.usage.observe(cast(LedgerRecord, ledger.read(execution.pk)), has_new_events=False)
    assert held(execution)[0] == (10, 25)


@in_world
async def test_intervals_are_closed_when_the_slots_are_freed(shop: Shop) -> None:
    """The API server says that no pod is left, before the cache has heard of it."""
    world, execution = World(), shop.launch()
    controller = world.controller()
    await bound(world, controller)
    request_stop(fresh(execution), by="alice", now=world.now)
    await world.step(controller)
    world.behave()
    await world.step(controller, fresh=False)
    assert fresh(execution).settled_at == world.now
    assert held(execution) == [(10, 20)]


@in_world
async def test_late_database_does_not_lengthen_an_observed_end(shop: Shop) -> None:
    world, execution = World(), shop.launch()
    fault = Fault()
    controller = world.controller(fault)
    await bound(world, controller)
    gone(world, world.pod_of(execution))
    world.refresh(controller)
    fault.at = fault.calls + 1
    with pytest.raises(Killed):
        await controller._reconciler.reconcile(execution.pk)
    world.passes(500)
    await world.step(controller)
    assert held(execution)[0] == (10, 20)


@in_world
async def test_two_controllers_at_once_count_each_pod_once(shop: Shop) -> None:
    world, execution = World(), shop.launch_cluster()
    both = [world.controller(), world.controller()]
    for _ in range(8):
        for controller in both:
            await world.step(controller)
        if fresh(execution).state == "running":
            request_stop(execution, by="alice", now=world.now)
        world.behave()
        world.passes(6)
    assert fresh(execution).settled_at is not None
    assert len(held(execution)) == 3
    assert all(end is not None and end > began for began, end in held(execution))


@in_world
async def test_recording_fault_is_logged_and_delays_no_stop(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*args: object) -> None:
        raise IntegrityError("NOT NULL constraint failed")

    monkeypatch.setattr(usage, "record", fail)
    world, execution = World(), shop.launch()
    controller = world.controller()
    await to_running(world, controller)
    request_stop(fresh(execution), by="alice", now=world.now)
    for _ in range(3):
        await world.step(controller)
        world.behave()
    assert fresh(execution).settled_at is not None
    assert "not recorded by UsageRecorder" in caplog.text


def test_pod_that_pretends_to_be_head_counts_as_launched(shop: Shop) -> None:
    execution = shop.launch()
    usage.record(execution.pk, Changes((replace(interval("a"), is_head=True),)))
    row = UsageInterval.objects.get()
    assert (row.tier, row.millicores, row.price_per_hour) == (shop.tier, 1000, Decimal("0.05"))


def interval(uid: str, ended: float | None = None) -> Interval:
    return Interval(uid, uid, "n", False, NOW, None if ended is None else NOW + timedelta(seconds=ended))


def test_writing_twice_changes_nothing(shop: Shop) -> None:
    execution = shop.launch()
    for _ in range(2):
        usage.record(execution.pk, Changes((interval("a"), interval("b", 7))))
    for second in (5, 9):
        usage.record(execution.pk, Changes(ended={"a": NOW + timedelta(seconds=second)}))
    usage.record(execution.pk, Changes((interval("a"),)))
    assert sorted(held(execution), key=lambda times: times[1] or 0) == [(0, 5), (0, 7)]
    assert set(UsageInterval.objects.values_list("seconds", flat=True)) == {5, 7}


def test_execution_with_unsummed_usage_cannot_be_deleted(shop: Shop) -> None:
    execution = shop.launch()
    usage.record(execution.pk, Changes((interval("a", 7),)))
    with pytest.raises(Exception, match="protected"):
        execution.delete()
