"""What happens to a running cluster's pods becomes history, once, with what was lost; also when the database is full."""

import logging
import sqlite3
from datetime import timedelta

import pytest

from grid.database.trouble import TroubleLog
from grid.executions.caches import execution_of_event
from grid.executions.ledger import MOST_NOTED
from grid.kube.objects import Event, RawObject
from grid.kube.resources import PODS
from grid.models import Execution, LifecycleEntry, State
from tests.clusters.test_cluster_life import notes, running_cluster, to_running
from tests.controller.world import World, fresh, in_world
from tests.support.builders import NAMESPACE, condition, container_status, decode, event, stamp
from tests.support.database import full_database
from tests.support.shop import OWNER, Shop
from tests.support.virtual import passes


def killed_for_memory(world: World, pod: RawObject, *, restarts: int = 1, ready: bool = True) -> None:
    """Its program was killed and is started again in the same pod."""
    ended = {"exitCode": 137, "reason": "OOMKilled", "finishedAt": stamp(world.now)}
    status = container_status(ready=ready, restarts=restarts, lastState={"terminated": ended})
    pod["status"]["containerStatuses"] = [status]
    pod["status"]["conditions"] = [condition("Ready", "True" if ready else "False")]
    world.cluster.put(PODS, pod)


@in_world
async def test_head_killed_for_memory_is_told_with_its_loss(shop: Shop) -> None:
    world, controller, execution = await running_cluster(shop)
    world.passes(60)
    killed_for_memory(world, world.head_of(execution), ready=False)
    await world.step(controller)
    assert (fresh(execution).state, execution.reason) == ("running", "head_down")
    assert "What the old one held in memory is lost." in execution.words(OWNER)
    (line,) = notes(execution, "head_out_of_memory")
    assert line.words(OWNER).startswith("The head: The program used more memory than its limit of 4 GiB and was ended.")
    assert "Running tasks and results that were kept in memory are lost; reconnect" in line.words(OWNER)
    assert (line.level, line.at, line.count) == ("Warning", world.now, 1)

    for _ in range(2):
        killed_for_memory(world, world.head_of(execution), restarts=3)
        await world.step(controller)
        controller = world.controller()
    assert (fresh(execution).reason, execution.words(OWNER)) == ("ready", "")
    (line,) = notes(execution, "head_out_of_memory")
    assert line.count == 3
    assert "It was started again 3 times in all." in line.words(OWNER), "and not: out of memory three times"


@in_world
async def test_killed_or_nodeless_workers_are_told_once_each(shop: Shop) -> None:
    world, execution = World(), shop.launch_cluster(workers_minimum=3)
    controller = world.controller()
    await to_running(world, controller, execution)
    world.passes(60)
    first, second, third = world.workers_of(execution)
    killed_for_memory(world, first)
    second["status"]["conditions"].append(
        condition("DisruptionTarget", "True", "DeletionByTaintManager", "node is gone", at=world.now)
    )
    world.cluster.put(PODS, second)
    third["status"] = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory. "}
    world.cluster.put(PODS, third)
    for _ in range(2):
        for _ in range(2):
            await world.step(controller)
        controller = world.controller()
    (line,) = notes(execution, "worker_out_of_memory")
    assert line.object == f"Pod/{first['metadata']['name']}"
    assert "results that it held are computed again" in line.words(OWNER)
    lost = notes(execution, "worker_lost")
    assert len(lost) == 2
    assert any("was evicted from node node-1: node is gone." in line.words(OWNER) for line in lost)
    assert any("ran short of memory" in line.words(OWNER) for line in lost)
    assert fresh(execution).state == "running"


@in_world
async def test_pod_gone_before_anybody_looks_is_told_too(shop: Shop) -> None:
    world, controller, execution = await running_cluster(shop)
    world.passes(60)
    worker = world.workers_of(execution)[0]
    killed_for_memory(world, worker)
    world.refresh(controller)
    world.cluster.remove(PODS, worker["metadata"]["name"], namespace=NAMESPACE)
    await world.step(controller)
    assert len(notes(execution, "worker_out_of_memory")) == 1
    assert controller.pods.deleted_pods.get(execution.pk, {}) == {}


@in_world
async def test_head_that_vanishes_with_node_is_replaced_and_told(shop: Shop) -> None:
    world, controller, execution = await running_cluster(shop)
    await world.step(controller)
    world.cluster.remove(PODS, world.head_of(execution)["metadata"]["name"], namespace=NAMESPACE)
    await world.step(controller)
    assert (fresh(execution).state, execution.reason) == ("running", "head_down")
    world.behave()
    world.schedule(world.head_of(execution), "node-7")
    world.start(world.head_of(execution))
    for _ in range(2):
        await world.step(controller)
    assert (fresh(execution).reason, execution.node_name) == ("ready", "node-7")
    (line,) = notes(execution, "head_replaced")
    assert "A new head answers on node node-7." in line.words(OWNER)


