"""A program that ends with an error or is killed for memory: its exit code and image are kept when its pod goes, and restarts are told."""

from typing import Any

import pytest

from grid.diagnosis.exits import code_words
from grid.executions.progress import columns_from_status
from grid.executions.stopping import request_stop
from grid.kube.objects import Pod
from grid.kube.resources import PODS
from grid.models import Execution
from tests.clusters.test_cluster_life import notes
from tests.controller.world import World, fresh, in_world, running, to_running
from tests.support.builders import condition, container_status, decode, pod, stamp
from tests.support.shop import OWNER, Shop

DIGEST = "docker.io/library/python@sha256:" + "a" * 64
KILLED = {"terminated": {"exitCode": 143, "reason": "Error"}}


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


def job(shop: Shop) -> Execution:
    return shop.launch(kind="job", environment=shop.job)


@in_world
async def test_running_image_is_kept_as_the_kubelet_names_it(shop: Shop) -> None:
    world, execution = World(), job(shop)
    controller = world.controller()
    await world.step(controller)
    world.behave()
    await world.step(controller)
    world.start(world.pod_of(execution))
    started = world.pod_of(execution)
    started["status"]["containerStatuses"] = [container_status(ready=True, imageID=DIGEST)]
    world.cluster.put(PODS, started)
    await world.step(controller)
    assert (fresh(execution).state, execution.image_id, execution.exit_code) == ("running", DIGEST, None)


@in_world
async def test_stopped_job_has_the_exit_code_of_its_program(shop: Shop) -> None:
    """The pod is gone when the end is written; its last state is what counts."""
    world, execution = World(), job(shop)
    controller = world.controller()
    await to_running(world, controller)
    request_stop(fresh(execution), by="alice", now=world.now)
    world.refresh(controller)
    await controller.poll()
    while fresh(execution).state != "stopping":
        await controller.work()
    ending = world.pod_of(execution)
    ending["status"]["containerStatuses"] = [container_status(state=KILLED)]
    world.cluster.put(PODS, ending)
    world.refresh(controller)  # the watch tells of the end, and before anybody looks, that the pod is gone
    world.cluster.remove(PODS, execution.object_name, namespace=ending["metadata"]["namespace"])
    await world.step(controller)
    await world.step(controller)
    assert (fresh(execution).state, execution.exit_code) == ("stopped", 143)


def test_sidecar_says_nothing_about_the_end_of_program() -> None:
    sidecar = pod("job-a", statuses=[container_status("nginx", state=KILLED, imageID=DIGEST)])
    assert columns_from_status(decode(sidecar, Pod)) == {}


@pytest.mark.parametrize(
    ("code", "words"),
    [(1, "1"), (137, "137, it was killed (SIGKILL)"), (141, "141, a signal ended it (SIGPIPE)"), (-1, "-1")],
)
def test_exit_code_of_a_signal_is_put_into_words(code: int, words: str) -> None:
    assert code_words(code) == words
