"""The record of a start, and the sums of a day's starts: written once with the change that ends it, whatever happens to the controller."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction

from grid.configuration import EXECUTION_RETENTION
from grid.controller import retention
from grid.diagnosis.startup import Phase
from grid.executions.stopping import request_stop
from grid.kube.objects import RawObject
from grid.kube.resources import EVENTS, NODES, PODS
from grid.models import Execution, HardwareTier, StartDay, StartUp
from grid.starts import startups
from grid.starts.startdays import StartSums, percentile, read_sums
from tests.controller.world import Fault, Killed, World, fresh, in_world
from tests.starts.startrecords import start_up
from tests.support.builders import condition, event as kube_event, node, stamp
from tests.support.shop import NOW, Shop

PULLED = 'Successfully pulled image "lab" in 6s (6.5s including waiting). Image size: 1000 bytes.'


def says(world: World, pod: RawObject, reason: str, message: str = "") -> None:
    """An event of the kubelet now, about the pod's program."""
    name = f"{pod['metadata']['name']}.{reason.lower()}"
    raw = kube_event(name, about=pod, reason=reason, message=message, at=world.now)
    raw["involvedObject"]["fieldPath"] = "spec.containers{run}"
    raw |= {"firstTimestamp": stamp(world.now), "lastTimestamp": stamp(world.now)}
    world.cluster.put(EVENTS, raw)


def is_ready(world: World, pod: RawObject) -> None:
    world.start(pod)
    pod["status"]["conditions"] = [
        condition("PodScheduled", "True", at=world.now - timedelta(seconds=10)),
        condition("Ready", "True", at=world.now),
    ]
    world.cluster.put(PODS, pod)


async def scheduled(world: World, controller: Any, execution: Execution, *, after: float = 0) -> RawObject:
    """Launched at NOW, admitted two seconds later, bound `after` seconds after its pod was created."""
    world.passes(2)
    for _ in range(3):
        await world.step(controller)
    pod = world.pod_of(execution)
    pod["metadata"]["creationTimestamp"] = stamp(world.now)
    world.passes(after)
    world.schedule(pod)
    await world.step(controller)
    return pod


@in_world
async def starts(world: World, execution: Execution, *, events_late: bool = False) -> Any:
    """Pulled for 6.5 seconds, ready at the tenth after it was bound."""
    controller = world.controller()
    pod = await scheduled(world, controller, execution)
    world.passes(1)
    if not events_late:
        says(world, pod, "Pulling")
    world.passes(7)
    if not events_late:
        says(world, pod, "Pulled", PULLED)
        says(world, pod, "Started")
    world.passes(2)
    is_ready(world, pod)
    await world.step(controller)
    if events_late:
        assert StartUp.objects.get().image_cached is None
        says(world, pod, "Pulled", PULLED)
        await world.step(controller)


def test_a_start_is_recorded_when_it_runs(shop: Shop) -> None:
    execution = shop.launch()
    starts(World(), execution)
    assert fresh(execution).state == "running"
    record = StartUp.objects.get()
    assert (record.execution_id, record.ran, record.reason, record.kind) == (execution.pk, True, "", "workspace")
    assert (record.tier_id, record.environment_id, record.node_pool) == ("small", "jupyterlab", "default")
    assert record.image == "compute-grid/jupyterlab:4.6"
    assert (record.queued, record.pulling, record.volumes) == (2, 6.5, 1)
    assert (record.image_cached, record.image_bytes, record.node_started) == (False, 1000, False)
    assert sum(getattr(record, name) or 0 for name in (*Phase, "merged")) == record.total == 12
    assert record.at == execution.requested_at + timedelta(seconds=12)


@in_world
async def test_events_of_later_write_nothing(shop: Shop) -> None:
    world, execution = World(), shop.launch()
    controller = world.controller()
    pod = await scheduled(world, controller, execution)
    is_ready(world, pod)
    await world.step(controller)
    for seconds in (1, 120):
        world.passes(seconds)
        says(world, pod, f"Unhealthy{seconds}")
        await world.step(controller)
    assert StartUp.objects.get().image_cached is None


@in_world
async def test_the_start_of_its_node_is_recorded(shop: Shop) -> None:
    world, execution = World(), shop.launch()
    controller = world.controller()
    pod = await scheduled(world, controller, execution, after=60)
    conditions = [condition("Ready", "True", at=world.now - timedelta(seconds=5))]
    world.cluster.put(NODES, node("node-1", created=world.now - timedelta(seconds=30), conditions=conditions))
    world.start(pod)
    await world.step(controller)
    record = StartUp.objects.get()
    assert (record.node_started, record.node_wait, record.scheduling, record.node_joining) == (True, 55, 5, 25)


@in_world
async def test_start_stopped_before_running_is_recorded_partly(shop: Shop) -> None:
    world, execution = World(), shop.launch()
    controller = world.controller()
    await scheduled(world, controller, execution)
    world.passes(4)
    request_stop(execution, by="alice", now=world.now)
    await world.step(controller)
    record = StartUp.objects.get()
    assert (record.ran, record.reason, record.queued, record.volumes) == (False, "stop_requested", 2, 4)
    assert record.total == 6


