"""A program that is killed for memory, or ends with an error, and is started again in its pod: its history and the download say so."""

from typing import Any

import pytest

from grid.kube.resources import PODS
from grid.models import Execution
from tests.clusters.test_cluster_life import notes
from tests.controller.world import World, fresh, in_world, running
from tests.support.builders import condition, container_status, stamp
from tests.support.reading import OWNER
from tests.support.shop import Shop


def ended(world: World, execution: Execution, *, restarts: int, **end: Any) -> None:
    """Its program has ended and runs again."""
    pod = world.pod_of(execution)
    last = {"terminated": {"finishedAt": stamp(world.now), **end}}
    pod["status"]["containerStatuses"] = [container_status(ready=True, restarts=restarts, lastState=last)]
    pod["status"]["conditions"] = [condition("Ready", "True")]
    world.cluster.put(PODS, pod)


@in_world
async def test_memory_kill_is_in_history_once_with_its_count(shop: Shop) -> None:
    world, controller, execution = await running(shop)
    world.passes(60)
    ended(world, execution, restarts=1, exitCode=137, reason="OOMKilled")
    for _ in range(2):
        await world.step(controller)
    assert fresh(execution).state == "running"
    (line,) = notes(execution, "out_of_memory")
    assert line.words(OWNER).startswith(
        "The program used more memory than its limit of 4 GiB and was ended. It is started"
    )
    assert (line.level, line.at, line.count) == ("Warning", world.now, 1)

    ended(world, execution, restarts=3, exitCode=137, reason="OOMKilled")
    for each in (controller, world.controller()):
        await world.step(each)
    (line,) = notes(execution, "out_of_memory")
    assert line.count == 3
    assert "It was started again 3 times in all." in line.words(OWNER)


@pytest.mark.parametrize(("end", "entries"), [({"exitCode": 1, "reason": "Error"}, 1), ({"exitCode": 0}, 0)])
@in_world
async def test_other_bad_end_is_told_too_unlike_good_one(shop: Shop, end: dict[str, Any], entries: int) -> None:
    world, controller, execution = await running(shop)
    ended(world, execution, restarts=1, **end)
    await world.step(controller)
    lines = notes(execution, "restarted")
    assert len(lines) == entries
    assert all("exit code 1" in line.words(OWNER) for line in lines)
