"""A controller that is killed at any call while clusters live, and two at once: the same end, nothing twice, nothing left."""

import pytest

from grid.clusters.changes import resize, restart_head
from grid.executions.stopping import request_stop
from grid.kube.resources import AUTOSCALERS, DEPLOYMENTS, PODS, SERVICES, VOLUME_CLAIMS
from grid.models import Execution, LifecycleEntry
from tests.clusters.test_cluster_life import UP, left
from tests.controller.world import Fault, Killed, World, fresh, in_world, states_of
from tests.support.shop import Shop
from tests.support.virtual import loop_time, passes

STOPPED = [*UP, "stopping", "stopped"]


async def live(world: World, pair: list[Execution], fault: Fault) -> int:
    """A whole life with a resize and a new head on the way, and a new controller whenever one was killed."""
    cluster, first = pair[-1], pair[0]
    controller = world.controller(fault, monotonic=loop_time)
    wishes = [
        lambda: resize(cluster, minimum=2, maximum=3, by="alice", now=world.now),
        lambda: restart_head(cluster, by="alice", now=world.now),
        lambda: request_stop(first, by="alice", now=world.now),
    ]
    is_granted = [lambda _: True, lambda execution: execution.slots == 4, has_new_head]
    for _ in range(40):
        try:
            await world.step(controller)
        except Killed:
            controller = world.controller(monotonic=loop_time)
            continue
        states = [fresh(execution).state for execution in pair]
        if all(execution.is_final and execution.slots_freed_at for execution in pair):
            return fault.calls
        if set(states) == {"running"} and is_granted[0](cluster):
            is_granted.pop(0)
            wishes.pop(0)()
        world.behave()
        world.passes(1)
        await passes(11)
    raise AssertionError(f"not ended: {[states_of(execution) for execution in pair]}")


def has_new_head(cluster: Execution) -> bool:
    return LifecycleEntry.objects.filter(execution=cluster, reason="head_replaced").exists()


def check(world: World, pair: list[Execution]) -> None:
    for execution in pair:
        assert states_of(execution) == STOPPED, "each state once, in order"
        assert execution.slots_reserved_at is not None
        assert execution.slots_freed_at is not None
    cluster = pair[-1]
    assert world.most_pods <= len(pair) + 3
    assert cluster.slots == 4, "given back after the resize"
    assert LifecycleEntry.objects.filter(execution=cluster, reason="head_replaced").count() == 1
    assert LifecycleEntry.objects.filter(execution=cluster, reason="made_again").count() == 0
    assert left(world) == []
    assert len(world.cluster.objects(VOLUME_CLAIMS)) == len(pair), "the project's, and that of the workspace's owner"
    for kind, most in ((DEPLOYMENTS, 2), (AUTOSCALERS, 1), (SERVICES, 1)):
        assert world.cluster.count("create", kind) <= 2 * most, "only a lost answer makes it ask twice"
    assert world.cluster.count("create", PODS) <= 2 * (len(pair) - 1)


def launched(shop: Shop, is_attached: bool) -> list[Execution]:
    if is_attached:
        return list(shop.launch_with_cluster())
    return [shop.launch_cluster()]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("is_attached", "after", "first", "every"),
    [
        (True, False, 1, 31),
        # Every third, at other places in each of the four, for each takes a whole life of a cluster.
        *(
            pytest.param(is_attached, after, 1 + is_attached + after, 3, marks=pytest.mark.slow)
            for is_attached in (False, True)
            for after in (False, True)
        ),
    ],
)
@in_world
async def test_next_controller_completes_after_kills_at_many_calls(
    shop: Shop, is_attached: bool, after: bool, first: int, every: int
) -> None:
    """Killed before a call's effect or after it."""
    world, pair = World(), launched(shop, is_attached)
    calls = await live(world, pair, Fault())
    check(world, pair)
    assert calls > 80
    for at in range(first, calls + 1, every):
        world, pair = World(), launched(shop, is_attached)
        await live(world, pair, Fault(at=at, after=after))
        check(world, pair)


@in_world
async def test_two_controllers_at_once_do_nothing_twice(shop: Shop) -> None:
    """Leadership should prevent it; if it ever fails to, conditional writes do."""
    world, pair = World(), launched(shop, True)
    both = [world.controller(monotonic=loop_time), world.controller(monotonic=loop_time)]
    for step in range(20):
        for controller in both:
            await world.step(controller)
        if step == 6:
            restart_head(pair[1], by="alice", now=world.now)
        if step == 10:
            request_stop(pair[0], by="alice", now=world.now)
        world.behave()
        await passes(6)
    assert [fresh(execution).state for execution in pair] == ["stopped", "stopped"]
    assert [states_of(execution) for execution in pair] == [STOPPED, STOPPED]
    assert LifecycleEntry.objects.filter(execution=pair[1], reason="head_replaced").count() == 1
    assert left(world) == []
