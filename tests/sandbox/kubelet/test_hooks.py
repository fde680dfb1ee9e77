"""preStop hooks drain a container before it ends: with what the container has, inside the grace period, and never longer than it lives."""

from tests.sandbox.kubelet.support import World, pod, running
from tests.support.waiting import eventually

_UNTIL_TERM = "trap 'exit 0' TERM; while :; do sleep 0.05; done"


async def test_hook_has_variables_volumes_directory_and_programs_of_container(world: World) -> None:
    out = world.directory / "out"
    out.mkdir()
    hook = "import os, sys; open('/out/said', 'w').write(' '.join([os.environ['TASK'], os.getcwd(), sys.prefix, sys.argv[1]]))"
    container = {
        "env": [
            {"name": "TASK", "value": "drain"},
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ],
        "workingDir": "/out",
        "volumeMounts": [{"name": "out", "mountPath": "/out"}],
        "lifecycle": {"preStop": {"exec": {"command": ["python", "-c", hook, "$(POD_IP)"]}}},
    }
    volumes = [{"name": "out", "hostPath": {"path": str(out)}}]
    await world.run(pod("worker", _UNTIL_TERM, container=container, volumes=volumes))
    await world.ready("worker")
    address = world.api.status("worker")["podIP"]
    await world.delete("worker")
    await world.gone("worker")
    task, directory, prefix, named = (out / "said").read_text().split()
    assert (task, directory, named) == ("drain", str(out), address)
    assert prefix.startswith(str(world.directory / "images"))
    assert not world.api.events("worker", "FailedPreStopHook")


async def test_grace_period_covers_hook_and_shutdown_together(world: World) -> None:
    out = world.directory / "out"
    out.mkdir()
    container = {
        "lifecycle": {"preStop": {"sleep": {"seconds": 200}}},
        "volumeMounts": [{"name": "out", "mountPath": "/out"}],
    }
    volumes = [{"name": "out", "hostPath": {"path": str(out)}}]
    script = "trap 'touch /out/asked' TERM; touch /out/up; while :; do sleep 0.05; done"
    await world.run(pod("stubborn", script, container=container, volumes=volumes))
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


async def test_a_hook_ends_with_the_container_that_it_drained(world: World) -> None:
    out = world.directory / "out"
    out.mkdir()
    container = {
        "lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", "touch /out/drained; sleep 871"]}}},
        "volumeMounts": [{"name": "out", "mountPath": "/out"}],
    }
    volumes = [{"name": "out", "hostPath": {"path": str(out)}}]
    script = "while [ ! -e /out/drained ]; do sleep 0.05; done"
    await world.run(pod("worker", script, container=container, volumes=volumes))
    await world.ready("worker")
    await world.delete("worker", grace=600)
    await world.gone("worker")
    await eventually(lambda: not running(world.directory, "sleep", "871"), "nothing of the hook is left")
    assert not world.api.events("worker", "FailedPreStopHook")
