"""A node whose disk is full: what runs goes on, what is new waits with a reason, and starts when there is room."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.sandbox.kubelet.support import World, pod
from tests.support.smalldisk import fill, small_disk
from tests.support.waiting import eventually


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
