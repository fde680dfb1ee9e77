"""The controller's own loops, with real reflectors on the fake cluster and virtual time."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from grid.controller.controller import ROUND_SECONDS, Controller
from grid.controller.downtime import Downtime
from grid.database.seam import Databases
from grid.executions import ledger
from grid.executions.context import LaunchTarget
from grid.executions.stopping import request_stop
from grid.kube.resources import AUTOSCALERS, EVENTS, PODS
from grid.models import Execution, State
from grid.models.dataplane import LOCAL
from tests.controller.world import World, fresh, in_world
from tests.support.builders import NAMESPACE
from tests.support.shop import NOW, Shop
from tests.support.virtual import cancelled, loop_time, passes, until


class Database:
    """Asked in the loop itself; `down` makes every query fail."""

    def __init__(self) -> None:
        self.down = False
        self.asked = 0

    async def __call__(self, work: Any, /, *args: Any, **kwargs: Any) -> Any:
        self.asked += 1
        if self.down:
            raise OSError("the database is gone")
        return work(*args, **kwargs)


@asynccontextmanager
async def running(
    world: World,
    database: Database | None = None,
    *,
    due_work: Callable[..., Awaitable[Any]] | None = None,
    away: Downtime | None = None,
) -> AsyncIterator[Controller]:
    target = LaunchTarget(LOCAL, NAMESPACE, lambda id: f"token-of-{id}", front_key=str)
    chosen: Any = database or Database()
    databases = Databases(chosen, chosen, due_work or chosen)
    controller = Controller(
        world.cluster, target, databases=databases, clock=lambda: world.now, monotonic=loop_time, away=away
    )
    task = asyncio.create_task(controller.run())
    try:
        yield controller
    finally:
        await cancelled(task)


def in_state(execution: Execution, state: str) -> bool:
    return bool(fresh(execution).state == state)


async def comes_up(world: World, execution: Execution) -> None:
    await until(lambda: len(world.pods()) == 1, within=10)
    world.schedule(world.pod_of(execution))
    await until(lambda: in_state(execution, "preparing"), within=2)
    world.start(world.pod_of(execution))
    await until(lambda: in_state(execution, "running"), within=2)


@in_world
async def test_rows_and_pods_are_followed_within_seconds(shop: Shop) -> None:
    world = World()
    async with running(world):
        execution = shop.launch()
        await comes_up(world, execution)
        request_stop(execution, by="alice", now=world.now)
        await until(lambda: in_state(execution, "stopping"), within=2)
        world.behave()
        await until(lambda: in_state(execution, "stopped"), within=2)


@in_world
async def test_launch_waits_for_no_schedule_run_message_or_build(shop: Shop) -> None:
    world = World()

    async def takes_for_ever(work: Any, /, *args: Any, **kwargs: Any) -> Any:
        await asyncio.Event().wait()

    launched = shop.launch()
    async with running(world, due_work=takes_for_ever):
        await comes_up(world, launched)
    launched.refresh_from_db()
    assert launched.state == "running"


@in_world
async def test_controller_opens_a_single_watch_per_kind(shop: Shop) -> None:
    world = World()
    for second in range(3):
        shop.launch(after=second)
    async with running(world):
        await until(lambda: len(world.pods()) == 3, within=10)
        kinds = {PODS, EVENTS, AUTOSCALERS}
        assert Counter(watch.resource for watch in world.cluster.watches) == dict.fromkeys(kinds, 1)
        asked = Counter(request.resource for request in world.cluster.requests if request.verb == "watch")
        assert asked == dict.fromkeys(kinds, 1)


@in_world
async def test_lost_events_cost_time_but_nothing_else(shop: Shop) -> None:
    world = World()
    async with running(world):
        execution = shop.launch()
        await comes_up(world, execution)
        world.cluster.lose_events(10)
        world.cluster.remove(PODS, execution.object_name, namespace=NAMESPACE)
        await until(lambda: in_state(execution, "error"), within=130)
        assert execution.slots_freed_at is not None


@in_world
async def test_cluster_outage_is_waited_out_without_hot_loop(shop: Shop) -> None:
    world = World()
    world.cluster.available = False
    async with running(world):
        execution = shop.launch()
        await passes(200)
        assert in_state(execution, "deploying")
        # Those objects of a launch that need not know each other are asked for at once.
        assert world.cluster.count() < 200
        world.cluster.available = True
        await until(lambda: len(world.pods()) == 1, within=60)


@in_world
async def test_database_outage_is_waited_out_without_hot_loop(shop: Shop) -> None:
    world, database = World(), Database()
    async with running(world, database):
        execution = shop.launch()
        await comes_up(world, execution)
        database.down, before = True, database.asked
        world.cluster.remove(PODS, execution.object_name, namespace=NAMESPACE)
        await passes(600)
        # Eleven loops of at most one question in 7.5 s, slower ones, and the chores of each hour, tried again each five minutes.
        assert database.asked - before < 1_200
        assert in_state(execution, "running")
        database.down = False
        await until(lambda: in_state(execution, "error"), within=60)


@pytest.mark.django_db
def test_execution_too_long_in_a_state_is_listed(shop: Shop) -> None:
    waits, runs = shop.launch(), shop.launch()
    Execution.objects.filter(pk=waits.pk).update(state=State.DEPLOYING, state_since=NOW)
    Execution.objects.filter(pk=runs.pk).update(state=State.RUNNING, state_since=NOW)

    def overdue(seconds: float) -> Sequence[str]:
        return ledger.overdue(LOCAL, now=NOW + timedelta(seconds=seconds))[1]

    limit = ledger.timeouts()[State.DEPLOYING]
    assert overdue(limit) == []
    assert overdue(limit + 1) == [waits.pk]


@in_world
async def test_idle_executions_are_reconciled_once_per_round(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    controller = World().controller()
    looks: list[str] = []
    controller._known = dict.fromkeys(map(str, range(4 * int(ROUND_SECONDS))), 1)
    monkeypatch.setattr(controller._queue, "add", looks.append)
    for _ in range(int(ROUND_SECONDS)):
        before = len(looks)
        controller.go_round(1.0)
        assert len(looks) - before == 4
    assert sorted(looks) == sorted(controller._known)


@in_world
async def test_audit_reconciles_execution_whose_pod_vanished(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pod was found by asking the cluster, and had gone before a watch told of it."""
    world = World()
    controller = world.controller()
    execution = shop.launch()
    for _ in range(3):
        await world.step(controller)
        world.behave()
    await world.step(controller)
    assert in_state(execution, "running")
    world.cluster.remove(PODS, execution.object_name, namespace=NAMESPACE)
    for pod in list(controller.pods.values()):
        controller.pods.discard(pod.metadata.key)
    looks: list[str] = []
    monkeypatch.setattr(controller._queue, "add", looks.append)
    await controller.audit()
    assert looks == [execution.pk]


@in_world
async def test_audit_reconciles_only_wrongly_cached_pods(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    controller = world.controller()
    kept, changed, missed = (shop.launch(after=second) for second in range(3))
    for _ in range(3):
        await world.step(controller)
        world.behave()
    await world.step(controller)
    for execution in (kept, changed, missed):
        assert in_state(execution, "running")
    looks: list[str] = []
    monkeypatch.setattr(controller._queue, "add", looks.append)
    world.finish(world.pod_of(changed), 0)
    missing = next(pod.metadata.key for pod in controller.pods.by("execution", missed.pk))
    controller.pods.discard(missing)
    looks.clear()
    await controller.audit()
    assert sorted(looks) == sorted([changed.pk, missed.pk])
