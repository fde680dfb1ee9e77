"""What a kubelet finds when it starts: running containers, ended ones, and those that nobody wants any more."""

import json
import os
import signal
import subprocess
import sys

from grid.sandbox.kubelet.processes import Process
from grid.sandbox.kubelet.shim import boot_id, read_stat
from tests.sandbox.kubelet.support import World, pod, running
from tests.support.waiting import eventually


async def test_running_container_is_adopted_and_not_restarted(world: World) -> None:
    await world.run(pod("web", "sleep", "881"))
    await world.ready("web")
    before = running(world.directory, "sleep", "881")
    await world.restart()
    await world.ready("web")
    await world.delete("web")
    await world.gone("web")
    assert len(before) == 1
    assert not running(world.directory, "sleep", "881")
    assert len(world.api.messages("web", "Started")) == 1
    assert world.api.events("web", "Started")[0]["count"] == 1


async def test_exit_without_kubelet_is_reported_later(world: World) -> None:
    await world.run(pod("job", "while ! test -e go; do sleep 0.05; done; echo over; exit 7"))
    await world.ready("job")
    attempt = world.attempt("job")
    await world.kubelet.detach()
    (attempt.directory / "root" / "go").touch()
    await world.runtime.ended(attempt)
    await world.restart()
    status = await world.phase("job", "Failed")
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 7


async def test_a_container_whose_pod_was_deleted_meanwhile_is_ended(world: World) -> None:
    await world.run(pod("web", "sleep", "882"))
    await world.ready("web")
    await world.kubelet.detach()
    await world.delete("web", grace=0)
    await world.restart()
    await eventually(lambda: not running(world.directory, "sleep", "882"), "the process has ended")
    await eventually(lambda: not world.runtime.pods(), "nothing is left on disk")


async def test_always_restarting_pod_restarts_after_clean_stop(world: World) -> None:
    await world.run(pod("web", "sleep", "883", restartPolicy="Always"))
    await world.ready("web")
    await world.kubelet.stop(grace=5)
    assert not running(world.directory, "sleep", "883")
    await world.restart()
    await eventually(lambda: world.api.container("web")["restartCount"] == 1)
    await world.ready("web")
    assert await world.event("web", "SandboxChanged") == "Pod sandbox changed, it will be killed and re-created."


async def test_never_restarting_pod_fails_with_reason_after_clean_stop(world: World) -> None:
    await world.run(pod("web", "sleep", "884"))
    await world.ready("web")
    await world.kubelet.stop(grace=5)
    await world.restart()
    status = await world.phase("web", "Failed")
    assert status["reason"] == "Terminated"
    assert status["message"] == "Pod was terminated in response to imminent node shutdown."


async def test_clean_stop_kills_containers_that_outlast_it(world: World) -> None:
    await world.run(pod("stubborn", "trap '' TERM; echo up; while :; do sleep 0.05; done", restartPolicy="Always"))
    await eventually(lambda: world.log("stubborn") == "up")
    attempt = world.attempt("stubborn")
    await world.kubelet.stop(grace=0.2)
    ended = world.runtime.attempts(attempt.spec.pod.uid, "run")[0].exit
    assert ended is not None
    assert (ended.code, ended.by_shutdown) == (137, True)


async def test_containers_before_machine_restart_count_as_interrupted(world: World) -> None:
    await world.run(pod("web", "sleep", "885", restartPolicy="Always"))
    await world.ready("web")
    uid = world.api.pod("web")["metadata"]["uid"]
    await world.kubelet.stop(grace=1)
    place = world.runtime.attempts(uid, "run")[0].directory
    (place / "exit.json").unlink()
    started = json.loads((place / "started.json").read_text())
    started["boot_id"] = "another boot"
    started["shim"] = [os.getpid(), 1]
    (place / "started.json").write_text(json.dumps(started))
    await world.restart()
    await eventually(lambda: world.api.container("web")["restartCount"] == 1)
    last = world.api.container("web")["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"], last["message"]) == (255, "Unknown", "the machine was restarted")


async def test_killed_watcher_takes_container_along_without_orphans(world: World) -> None:
    await world.run(pod("tree", "(setsid sleep 886 &); sleep 886"))
    await world.ready("tree")
    await eventually(lambda: len(running(world.directory, "sleep", "886")) == 2)
    place = world.attempt("tree").directory
    os.kill(json.loads((place / "started.json").read_text())["shim"][0], signal.SIGKILL)
    status = await world.phase("tree", "Failed")
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137
    await eventually(lambda: not running(world.directory, "sleep", "886"), "the orphans have ended")


def test_process_with_reused_id_is_never_signalled() -> None:
    bystander = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        stat = read_stat(bystander.pid)
        assert stat is not None
        reused = Process(boot_id(), bystander.pid, stat[1] - 1)
        before_boot = Process("another boot", bystander.pid, stat[1])
        assert not reused.signal(signal.SIGKILL)
        assert not before_boot.signal(signal.SIGKILL)
        assert bystander.poll() is None
        assert Process(boot_id(), bystander.pid, stat[1]).signal(signal.SIGKILL)
        assert bystander.wait() == -signal.SIGKILL
    finally:
        bystander.kill()
        bystander.communicate()


async def test_no_secret_on_disk_can_be_read_by_others(world: World) -> None:
    await world.run(pod("web", "sleep", "887"))
    await world.ready("web")
    assert (world.attempt("web").directory / "spec.json").stat().st_mode & 0o077 == 0


async def test_environment_of_cluster_does_not_reach_a_container(world: World) -> None:
    os.environ["GRID_SECRET_KEY_TEST"] = "hidden"
    try:
        await world.run(pod("env", "env"))
        await world.phase("env", "Succeeded")
    finally:
        del os.environ["GRID_SECRET_KEY_TEST"]
    names = {line.partition("=")[0] for line in world.log("env").splitlines()}
    shell = {"PWD", "SHLVL", "_", "OLDPWD"}
    image = {"PATH", "VIRTUAL_ENV", "HOME", "TMPDIR", "LANG", "HOSTNAME", "GRID_SANDBOX_CONTAINER"}
    assert names - shell == image
