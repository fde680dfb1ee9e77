"""Pods from start to end with real processes, as a client of the API sees them."""

import os

from tests.sandbox.kubelet.support import World, pod, running
from tests.support.waiting import eventually


async def test_a_program_that_ends_well_makes_its_pod_succeed(world: World) -> None:
    await world.run(pod("job", "echo done"))
    status = await world.phase("job", "Succeeded")
    ended = status["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (0, "Completed")
    conditions = {item["type"]: (item["status"], item.get("reason")) for item in status["conditions"]}
    assert conditions["Ready"] == ("False", "PodCompleted")
    assert conditions["Initialized"] == ("True", "PodCompleted")
    assert world.log("job") == "done"
    await world.event("job", "Started")
    assert list(world.api.messages("job")) == [
        'Pulling image "compute-grid/test:1"',
        world.api.messages("job", "Pulled")[0],
        "Container created",
        "Container started",
    ]
    assert world.api.events("job", "Started")[0]["involvedObject"]["fieldPath"] == "spec.containers{run}"
    pulled = world.api.messages("job", "Pulled")[0]
    assert pulled.startswith('Successfully pulled image "compute-grid/test:1" in ') and pulled.endswith(" bytes.")
    await world.run(pod("again", "true"))
    assert await world.event("again", "Pulled") == 'Container image "compute-grid/test:1" already present on machine'


async def test_failed_program_reports_exit_code_and_termination_message(world: World) -> None:
    await world.run(pod("job", "echo why > /dev/termination-log; exit 3"))
    status = await world.phase("job", "Failed")
    ended = status["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"], ended["message"]) == (3, "Error", "why\n")


async def test_program_yields_to_cluster_despite_autogrouping(world: World) -> None:
    await world.run(pod("job", "nice; cat /proc/self/autogroup 2>/dev/null | cut -d' ' -f3"))
    await world.phase("job", "Succeeded")
    of_process, *of_session = world.log("job").split()
    assert int(of_process) == min(19, os.nice(0) + 15)
    assert of_session in ([], ["15"])


