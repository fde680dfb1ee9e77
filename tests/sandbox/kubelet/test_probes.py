"""Probes and hooks against real programs, and what ends before its start."""

from pathlib import Path

import psutil
import pytest
from hypothesis import given, strategies as st

from grid.sandbox.client import Object
from grid.sandbox.kubelet.probes import ProbeSchedule, Tally
from grid.sandbox.kubelet.process_runtime import ProcessRuntime
from grid.sandbox.kubelet.runtime import Attempt, ResolvedContainer
from tests.sandbox.kubelet.support import World, pod, running
from tests.support.waiting import eventually

_WEB = """
import http.server, os, pathlib
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        ok = pathlib.Path("ok").exists() and self.headers.get("X-Probe", "yes") == "yes"
        self.send_response(200 if ok else 503); self.end_headers()
    def log_message(self, *args): pass
pathlib.Path("ok").touch()
http.server.HTTPServer((os.environ["IP"], 8080), Handler).serve_forever()
"""


def web(name: str, **probes: Object) -> Object:
    container: Object = {
        "env": [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "ports": [{"name": "http", "containerPort": 8080}],
        **probes,
    }
    return pod(name, "python", "-c", _WEB, container=container, restartPolicy="Always")


async def test_readiness_follows_what_the_program_answers(world: World) -> None:
    await world.run(web("web", readinessProbe={"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 1}))
    await world.ready("web")
    (world.attempt("web").directory / "root" / "ok").unlink()
    await eventually(lambda: world.clock.jump(1) or not world.api.container("web")["ready"], "not ready any more")
    messages = world.api.messages("web", "Unhealthy")
    assert "Readiness probe failed: HTTP probe failed with statuscode: 503" in messages
    assert world.api.container("web")["restartCount"] == 0
    conditions = {item["type"]: item for item in world.api.status("web")["conditions"]}
    assert conditions["Ready"]["message"] == "containers with unready status: [run]"


async def test_a_failed_liveness_probe_restarts_the_container(world: World) -> None:
    probe = {"exec": {"command": ["test", "-e", "alive"]}, "periodSeconds": 1, "failureThreshold": 2}
    body = pod("web", "touch alive; sleep 878", container={"livenessProbe": probe}, restartPolicy="Always")
    await world.run(body)
    await world.ready("web")
    attempt = world.attempt("web")
    await eventually((attempt.directory / "root" / "alive").exists, "the program has begun")
    (attempt.directory / "root" / "alive").unlink()
    await eventually(lambda: world.api.container("web")["restartCount"] == 1)
    assert await world.event("web", "Killing") == "Container run failed liveness probe, will be restarted"
    assert (await world.event("web", "Unhealthy")).startswith("Liveness probe failed:")


async def test_a_startup_probe_holds_the_others_back(world: World) -> None:
    startup = {"tcpSocket": {"port": 8080}, "periodSeconds": 1, "failureThreshold": 1000}
    live = {"exec": {"command": ["false"]}, "periodSeconds": 3600, "failureThreshold": 1000}
    body = pod(
        "slow",
        "while ! test -e go; do sleep 0.05; done; exec python -m http.server --bind $IP 8080",
        container={
            "startupProbe": startup,
            "livenessProbe": live,
            "env": [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        },
    )
    await world.run(body)
    assert "Startup probe failed: dial tcp 127." in await world.event("slow", "Unhealthy")
    assert not world.api.container("slow")["started"]
    (world.attempt("slow").directory / "root" / "go").touch()
    await world.ready("slow")
    assert world.api.container("slow")["started"]
    await eventually(lambda: any("Liveness" in text for text in world.api.messages("slow", "Unhealthy")))


async def test_running_probe_ends_with_the_kubelet(world: World) -> None:
    probe = {"exec": {"command": ["sleep", "875"]}, "timeoutSeconds": 600}
    await world.run(pod("web", "sleep", "876", container={"readinessProbe": probe}))
    (asking,) = await eventually(lambda: running(world.directory, "sleep", "875"), "the probe runs")
    await world.kubelet.detach()
    assert not psutil.pid_exists(asking.pid), "it has ended and was waited for"


async def test_hooks_run_after_the_start_and_before_the_end(world: World) -> None:
    lifecycle = {
        "postStart": {"exec": {"command": ["sh", "-c", "echo post > /v/hooks"]}},
        "preStop": {"exec": {"command": ["sh", "-c", "echo pre >> /v/hooks; touch /v/stop"]}},
    }
    world.api.bind_claim("keep")
    mounts = {"/v": {"persistentVolumeClaim": {"claimName": "keep"}}}
    script = "trap 'echo term >> /v/hooks; exit' TERM; echo up; while :; do sleep 0.05; done"
    await world.run(pod("hooked", script, container={"lifecycle": lifecycle}, mounts=mounts))
    await world.ready("hooked")
    await eventually(lambda: world.log("hooked") == "up", "its trap is set")
    await world.delete("hooked")
    await world.gone("hooked")
    hooks = (world.directory / "volumes" / "default" / "keep" / "hooks").read_text()
    assert hooks.split() == ["post", "pre", "term"]


async def test_pre_stop_hook_cannot_exceed_the_grace_period(world: World) -> None:
    lifecycle = {"preStop": {"sleep": {"seconds": 3600}}}
    await world.run(pod("slow", "sleep", "875", container={"lifecycle": lifecycle}))
    await world.ready("slow")
    await world.delete("slow", grace=20)
    await world.event("slow", "Killing")
    world.clock.jump(21)
    await world.gone("slow")
    assert "longer than the grace period" in await world.event("slow", "FailedPreStopHook")


async def test_a_failed_post_start_hook_ends_the_container(world: World) -> None:
    lifecycle = {"postStart": {"exec": {"command": ["sh", "-c", "echo no such thing; exit 1"]}}}
    await world.run(pod("broken", "sleep", "876", container={"lifecycle": lifecycle}))
    await world.phase("broken", "Failed")
    assert await world.event("broken", "FailedPostStartHook") == "PostStartHook failed: no such thing"


@given(results=st.lists(st.booleans(), max_size=30), successes=st.integers(1, 4), failures=st.integers(1, 4))
def test_probe_result_counts_after_enough_equal_ones(results: list[bool], successes: int, failures: int) -> None:
    tally = Tally(ProbeSchedule(0, 1, 1, successes, failures))
    for position, result in enumerate(results):
        settled = tally.add(result)
        enough = successes if result else failures
        tail = results[max(0, position + 1 - enough) : position + 1]
        assert settled == (result if len(tail) == enough and set(tail) == {result} else None)


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


class LateRuntime(ProcessRuntime):
    """Tells of a start when everything is over."""

    async def start(self, spec: ResolvedContainer) -> Attempt:
        return await self.ended(await super().start(spec))


async def test_quickly_ended_program_was_started_with_termination_message(tmp_path: Path) -> None:
    world = World(tmp_path, runtime_class=LateRuntime)
    try:
        extra = {"terminationMessagePolicy": "FallbackToLogsOnError"}
        await world.run(pod("job", "echo why; exit 1", container=extra))
        status = await world.phase("job", "Failed")
        ended = status["containerStatuses"][0]["state"]["terminated"]
        assert (ended["exitCode"], ended["reason"], ended["message"].strip()) == (1, "Error", "why")
        await world.event("job", "Started")
        assert world.api.messages("job", "Failed") == []
    finally:
        await world.close()
