"""preStop hooks drain a container before it ends: with what the container has, inside the grace period, and never longer than it lives."""

from pathlib import Path

import pytest

from grid.sandbox.client import Object
from tests.sandbox.kubelet.support import World, pod, running
from tests.support.waiting import eventually

_UNTIL_TERM = "trap 'exit 0' TERM; while :; do sleep 0.05; done"


@pytest.fixture
def out(world: World) -> Path:
    folder = world.directory / "out"
    folder.mkdir()
    return folder


def mounted(out: Path) -> dict[str, Object]:
    return {"/out": {"hostPath": {"path": str(out)}}}


async def test_hook_has_variables_volumes_directory_and_programs_of_container(world: World, out: Path) -> None:
    hook = "import os, sys; open('/out/said', 'w').write(' '.join([os.environ['TASK'], os.getcwd(), sys.prefix, *sys.argv[1:]]))"
    world.services.places = {"10.96.3.7": "127.48.3.8"}
    container = {
        "env": [
            {"name": "TASK", "value": "tcp://10.96.3.7:8786"},
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ],
        "workingDir": "/out",
        "lifecycle": {"preStop": {"exec": {"command": ["python", "-c", hook, "$(POD_IP)", "10.96.3.7"]}}},
    }
    await world.run(pod("worker", _UNTIL_TERM, container=container, mounts=mounted(out)))
    await world.ready("worker")
    address = world.api.status("worker")["podIP"]
    await world.delete("worker")
    await world.gone("worker")
    task, directory, prefix, *arguments = (out / "said").read_text().split()
    assert (task, directory, arguments) == ("tcp://127.48.3.8:8786", str(out), [address, "127.48.3.8"])
    assert prefix.startswith(str(world.directory / "images"))
    assert not world.api.events("worker", "FailedPreStopHook")


async def test_grace_period_covers_hook_and_shutdown_together(world: World, out: Path) -> None:
    container = {"lifecycle": {"preStop": {"sleep": {"seconds": 200}}}}
    script = "trap 'touch /out/asked' TERM; touch /out/up; while :; do sleep 0.05; done"
    await world.run(pod("stubborn", script, container=container, mounts=mounted(out)))
    await world.ready("stubborn")
    await eventually((out / "up").exists, "its trap is set")
    await world.delete("stubborn", grace=300)
    await world.event("stubborn", "Killing")
    assert not (out / "asked").exists()
    world.clock.jump(200)
    await eventually((out / "asked").exists, "the program is asked to end, after the hook")
    assert world.api.container("stubborn")["state"].get("running")
    world.clock.jump(100.5)  # 300 in all: were the hook's 200 not part of the grace, it would go on now
    await world.gone("stubborn")


async def test_failing_hook_is_reported_and_container_ends_anyway(world: World) -> None:
    lifecycle = {"preStop": {"exec": {"command": ["sh", "-c", "echo the head is away; exit 1"]}}}
    await world.run(pod("worker", _UNTIL_TERM, container={"lifecycle": lifecycle}))
    await world.ready("worker")
    await world.delete("worker", grace=30)
    await world.gone("worker")
    assert await world.event("worker", "FailedPreStopHook") == "PreStopHook failed: the head is away"


async def test_a_hook_ends_with_the_container_that_it_drained(world: World, out: Path) -> None:
    container = {"lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", "touch /out/drained; sleep 871"]}}}}
    script = "while [ ! -e /out/drained ]; do sleep 0.05; done"
    await world.run(pod("worker", script, container=container, mounts=mounted(out)))
    await world.ready("worker")
    await world.delete("worker", grace=600)
    await world.gone("worker")
    await eventually(lambda: not running(world.directory, "sleep", "871"), "nothing of the hook is left")
    assert not world.api.events("worker", "FailedPreStopHook")