@in_world
async def test_leaving_as_the_autoscaler_wishes_is_no_incident(shop: Shop) -> None:
    world, controller, execution = await running_cluster(shop)
    for wanted in (5, 2):
        world.wanted[f"cluster-{execution.pk}-worker"] = wanted
        for _ in range(4):
            world.behave()
            await world.step(controller)
            world.passes(1)
    assert len(world.workers_of(execution)) == 2
    warnings = LifecycleEntry.objects.filter(execution=execution, level="Warning")
    assert [warning.reason for warning in warnings] == []


@in_world
async def test_history_of_a_restless_cluster_stays_bounded(shop: Shop) -> None:
    world, controller, execution = await running_cluster(shop)
    name = f"cluster-{execution.pk}-worker"
    for number in range(MOST_NOTED + 50):
        about = {"kind": "Pod", "metadata": {"name": f"{name}-5d-{number}", "namespace": NAMESPACE}}
        moment = world.now + timedelta(seconds=number)
        controller.events.apply(decode(event(f"e{number}", about=about, reason="Pulled", at=moment), Event))
    rescale = {"kind": "HorizontalPodAutoscaler", "metadata": {"name": name, "namespace": NAMESPACE}}
    first = event("rescale", about=rescale, reason="SuccessfulRescale", at=world.now)
    controller.events.apply(decode(first, Event))
    await world.step(controller, fresh=False)

    def lines() -> list[str]:
        entries = LifecycleEntry.objects.filter(execution=execution, source="kubernetes").order_by("at", "id")
        return [entry.event_uid for entry in entries]

    before = lines()
    assert len(before) == MOST_NOTED
    assert "uid-of-rescale" in before
    assert "uid-of-e0" not in before
    assert f"uid-of-e{MOST_NOTED + 49}" in before
    controller = world.controller()
    world.refresh(controller)
    await world.step(controller, fresh=False)
    assert lines() == before, "what was dropped does not come back"


@pytest.mark.parametrize(
    ("name", "execution"),
    [
        ("workspace-abc23", "abc23"),
        ("cluster-abc23", "abc23"),
        ("cluster-abc23-worker", "abc23"),
        ("cluster-abc23-head-7d9f8b6c5-x2x9z", "abc23"),
        ("cluster-abc23-worker-7d9f8b6c5-x2x9z-local", "abc23"),
        ("cluster-abc23-other", ""),
        ("my-cluster-abc23-head", ""),
        ("cluster-autoscaler-status", ""),
    ],
)
def test_event_finds_its_execution_by_object_name(name: str, execution: str) -> None:
    about = {"kind": "Pod", "metadata": {"name": name, "namespace": NAMESPACE}}
    assert execution_of_event(decode(event("e", about=about), Event)) == execution


@pytest.mark.django_db(transaction=True)
@in_world
async def test_full_disk_is_logged_once_and_all_start_afterwards(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    for number in range(20):
        shop.launch(after=number)
    controller = world.controller()
    await controller.poll()  # admits them
    assert {execution.state for execution in Execution.objects.all()} == {State.DEPLOYING}
    with full_database():
        for _ in range(6):
            while not controller.idle:
                await controller.work()
            world.behave()
            world.refresh(controller)
            await passes(60)  # longer than any pause before another try
    lines = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(lines) == 1
    assert lines[0].getMessage().startswith("The disk of the database is full: nothing was saved. An operator has to")
    assert Execution.objects.exclude(state=State.RUNNING).exists()
    for _ in range(4):
        await passes(60)
        await world.step(controller)
        world.behave()
    assert {execution.state for execution in Execution.objects.all()} == {State.RUNNING}
    assert world.most_pods == 20


def test_trouble_is_logged_once_a_minute_and_when_over(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    troubles = TroubleLog(lambda: now)
    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorname = "SQLITE_FULL"
    caplog.set_level(logging.INFO)
    for now in range(0, 100, 10):  # noqa: B007  read by the clock
        assert troubles.handles(full)
        troubles.tell_if_over()
    assert len(caplog.records) == 2
    assert not troubles.handles(ValueError("ours"))
    now = 150.0
    troubles.tell_if_over()
    troubles.tell_if_over()
    assert [record.getMessage() for record in caplog.records[2:]] == ["the database has been well again for a minute"]
