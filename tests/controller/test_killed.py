"""A controller that is killed at any moment, and two at once: nothing is lost, nothing is done twice, slots stay right.

Each run is killed at one call to the database or the cluster, before it has its effect or after; a new controller then goes on.
"""

from typing import Any, cast

import pytest

from grid.executions.runs import Runs
from grid.executions.stopping import request_stop
from grid.kube.resources import CONFIG_MAPS, PODS, SECRETS, VOLUME_CLAIMS
from grid.models import Execution, UsageInterval
from tests.controller.world import Fault, Killed, World, fresh, in_world, states_of
from tests.support.shop import Shop

pytestmark = pytest.mark.slow

STOPPED = ["queued", "deploying", "preparing", "running", "stopping", "stopped"]
DONE = ["queued", "deploying", "preparing", "running", "finishing", "succeeded"]


async def live(world: World, execution: Execution, fault: Fault, *, stop: bool) -> int:
    """A whole life, with a new controller whenever one was killed; how many calls the first one made."""
    controller = world.controller(fault)
    for _ in range(12):
        try:
            await world.step(controller)
        except Killed:
            controller = world.controller()
            continue
        if fresh(execution).state in ("stopped", "succeeded") and execution.slots_freed_at:
            return fault.calls
        if stop and execution.state == "running":
            request_stop(execution, by="alice", now=world.now)
        world.behave()
        world.passes(1)
    raise AssertionError(f"not ended: {states_of(execution)}")


def check(world: World, execution: Execution, expected: list[str]) -> None:
    assert states_of(execution) == expected, "each state once, in order"
    assert world.most_pods == 1
    assert world.cluster.count("create", PODS) <= 2, (
        "only a lost answer makes it ask twice, and then it finds what exists"
    )
    assert [len(world.cluster.objects(kind)) for kind in (PODS, CONFIG_MAPS, SECRETS)] == [0, 0, 0]
    assert len(world.cluster.objects(VOLUME_CLAIMS)) == 2, "the project's and its owner's own"
    assert execution.slots_reserved_at is not None
    assert execution.slots_freed_at is not None
    held = UsageInterval.objects.get(execution=execution)
    assert held.ended_at is not None
    assert execution.slots_reserved_at <= held.began_at <= held.ended_at <= execution.slots_freed_at
    assert held.seconds == (held.ended_at - held.began_at).total_seconds()


@pytest.mark.parametrize("kind", ["workspace", "job"])
@pytest.mark.parametrize("after", [False, True], ids=["before its effect", "after its effect"])
def test_next_controller_completes_after_a_kill_at_any_call(shop: Shop, kind: str, after: bool) -> None:
    chosen: dict[str, Any] = {"kind": kind, "environment": shop.job if kind == "job" else shop.workspace}
    expected = DONE if kind == "job" else STOPPED

    @in_world
    async def killed_at_each() -> None:
        world, execution = World(), shop.launch(**chosen)
        calls = await live(world, execution, Fault(), stop=kind == "workspace")
        check(world, execution, expected)
        assert calls > 25
        for at in range(1, calls + 1):
            world, execution = World(), shop.launch(**chosen)
            await live(world, execution, Fault(at=at, after=after), stop=kind == "workspace")
            check(world, execution, expected)

    killed_at_each()


@in_world
async def test_a_write_on_an_old_revision_is_not_made(shop: Shop) -> None:
    """The stop arrives between the controller's reading and its writing."""
    world, execution = World(), shop.launch()
    controller = world.controller()
    await world.step(controller)
    world.behave()
    world.refresh(controller)
    reconciler = controller._reconciler
    runs = cast(Runs, reconciler._strategies[execution.kind])
    main_pod = runs.main_pod

    async def stopped_meanwhile(row: Any) -> Any:
        pod = await main_pod(row)
        request_stop(execution, by="alice", now=world.now)
        return pod

    runs.main_pod = stopped_meanwhile  # type: ignore[method-assign]
    await reconciler.reconcile(execution.pk)
    assert fresh(execution).state == "deploying"
    assert states_of(execution) == ["queued", "deploying"]
