"""What a node cannot take: a pod that does not fit, a full disk, and files beyond what a pod may write."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from grid.sandbox.kubelet.admittance import refusal
from grid.sandbox.kubelet.localstorage import excess
from tests.sandbox.kubelet.support import World, pod
from tests.support.smalldisk import fill, small_disk
from tests.support.waiting import eventually

NODE = {"cpu": "7920m", "memory": "32Gi", "pods": "3", "ephemeral-storage": "10Gi", "example.com/gpu": "1"}
NO_DEVICES = "Allocate failed due to requested number of devices unavailable for example.com/gpu."


@pytest.mark.parametrize(
    ("wanted", "reason", "message"),
    [
        (
            {"memory": 32 * 2**30},
            "OutOfmemory",
            f"Node didn't have enough resource: memory, requested: {2**35}, used: {2**30}, capacity: {2**35}",
        ),
        (
            {"example.com/gpu": 2},
            "UnexpectedAdmissionError",
            f"{NO_DEVICES} Requested: 2, Available: 1, which is unexpected",
        ),
    ],
)
def test_missing_resource_is_named(wanted: dict[str, int], reason: str, message: str) -> None:
    verdict = refusal(wanted, NODE, [{"cpu": 1000, "memory": 2**30}])
    assert verdict is not None
    assert (verdict.phase, verdict.reason, verdict.message) == ("Failed", reason, message)


def test_exactly_fitting_pod_is_admitted_and_another_is_not() -> None:
    assert refusal({"cpu": 6920, "other.example/gpu": 4}, NODE, [{"cpu": 1000}, {}]) is None
    verdict = refusal({}, NODE, [{}, {}, {}])
    assert verdict is not None
    assert verdict.message == "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3"


async def test_pod_bound_to_full_node_fails_without_running(world: World) -> None:
    resources = {"resources": {"requests": {"cpu": "6"}}}
    await world.run(pod("first", "sleep 60", container=resources))
    await world.phase("first", "Running")
    await world.run(pod("second", "sleep 60", container=resources))
    status = await world.phase("second", "Failed")
    message = "Node didn't have enough resource: cpu, requested: 6000, used: 6000, capacity: 8000"
    assert (status["reason"], status["message"]) == ("OutOfcpu", f"Pod was rejected: {message}")
    assert "containerStatuses" not in status
    await world.event("second", "OutOfcpu")
    assert world.api.messages("second", "OutOfcpu") == [message]
    assert world.api.events("second", "Pulling") == []


MIB = 2**20
WRITES_TOO_MUCH = "dd if=/dev/zero of=$HOME/big bs=1M count=3 2>/dev/null; echo written; sleep 600"


def limited(limit: str) -> dict[str, Any]:
    return {"resources": {"limits": {"ephemeral-storage": limit}}}


async def test_pod_writing_beyond_its_limit_is_evicted(world: World) -> None:
    await world.run(pod("writer", WRITES_TOO_MUCH, container=limited("2Mi"), restartPolicy="Always"))
    await world.ready("writer")
    await eventually(lambda: "written" in world.log("writer"))
    world.clock.jump(11)
    status = await world.phase("writer", "Failed")
    assert status["reason"] == "Evicted"
    assert status["message"] == "Pod ephemeral local storage usage exceeds the total limit of containers 2Mi. "
    assert await world.event("writer", "Evicted") == status["message"]


async def test_claim_data_does_not_count_toward_pod_limit(world: World) -> None:
    world.api.bind_claim("kept")
    mounts: dict[str, Any] = {
        "/kept": {"persistentVolumeClaim": {"claimName": "kept"}},
        "/scratch": {"emptyDir": {"sizeLimit": "2Mi"}},
    }
    script = (
        "dd if=/dev/zero of=/kept/big bs=1M count=5 2>/dev/null; echo small > /scratch/small; echo written; sleep 600"
    )
    body = pod("keeper", script, container=limited("2Mi"), mounts=mounts)
    await world.run(body)
    await world.ready("keeper")
    await eventually(lambda: "written" in world.log("keeper"))
    assert excess(body, world.runtime.pod_directory(world.api.pod("keeper")["metadata"]["uid"])) == ""


def written(directory: Path, place: str, mebibytes: int) -> None:
    path = directory / place / "file"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x" * mebibytes * MIB)


def two_containers(first: str, second: str, **volume: Any) -> dict[str, Any]:
    body = pod("p", "true", container=limited(first), volumes=[{"name": "v", "emptyDir": volume or None}])
    body["spec"]["containers"].append({"name": "other", "image": "x", **(limited(second) if second else {})})
    return body


def test_local_storage_is_limited_per_volume_container_and_pod(tmp_path: Path) -> None:
    for place, mebibytes in (("volumes/v", 3), ("containers/run/0/root", 2), ("containers/other/0/log", 1)):
        written(tmp_path, place, mebibytes)
    assert excess(two_containers("20Mi", "20Mi"), tmp_path) == ""
    problem = excess(two_containers("20Mi", "20Mi", sizeLimit="2Mi"), tmp_path)
    assert problem == 'Usage of EmptyDir volume "v" exceeds the limit "2Mi". '
    assert excess(two_containers("20Mi", "20Mi", sizeLimit="2Mi", medium="Memory"), tmp_path) == "", "that is memory"
    problem = excess(two_containers("3Mi", "2Mi"), tmp_path)
    assert problem == f"Pod ephemeral local storage usage exceeds the total limit of containers {5 * MIB}. "
    assert excess(two_containers("3Mi", ""), tmp_path) == "", "a container without a limit lifts that of the pod"
    problem = excess(two_containers("1Mi", "20Mi"), tmp_path)
    assert problem == 'Container run exceeded its local ephemeral storage limit "1Mi". '


@dataclass
class SmallWorld:
    world: World
    disk: Path


@pytest.fixture
async def small(tmp_path: Path) -> AsyncIterator[SmallWorld]:
    with small_disk(tmp_path / "disk", "8m") as disk:
        if disk is None:
            pytest.skip("only root may mount a disk of a certain size")
        world = World(disk, images_directory=tmp_path / "images")
        try:
            yield SmallWorld(world, disk)
        finally:
            await world.close()


async def test_running_pods_survive_full_disk_and_new_ones_wait(small: SmallWorld) -> None:
    world = small.world
    await world.run(pod("before", "while true; do echo tick; sleep 0.05; done"))
    await world.phase("before", "Running")
    ballast = fill(small.disk)
    await world.run(pod("after", "echo hello; sleep 600", mounts={"/data": {"emptyDir": {}}}))
    messages = await eventually(lambda: world.api.messages("after", "FailedCreatePodSandBox"), "a reason")
    assert "No space left on device" in messages[0]
    silent = len(world.log("before"))
    assert world.api.status("before")["phase"] == "Running"
    ballast.unlink()
    await eventually(lambda: world.api.status("after").get("phase") == "Running" or world.clock.jump(5))
    await eventually(lambda: len(world.log("before")) > silent, "what is printed is kept again")
    assert world.api.container("before")["restartCount"] == 0


async def test_container_end_on_full_disk_is_reported_later(small: SmallWorld, tmp_path: Path) -> None:
    world, go_on = small.world, tmp_path / "go on"
    await world.run(pod("job", f"while [ ! -e '{go_on}' ]; do sleep 0.05; done; exit 7"))
    await world.phase("job", "Running")
    ballast = fill(small.disk)
    go_on.touch()
    waiting = world.attempt("job").directory / "exit.json.unfinished"
    await eventually(waiting.exists, "an end that finds no room")
    assert world.api.status("job")["phase"] == "Running"
    ballast.unlink()
    status = await world.phase("job", "Failed")
    ended = status["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (7, "Error")
