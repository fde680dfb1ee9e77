"""The record of a start: written once with the change that ends it, whatever happens to the controller."""

from datetime import timedelta
from typing import Any

import pytest

from grid.configuration import OVER_QUOTA_TIMEOUT
from grid.diagnosis.startup import Phase
from grid.executions.stopping import request_stop
from grid.kube.objects import RawObject
from grid.kube.resources import EVENTS, NODES, PODS
from grid.models import ConfigRecord, Execution, StartUp
from grid.models.dataplane import LOCAL
from grid.queue import admission
from grid.starts import startups
from tests.controller.world import Fault, Killed, World, fresh, in_world
from tests.support.builders import condition, node, stamp
from tests.support.builders import event as kube_event
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
    assert record.total == 12
    assert record.at == execution.requested_at + timedelta(seconds=12)


def test_the_phases_of_a_record_add_up(shop: Shop) -> None:
    starts(World(), shop.launch())
    record = StartUp.objects.get()
    columns = [*Phase, "merged"]
    assert sum(getattr(record, name) or 0 for name in columns) == pytest.approx(record.total)


def test_events_that_come_after_the_start_complete_its_record(shop: Shop) -> None:
    starts(World(), shop.launch(), events_late=True)
    record = StartUp.objects.get()
    assert (record.image_cached, record.image_bytes) == (False, 1000)


@in_world
async def at_rest(world: World, execution: Execution) -> Any:
    controller = world.controller()
    pod = await scheduled(world, controller, execution)
    is_ready(world, pod)
    await world.step(controller)
    written = StartUp.objects.get()
    for seconds in (1, 120):
        world.passes(seconds)
        says(world, pod, f"Unhealthy{seconds}")
        await world.step(controller)
    return written


def test_events_of_later_write_nothing(shop: Shop) -> None:
    world = World()
    at_rest(world, shop.launch())
    assert StartUp.objects.get().image_cached is None


@in_world
async def waits_for_node(world: World, execution: Execution) -> Any:
    controller = world.controller()
    pod = await scheduled(world, controller, execution, after=60)
    world.cluster.put(
        NODES,
        node(
            "node-1",
            created=world.now - timedelta(seconds=30),
            conditions=[condition("Ready", "True", at=world.now - timedelta(seconds=5))],
        ),
    )
    world.start(pod)
    await world.step(controller)


def test_the_start_of_its_node_is_recorded(shop: Shop) -> None:
    execution = shop.launch()
    waits_for_node(World(), execution)
    record = StartUp.objects.get()
    assert (record.node_started, record.node_wait, record.scheduling, record.node_joining) == (True, 55, 5, 25)


@in_world
async def stopped_before(world: World, execution: Execution) -> Any:
    controller = world.controller()
    await scheduled(world, controller, execution)
    world.passes(4)
    request_stop(execution, by="alice", now=world.now)
    await world.step(controller)


def test_start_stopped_before_running_is_recorded_partly(shop: Shop) -> None:
    stopped_before(World(), shop.launch())
    record = StartUp.objects.get()
    assert (record.ran, record.reason, record.queued, record.volumes) == (False, "stop_requested", 2, 4)
    assert record.total == 6


def test_start_that_left_the_queue_is_recorded_with_wait(shop: Shop) -> None:
    execution = shop.launch()
    request_stop(execution, by="alice", now=NOW + timedelta(seconds=30))
    record = StartUp.objects.get()
    assert (record.ran, record.reason, record.queued, record.total) == (False, "stopped", 30, 30)
    assert record.image == "compute-grid/jupyterlab:4.6"


def test_start_timed_out_in_queue_is_recorded_with_wait(shop: Shop) -> None:
    ConfigRecord.objects.create(key=OVER_QUOTA_TIMEOUT.key, value="60")
    shop.tier.maximum_simultaneous = 1
    shop.tier.save()
    shop.launch()
    late = shop.launch(after=1)
    admission.admit_waiting(LOCAL, now=NOW)
    admission.admit_waiting(LOCAL, now=NOW + timedelta(seconds=90))
    record = StartUp.objects.get()
    assert (record.execution_id, record.ran, record.reason) == (late.pk, False, "over_quota_timeout")


@pytest.mark.parametrize(
    "after", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["before its effect", "after its effect"]
)
def test_controller_killed_at_any_call_leaves_a_single_record(shop: Shop, after: bool) -> None:
    @in_world
    async def killed_at_each() -> None:
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
            at += 1

    killed_at_each()


def test_cluster_record_covers_head_and_first_worker(shop: Shop, worker_tier: Any) -> None:
    @in_world
    async def comes_up() -> None:
        world = World()
        shop.launch_cluster(head_tier=shop.tier, tier=worker_tier)
        controller = world.controller()
        for _ in range(8):
            await world.step(controller)
            world.behave()
            world.passes(1)

    comes_up()
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
