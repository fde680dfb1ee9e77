"""What the kubelet tells of a program and its image is kept with the execution when its pod goes."""

import pytest

from grid.diagnosis.exits import code_words
from grid.executions.progress import columns_from_status
from grid.executions.stopping import request_stop
from grid.kube.objects import Pod
from grid.kube.resources import PODS
from grid.models import Execution
from tests.controller.world import World, fresh, in_world, to_running
from tests.support.builders import container_status, decode, pod
from tests.support.shop import Shop

DIGEST = "docker.io/library/python@sha256:" + "a" * 64
KILLED = {"terminated": {"exitCode": 143, "reason": "Error"}}


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
    [(1, "1"), (137, "137, it was killed (SIGKILL)"), (136, "136, a signal ended it (SIGFPE)"), (-1, "-1")],
)
def test_exit_code_of_a_signal_is_put_into_words(code: int, words: str) -> None:
    assert code_words(code) == words
