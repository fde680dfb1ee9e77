"""The controller as the command runs it: elected, never two at once, with the database in its own thread and connection, in real time."""

import asyncio

import pytest
from asgiref.sync import sync_to_async
from hypothesis import given, strategies as st

from grid.controller.controller import Controller
from grid.controller.leader import Election, Terms
from grid.core.errors import ClusterUnavailable
from grid.executions.context import LaunchTarget
from grid.kube.resources import LEASES
from grid.models import Execution, State
from grid.models.dataplane import LOCAL
from tests.controller.world import World
from tests.support.builders import NAMESPACE
from tests.support.cluster import FakeCluster
from tests.support.shop import Shop
from tests.support.waiting import eventually


class Clock:
    """Virtual seconds."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def candidate(cluster: FakeCluster, clock: Clock, identity: str) -> Election:
    return Election(cluster, name="controller", namespace="compute-grid", identity=identity, monotonic=clock)


async def test_a_leader_renews_its_own_lease() -> None:
    cluster, clock = FakeCluster(), Clock()
    first = candidate(cluster, clock, "one")
    assert await first.attempt()
    clock.now += 5
    assert await first.attempt()
    lease = await cluster.get(LEASES, "controller", namespace="compute-grid")
    assert lease["spec"]["leaseTransitions"] == 0


async def test_next_leader_takes_over_only_after_an_unrenewed_lease() -> None:
    cluster, clock = FakeCluster(), Clock()
    second = candidate(cluster, clock, "two")
    assert await candidate(cluster, clock, "one").attempt()
    assert not await second.attempt()
    clock.now += 15
    assert not await second.attempt()
    clock.now += 0.1
    assert await second.attempt()
    lease = await cluster.get(LEASES, "controller", namespace="compute-grid")
    assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseTransitions"]) == ("two", 1)


async def test_work_has_ended_before_the_lease_runs_out() -> None:
    """The cluster goes away while one leads: within the renew deadline its work is cancelled and over."""
    cluster, clock = FakeCluster(), Clock()

    async def sleep(seconds: float) -> None:
        clock.now += seconds
        await asyncio.sleep(0)

    over = asyncio.Event()
    ended_at: list[float] = []
    renewed_at: list[float] = []

    async def work() -> None:
        renewed_at.append(clock.now)
        cluster.fail_next(ClusterUnavailable("down"), 50)
        try:
            await asyncio.Event().wait()
        finally:
            ended_at.append(clock.now)
            over.set()

    election = Election(
        cluster, name="controller", namespace="compute-grid", identity="one", monotonic=clock, sleep=sleep
    )
    task = asyncio.create_task(election.lead(work))
    await asyncio.wait_for(over.wait(), 10)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert ended_at[0] - renewed_at[0] < Terms().lease


async def test_leaving_leader_lets_the_next_begin_at_once() -> None:
    cluster, clock = FakeCluster(), Clock()
    leading = asyncio.Event()

    async def work() -> None:
        leading.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(candidate(cluster, clock, "one").lead(work))
    await asyncio.wait_for(leading.wait(), 10)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert await candidate(cluster, clock, "two").attempt()


@given(st.lists(st.tuples(st.integers(0, 2), st.floats(0, 20)), max_size=60))
def test_there_are_never_two_leaders(steps: list[tuple[int, float]]) -> None:
    """A candidate leads from a successful attempt for as long as its renew deadline lasts; nobody else may, meanwhile."""

    async def play() -> None:
        cluster, clock = FakeCluster(), Clock()
        candidates = [candidate(cluster, clock, name) for name in "abc"]
        leads_until = [0.0, 0.0, 0.0]
        for index, pause in steps:
            clock.now += pause
            if await candidates[index].attempt():
                others = [until for other, until in enumerate(leads_until) if other != index]
                assert max(others) <= clock.now
                leads_until[index] = clock.now + Terms().renew
            else:
                leads_until[index] = 0.0

    asyncio.run(play())


@pytest.mark.django_db(transaction=True)
def test_controller_admits_and_creates_with_database_in_another_thread(transactional_db: None, shop: Shop) -> None:
    execution = shop.launch()
    world = World()

    def state() -> str:
        return Execution.objects.values_list("state", "reason").get(pk=execution.pk)[1]

    async def until_created() -> None:
        controller = Controller(world.cluster, LaunchTarget(LOCAL, NAMESPACE, lambda id: "token", front_key=str))
        task = asyncio.create_task(controller.run())
        try:
            await eventually(sync_to_async(state), holds=lambda state: state == "created")
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(until_created())
    execution.refresh_from_db()
    assert execution.state == State.DEPLOYING
    assert len(world.pods()) == 1
