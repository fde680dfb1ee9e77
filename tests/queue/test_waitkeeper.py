"""What the controller has stored of waits for room and of starts on nodes, and how often it lists the nodes for that."""

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from grid.configuration import MAXIMUM_EXECUTIONS_PER_USER
from grid.controller.controller import Controller
from grid.core.labels import KEYS
from grid.diagnosis.placement.outlook import Outlook, outlook_of
from grid.executions import cluster_snapshot as scheduling
from grid.kube.objects import Pod, RawObject
from grid.kube.resources import EVENTS, NODES, PODS
from grid.models import Execution, StartUp, WaitPrediction
from grid.queue import waitkeeper
from grid.queue.wait_estimate import observing
from grid.queue.waitkeeper import LIST_SECONDS, WaitKeeper
from tests.controller.test_controller import Configure
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


def with_a_rule_about_others(world: World, execution: Execution) -> RawObject:
    refused(world, execution)
    pod = world.pod_of(execution)
    term = {"topologyKey": "zone"}
    pod["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return pod


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
async def test_slow_list_is_used_when_it_arrives(shop: Shop) -> None:
    ended_on_nodes(shop)
    world, controller, keeper = kept(monotonic=lambda: asyncio.get_running_loop().time())
    await one_runs_and_one_waits(shop, world, controller)
    world.passes(12)
    world.refresh(controller)
    world.cluster.list_seconds = 2  # of each of the lists
    seen = []
    for _ in range(4):
        await asyncio.sleep(waitkeeper.KEEP_SECONDS)
        seen.append(len((await keeper.observed()).room.seekers))
    assert seen.count(1) == 1
    assert seen[0] == 0, "it is not waited for"
    assert world.cluster.count("list", NODES) == 1


@in_world
async def test_only_the_first_in_line_are_judged_in_portions(
    shop: Shop, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(MAXIMUM_EXECUTIONS_PER_USER, 99)
    monkeypatch.setattr(observing, "MOST_SEEKERS", 12)
    turns, judged = [0], list[int]()
    world, controller, keeper = kept()
    world.cluster.put(NODES, node("node-1", cpu="1500m"))
    waiting = [shop.launch(after=second) for second in range(14)]
    await world.step(controller)
    for execution in waiting:
        refused(world, execution)

    def judge(*args: Any, **options: Any) -> Outlook:
        judged.append(turns[0])
        return outlook_of(*args, **options)

    async def others_run() -> None:
        while True:
            turns[0] += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(waitkeeper, "outlook_of", judge)
    world.passes(12)
    world.refresh(controller)
    others = asyncio.create_task(others_run())
    await keeper.observed()
    others.cancel()
    assert len(judged) == 12
    assert max(Counter(judged).values()) == waitkeeper.JUDGED_AT_ONCE


@in_world
async def test_list_judges_only_older_pods_with_checkable_rules(
    shop: Shop, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(MAXIMUM_EXECUTIONS_PER_USER, 99)
    monkeypatch.setattr(scheduling, "MOST_PODS", -1)
    judged, seconds = list[str](), [0.0]
    world, controller, keeper = kept(monotonic=lambda: seconds[0])
    world.cluster.put(NODES, node("node-1", cpu="1500m"))
    early, apart, late = (shop.launch(after=second) for second in range(3))
    await world.step(controller)
    refused(world, early)
    world.cluster.put(PODS, with_a_rule_about_others(world, apart))

    def judge(asked: Pod, *args: Any, **options: Any) -> Outlook:
        assert asked.metadata.labels[KEYS.execution] != apart.pk, "only sums are kept, which do not tell who is where"
        judged.append(asked.metadata.labels[KEYS.execution])
        return outlook_of(asked, *args, **options)

    monkeypatch.setattr(waitkeeper, "outlook_of", judge)
    world.passes(12)
    world.refresh(controller)
    await keeper.observed()
    assert judged == [early.pk]
    world.passes(1)
    refused(world, late)
    world.passes(LIST_SECONDS)
    seconds[0] = LIST_SECONDS + 1
    world.refresh(controller)
    await keeper.observed()
    assert sorted(judged) == sorted([early.pk, early.pk, late.pk])


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
