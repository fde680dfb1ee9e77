"""What the controller has stored of waits for room and of starts on nodes, and how often it lists the nodes for that."""

from datetime import timedelta
from typing import Any

from grid.controller.controller import Controller
from grid.kube.resources import EVENTS, NODES, PODS
from grid.models import Execution, StartUp, WaitPrediction
from grid.queue.waitkeeper import LIST_SECONDS, WaitKeeper
from tests.controller.world import World, in_world
from tests.queue.test_wait_estimate import ended
from tests.support.builders import condition, event, node, stamp
from tests.support.shop import NOW, Shop

SIZE = 2_000_000_000


def ended_on_nodes(shop: Shop) -> None:
    """Ten that started within 30 seconds from getting slots, 20 of them the pull of their image, and ran for ten minutes."""
    ended(shop, 10, started=30, seconds=600)
    for row in Execution.objects.filter(start_up=None, state="stopped"):
        StartUp.objects.create(
            execution=row, at=NOW, ran=True, total=30, queued=0, creating=0, node_wait=0, scheduling=0, pulling=20,
            image_bytes=SIZE, image_cached=False, image=shop.workspace.image, node_started=False, tier=row.tier,
            environment=row.environment, kind=row.kind, node_pool=row.node_pool,
        )  # fmt: skip


def refused(world: World, execution: Execution) -> None:
    pod = world.pod_of(execution)
    pod["metadata"]["creationTimestamp"] = stamp(world.now)
    pod["status"] = {"phase": "Pending", "conditions": [condition("PodScheduled", "False", "Unschedulable", "0/1")]}
    world.cluster.put(PODS, pod)


def kept(**settings: Any) -> tuple[World, Controller, WaitKeeper]:
    world = World(now=NOW)
    controller = world.controller(**settings)
    return world, controller, WaitKeeper(controller._context)


def predicted(execution: Execution) -> dict[str, float | None]:
    return dict(WaitPrediction.objects.filter(execution=execution).values_list("stage", "expected"))


async def one_runs_and_one_waits(shop: Shop, world: World, controller: Controller) -> tuple[Execution, Execution]:
    world.cluster.put(NODES, node("node-1", cpu="1500m"))
    runs, waits = shop.launch(), shop.launch(after=1)
    await world.step(controller)
    world.start(world.pod_of(runs) | {"spec": {**world.pod_of(runs)["spec"], "nodeName": "node-1"}})
    refused(world, waits)
    await world.step(controller)
    return runs, waits


@in_world
async def test_wait_for_room_is_predicted_from_its_occupants(shop: Shop) -> None:
    ended_on_nodes(shop)
    world, controller, keeper = kept()
    runs, waits = await one_runs_and_one_waits(shop, world, controller)
    world.passes(12)
    world.refresh(controller)
    await keeper.run_once()
    reserved = Execution.objects.get(pk=runs.pk).slots_reserved_at
    assert reserved is not None
    left = 600 - (world.now - reserved).total_seconds()
    assert predicted(waits) == {"room": left + 30}


@in_world
async def test_nodes_are_listed_once_a_minute_at_most(shop: Shop) -> None:
    ended_on_nodes(shop)
    seconds = [0.0]
    world, controller, keeper = kept(monotonic=lambda: seconds[0])
    await one_runs_and_one_waits(shop, world, controller)

    async def sees_room() -> bool:
        world.passes(12)
        world.refresh(controller)
        return bool((await keeper.observed()).room.seekers)

    assert [await sees_room(), await sees_room()] == [True, False]
    another = shop.launch(after=2)
    await world.step(controller)
    refused(world, another)
    assert not await sees_room()
    seconds[0] = LIST_SECONDS + 1
    assert await sees_room()


@in_world
async def test_pull_under_way_is_predicted_by_earlier_pulls(shop: Shop) -> None:
    ended_on_nodes(shop)
    execution = shop.launch()
    world, controller, keeper = kept()
    await world.step(controller)
    pod = world.pod_of(execution)
    world.schedule(pod)
    pulling = event("pulling", about=pod, reason="Pulling", message="Pulling image", at=world.now)
    pulling["involvedObject"]["fieldPath"] = "spec.containers{run}"
    world.cluster.put(EVENTS, pulling)
    await world.step(controller)
    assert Execution.objects.get(pk=execution.pk).state == "preparing"
    world.passes(5)
    world.refresh(controller)
    await keeper.run_once()
    assert predicted(execution) == {"preparing": 15 + 10}
    Execution.objects.filter(pk=execution.pk).update(state="running", started_at=world.now + timedelta(seconds=24))
    await keeper.run_once()
    assert WaitPrediction.objects.get(execution=execution).actual == 24