def test_start_that_left_the_queue_is_recorded_with_wait(shop: Shop) -> None:
    execution = shop.launch()
    request_stop(execution, by="alice", now=NOW + timedelta(seconds=30))
    record = StartUp.objects.get()
    assert (record.ran, record.reason, record.queued, record.total) == (False, "stopped", 30, 30)
    assert record.image == "compute-grid/jupyterlab:4.6"


@pytest.mark.parametrize(
    ("after", "every"), [(False, 3), *(pytest.param(after, 1, marks=pytest.mark.slow) for after in (False, True))]
)
@in_world
async def test_controller_killed_at_any_call_leaves_a_single_record(shop: Shop, after: bool, every: int) -> None:
    """Killed before a call's effect or after it."""
    at, calls = 0, 1
    while at <= calls:
        world, execution, fault = World(), shop.launch(), Fault(at=at, after=after)
        controller = world.controller(fault)
        for _ in range(10):
            try:
                await world.step(controller)
            except Killed:
                controller = world.controller()
            if fresh(execution).state == "running":
                break
            world.behave()
            world.passes(1)
        record = StartUp.objects.get(pk=execution.pk)
        assert (record.ran, record.reason) == (True, "")
        Execution.objects.filter(pk=execution.pk).update(state="stopped", slots_freed_at=NOW, settled_at=NOW)
        calls = max(calls, fault.calls if at == 0 else 0)
        at += every if at else 1


@in_world
async def test_cluster_record_covers_head_and_first_worker(shop: Shop, worker_tier: HardwareTier) -> None:
    world = World()
    shop.launch_cluster(head_tier=shop.tier, tier=worker_tier)
    controller = world.controller()
    for _ in range(8):
        await world.step(controller)
        world.behave()
        world.passes(1)
    record = StartUp.objects.get()
    assert (record.kind, record.framework, record.tier_id, record.ran) == ("cluster", "dask", "small", True)
    assert record.first_worker is not None


def test_measurement_failure_does_not_block_the_start(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr(startups, "measured", fail)
    execution = shop.launch()
    starts(World(), execution)
    assert fresh(execution).state == "running"
    assert not StartUp.objects.exists()


# --- Added up by day, in all five groups ---

IMAGE = "compute-grid/jupyterlab:4.6"
GROUPS = {("all", ""), ("tier", "small"), ("environment", "jupyterlab"), ("pool", "default"), ("image", IMAGE)}


def sums(grouping: str = "all") -> StartSums:
    return read_sums(StartDay.objects.get(grouping=grouping).sums)


def ran(total: float, **changes: Any) -> StartUp:
    return start_up(f"e{total}", **{"total": total, "image": IMAGE, **changes})


def record(start: StartUp) -> None:
    with transaction.atomic():
        startups.count_start(start)


def test_running_start_is_counted_in_each_of_its_groups(shop: Shop) -> None:
    execution = shop.launch()
    starts(World(), execution)
    assert set(StartDay.objects.values_list("grouping", "group")) == GROUPS
    for grouping, _ in GROUPS:
        of_group = sums(grouping)
        assert (
            of_group.starts,
            of_group.image_pulled,
            of_group.image_known,
            of_group.new_node,
            of_group.node_known,
        ) == (1, 1, 1, 0, 1)
        assert of_group.slowest == [(12.0, execution.pk)]
        assert 11.7 <= (percentile(of_group.times["total"], 50) or 0) <= 12.3
        assert 6.3 <= (percentile(of_group.times["pulling"], 50) or 0) <= 6.7
    assert set(StartDay.objects.values_list("day", "starts")) == {(NOW.date(), 1)}


def test_late_events_replace_what_was_counted(shop: Shop) -> None:
    starts(World(), shop.launch(), events_late=True)
    at_once, late = StartUp.objects.get(), sums()
    assert at_once.image_cached is False
    assert (late.starts, late.image_pulled, late.image_known) == (1, 1, 1)
    assert late.times.keys() >= {"total", "pulling"}
    assert "merged" not in late.times
    assert late.slowest == [(at_once.total, at_once.pk)]


def test_days_and_groups_are_separate_and_summed_per_day(shop: Shop) -> None:
    record(ran(1))
    record(ran(2, image="other:1"))
    record(ran(3, at=NOW - timedelta(days=1)))
    counts = {(row.grouping, row.group, row.day): row.starts for row in StartDay.objects.all()}
    day, before = NOW.date(), NOW.date() - timedelta(days=1)
    assert (counts["tier", "small", day], counts["tier", "small", before]) == (2, 1)
    assert (counts["image", IMAGE, day], counts["image", "other:1", day]) == (1, 1)


def test_an_execution_is_counted_once(shop: Shop) -> None:
    record(ran(5))
    record(start_up("e5", total=50))
    assert (StartUp.objects.get().total, sums().starts) == (5, 1)


def test_both_stay_when_their_execution_is_deleted(shop: Shop, configure: Callable[..., None]) -> None:
    configure(EXECUTION_RETENTION, 30)
    execution = shop.launch()
    record(start_up(execution.pk, total=12))
    long_ago = NOW - timedelta(days=31)
    Execution.objects.update(state="stopped", ended_at=long_ago, slots_freed_at=long_ago, settled_at=long_ago)
    while retention.drop_executions(NOW, 100):
        pass
    assert not Execution.objects.exists()
    assert StartUp.objects.get().execution_id == execution.pk
    assert sums().slowest == [(12.0, execution.pk)]