async def test_missing_program_is_named_like_a_container_runtime_does(world: World) -> None:
    await world.run(pod("job", "no-such-program", "--help"))
    status = await world.phase("job", "Failed")
    ended = status["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (128, "StartError")
    assert ended["message"] == 'exec: "no-such-program": executable file not found in $PATH'
    assert await world.event("job", "Failed") == f"Error: {ended['message']}"


async def test_pod_is_ready_while_running_and_gone_after_end(world: World) -> None:
    await world.run(pod("web", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done"))
    await world.ready("web")
    status = world.api.status("web")
    assert status["phase"] == "Running"
    assert status["podIP"].startswith("127.")
    await eventually(lambda: world.log("web") == "up")
    kept = os.open(world.attempt("web").directory / "log" / "0.log", os.O_RDONLY)
    await world.delete("web")
    await world.gone("web")
    assert os.read(kept, 4096).endswith(b"bye\n")
    os.close(kept)
    assert await world.event("web", "Killing") == "Stopping container run"
    assert ("delete", "/api/v1/namespaces/default/pods/web") in world.api.writes
    await eventually(lambda: not world.runtime.pods(), "nothing is left on disk")


async def test_program_ignoring_termination_is_killed_after_grace(world: World) -> None:
    await world.run(pod("stubborn", "trap 'echo asked' TERM; echo up; while :; do sleep 0.05; done"))
    await eventually(lambda: world.log("stubborn") == "up")
    await world.delete("stubborn", grace=30)
    await eventually(lambda: world.log("stubborn").endswith("asked"), "it was asked to end")
    assert world.api.container("stubborn")["state"].get("running")
    world.clock.jump(30)
    await world.gone("stubborn")


async def test_a_second_shorter_grace_period_shortens_the_first(world: World) -> None:
    await world.run(pod("stubborn", "trap '' TERM; echo up; while :; do sleep 0.05; done"))
    await eventually(lambda: world.log("stubborn") == "up")
    await world.delete("stubborn", grace=3600)
    await world.event("stubborn", "Killing")
    await world.delete("stubborn", grace=1)
    await world.gone("stubborn")


async def test_everything_that_a_container_started_ends_with_it(world: World) -> None:
    await world.run(pod("tree", "setsid sleep 987 & (setsid sh -c 'sleep 987 & sleep 987' &); sleep 0.3; exit 0"))
    await world.phase("tree", "Succeeded")
    assert not running(world.directory, "sleep", "987")


async def restarted(world: World, name: str, times: int) -> None:
    await eventually(lambda: world.api.container(name)["restartCount"] == times, f"{name} restarted {times} times")


async def test_a_failing_program_is_started_again_after_growing_pauses(world: World) -> None:
    await world.run(pod("crashy", "exit 1", restartPolicy="Always"))
    pauses = []
    for pause in (10, 20):
        waiting = (await world.reason("crashy", "CrashLoopBackOff"))["state"]["waiting"]
        pauses.append(waiting["message"].split()[1])
        assert world.api.status("crashy")["phase"] == "Running"
        restarts = world.api.container("crashy")["restartCount"]
        world.clock.jump(pause)
        await restarted(world, "crashy", restarts + 1)
    assert pauses == ["10s", "20s"]
    assert world.api.container("crashy")["lastState"]["terminated"]["exitCode"] == 1
    uid = world.api.pod("crashy")["metadata"]["uid"]
    wanted = f"Back-off restarting failed container run in pod crashy_default({uid})"
    assert await world.event("crashy", "BackOff") == wanted


async def test_init_containers_run_in_order_before_others(world: World) -> None:
    mount = {"volumeMounts": [{"name": "v", "mountPath": "/v"}], "image": "compute-grid/test:1"}
    inits = [
        {"name": "first", "command": ["sh", "-c", "sleep 0.2; echo first >> /v/order"], **mount},
        {"name": "second", "command": ["sh", "-c", "echo second >> /v/order"], **mount},
    ]
    main = "echo main >> /v/order; cat /v/order"
    await world.run(
        pod("ordered", main, container=mount, initContainers=inits, volumes=[{"name": "v", "emptyDir": {}}])
    )
    await world.phase("ordered", "Succeeded")
    assert world.log("ordered").split() == ["first", "second", "main"]
    assert [item["name"] for item in world.api.status("ordered")["initContainerStatuses"]] == ["first", "second"]


async def test_a_pod_whose_sidecar_still_works_has_not_ended(world: World) -> None:
    saves = "while [ ! -e /v/go ]; do sleep 0.05; done; printf saved > /dev/termination-log; exit 0"
    script = f'trap "{saves}" TERM; while :; do sleep 0.05; done'
    mount = {"volumeMounts": [{"name": "v", "mountPath": "/v"}], "image": "compute-grid/test:1"}
    sidecar = {"name": "helper", "restartPolicy": "Always", "command": ["sh", "-c", script], **mount}
    await world.run(pod("job", "sleep 0.2", initContainers=[sidecar], volumes=[{"name": "v", "emptyDir": {}}]))
    await eventually(lambda: world.api.container("job").get("state", {}).get("terminated"))
    assert world.api.status("job")["phase"] == "Running"
    (world.runtime.pod_directory(world.api.pod("job")["metadata"]["uid"]) / "volumes" / "v" / "go").touch()
    status = await world.phase("job", "Succeeded")
    ended = status["initContainerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["message"]) == (0, "saved")


async def test_excess_memory_ends_the_container_as_oom_killed(world: World) -> None:
    greedy = "x = b'1' * (200 * 2**20); import time; time.sleep(60)"
    limit = {"resources": {"limits": {"memory": "64Mi"}}}
    await world.run(pod("greedy", "python", "-c", greedy, container=limit))
    status = await world.phase("greedy", "Failed")
    ended = status["containerStatuses"][0]["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)


async def test_memory_that_processes_share_counts_once(world: World) -> None:
    share = "import os, time; x = b'1' * (60 * 2**20); [os.fork() or time.sleep(30) for _ in range(3)]; time.sleep(30)"
    limit = {"resources": {"limits": {"memory": "150Mi"}}}
    await world.run(pod("sharing", "python", "-c", share, container=limit))
    await world.ready("sharing")
    attempt = world.attempt("sharing")
    await eventually(lambda: (used := world.runtime.usage(attempt)) and used.memory_bytes > 150 * 2**20)
    for _ in range(2):
        await world.sampler.sample()
    assert attempt.directory.joinpath("oom").exists() is False
    assert world.api.container("sharing")["state"].get("running")


async def test_pod_exceeding_its_deadline_fails(world: World) -> None:
    await world.run(pod("slow", "sleep", "984", activeDeadlineSeconds=60))
    await world.ready("slow")
    world.clock.jump(61)
    status = await world.phase("slow", "Failed")
    assert status["reason"] == "DeadlineExceeded"
    await eventually(lambda: world.api.container("slow")["state"].get("terminated"))


async def test_pod_deleted_during_pull_is_gone_at_once(world: World) -> None:
    async with world.images._one_at_a_time:
        await world.run(pod("early", "echo hi"))
        await world.event("early", "Pulling")
        await world.delete("early")
        await world.gone("early")


async def test_kubelet_waits_for_an_absent_api_server(world: World) -> None:
    await world.run(pod("job", "while ! test -e go; do sleep 0.05; done; exit 5"))
    await world.ready("job")
    world.api.down = True
    attempt = world.attempt("job")
    (attempt.directory / "root" / "go").touch()
    await world.runtime.ended(attempt)
    world.api.down = False
    world.clock.jump(10)
    status = await world.phase("job", "Failed")
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 5


async def test_status_never_concerns_a_later_pod_of_same_name(world: World) -> None:
    first = await world.run(pod("twice", "sleep", "983"))
    await world.ready("twice")
    await world.delete("twice", grace=0)
    second = await world.run(pod("twice", "sleep", "982"))
    assert first["metadata"]["uid"] != second["metadata"]["uid"]
    await world.ready("twice")
    await eventually(lambda: [item.uid for item in world.runtime.pods()] == [second["metadata"]["uid"]])
    assert world.api.container("twice")["containerID"].startswith(f"process://{second['metadata']['uid']}")
