"""What a person is told about a pod of several containers, and about a program that does not answer or was restarted for that."""

from datetime import timedelta
from typing import Any

import pytest

from tests.diagnosis.situations import Case, ago, assert_told_as_stored, ended, event_saying
from tests.support.builders import MOMENT, condition, container_status, pod

STEP = {"name": "fetch", "image": "fetch:1"}
SIDECAR = {"name": "proxy", "image": "proxy:2", "restartPolicy": "Always"}
WAITS = {"waiting": {"reason": "PodInitializing"}}
DONE = ended(0, "Completed")


def running(seconds: float = 400) -> dict[str, Any]:
    return {"running": {"startedAt": ago(seconds)}}


def status(name: str, state: dict[str, Any], **more: Any) -> dict[str, Any]:
    return container_status(name, state=state, **more)


def made_of(
    first: list[dict[str, Any]],
    programs: list[dict[str, Any]],
    *,
    steps: tuple[dict[str, Any], ...],
    phase: str = "Running",
) -> dict[str, Any]:
    """A pod whose init containers are `steps`; `first` and `programs` are the statuses."""
    return pod(
        "p", node="node-1", phase=phase, statuses=programs, conditions=[condition("Ready", "False", at=MOMENT - timedelta(days=1))],
        containers=[{"name": program["name"], "image": "lab:4"} for program in programs],
        spec={"initContainers": list(steps)}, status={"initContainerStatuses": first},
    )  # fmt: skip


def setup(
    state: dict[str, Any], program: dict[str, Any] = WAITS, *, phase: str = "Pending", **more: Any
) -> dict[str, Any]:
    ready = "running" in program
    return made_of([status("fetch", state, **more)], [status("run", program, ready=ready)], steps=(STEP,), phase=phase)


def with_sidecar(sidecar: dict[str, Any], *programs: dict[str, Any], phase: str = "Running") -> dict[str, Any]:
    return made_of([sidecar], list(programs), steps=(SIDECAR,), phase=phase)


CASES = [
    Case(
        "an injected ordinary container is not ready",
        made_of([], [status("run", running(), ready=True), status("istio-proxy", running(), ready=False)], steps=()),
    ),
    Case(
        "an injected ordinary container crashes",
        made_of(
            [],
            [
                status("run", running(), ready=True),
                status("istio-proxy", {"waiting": {"reason": "CrashLoopBackOff"}}, restarts=6, lastState=ended(1)),
            ],
            steps=(),
        ),
    ),
    Case("setup runs long", setup(running(900))),
    Case("setup runs again", setup(running(5), restarts=1, lastState=ended(7))),
    Case("setup keeps failing", setup({"waiting": {"reason": "CrashLoopBackOff"}}, restarts=4, lastState=ended(1))),
    Case("setup failed for good", setup(ended(2), phase="Failed")),
    Case("setup is out of memory", setup(ended(137, "OOMKilled"), phase="Failed")),
    Case("setup is done, the program runs", setup(DONE, running(), phase="Running")),
    Case("setup is done, the program waits", setup(DONE, WAITS)),
    Case("setup is done, the program has failed", setup(DONE, ended(3), phase="Failed")),
    Case(
        "second step is downloaded",
        made_of(
            [status("fetch", DONE), status("unpack", WAITS)],
            [status("run", WAITS)],
            steps=(STEP, {"name": "unpack", "image": "unpack:3"}),
            phase="Pending",
        ),
        [event_saying("Pulling", 'Pulling image "unpack:3"', seconds=3)],
    ),
    Case(
        "sidecar beside a program",
        with_sidecar(status("proxy", running(), ready=True), status("run", running(), ready=True)),
    ),
    Case(
        "sidecar beside a slow program", with_sidecar(status("proxy", running(), ready=True), status("run", running(9)))
    ),
    Case("sidecar outlives the program", with_sidecar(status("proxy", running()), status("run", ended(3)))),
    Case(
        "sidecar crashes, the program has ended",
        with_sidecar(status("proxy", {"waiting": {"reason": "CrashLoopBackOff"}}, restarts=1), status("run", DONE)),
    ),
    Case(
        "sidecar crashes beside a program",
        with_sidecar(
            status("proxy", {"waiting": {"reason": "CrashLoopBackOff"}}, restarts=1, lastState=ended(1)),
            status("run", running(), ready=True),
        ),
    ),
    Case(
        "sidecar ended after the failure",
        with_sidecar(status("proxy", ended(143, seconds=1)), status("run", ended(3)), phase="Failed"),
    ),
    Case(
        "sidecar restarted",
        with_sidecar(
            status("proxy", running(), ready=True, restarts=1, lastState=ended(1)), status("run", running(), ready=True)
        ),
    ),
    Case("sidecar does not answer", with_sidecar(status("proxy", running()), status("run", WAITS), phase="Pending")),
    Case(
        "sidecar and program are both in trouble",
        with_sidecar(
            status("proxy", {"waiting": {"reason": "CrashLoopBackOff"}}, restarts=1),
            status("run", {"waiting": {"reason": "CrashLoopBackOff"}}, restarts=2, lastState=ended(3)),
        ),
    ),
    Case(
        "second program out of memory, the first ended with it",
        made_of([], [status("a", ended(1)), status("b", ended(137, "OOMKilled"))], steps=(), phase="Failed"),
    ),
    Case(
        "second program out of memory, the first crashes",
        made_of(
            [],
            [
                status("a", {"waiting": {"reason": "CrashLoopBackOff"}}, restarts=1, lastState=ended(1)),
                status("b", {"waiting": {"reason": "CrashLoopBackOff"}}, restarts=1, lastState=ended(137, "OOMKilled")),
            ],
            steps=(),
        ),
    ),
    Case(
        "second program failed first",
        made_of([], [status("a", ended(143, seconds=1)), status("b", ended(3, seconds=9))], steps=(), phase="Failed"),
    ),
    Case(
        "step that the pod does not name",
        made_of([status("odd", ended(4))], [status("run", WAITS)], steps=(), phase="Failed"),
    ),
]


SILENT = event_saying("Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 500", seconds=12)
KILLED = event_saying("Killing", "Container run failed liveness probe, will be restarted", seconds=10)
LAST = ended(137, startedAt=ago(100))


def probed(seconds: float, probes: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A pod whose program has been running for that long."""
    status = container_status(**{"state": {"running": {"startedAt": ago(seconds)}}, **more})
    return pod("p", node="node-1", containers=[{"name": "run", "image": "lab:4", **probes}], statuses=[status])


def restarted(last: dict[str, Any], **more: Any) -> dict[str, Any]:
    return probed(4, {}, restarts=1, lastState=last, **more)


def of_another(event: dict[str, Any]) -> dict[str, Any]:
    """The event as if it were about another container of the pod."""
    return {**event, "involvedObject": {"fieldPath": "spec.containers{b}"}}


NOT_READY = "Readiness probe failed: HTTP probe failed with statuscode: 503"
TCP = {"readinessProbe": {"tcpSocket": {"port": 8888}}}
HTTP = {"readinessProbe": {"httpGet": {"path": "/", "port": "web"}}}
STARTUP = {"startupProbe": {"grpc": {"port": 9000}}}
FRONT = {"startupProbe": {"httpGet": {"path": "/", "port": 19080}}}
NOT_THERE = "Startup probe failed: HTTP probe failed with statuscode: 502"
PROBE_CASES = [
    Case("nginx in front says that it does not answer", probed(5, FRONT), [event_saying("Unhealthy", NOT_THERE)]),
    Case(
        "nginx in front says for minutes that it does not answer",
        probed(540, FRONT),
        [event_saying("Unhealthy", NOT_THERE)],
    ),
    Case(
        "it answers through nginx in front that it is not ready",
        probed(540, FRONT),
        [event_saying("Unhealthy", NOT_THERE.replace("502", "503"))],
    ),
    Case("starting", probed(5, TCP)),
    Case("slow", probed(540, TCP)),
    Case("port by name", probed(540, HTTP)),
    Case("startup before readiness", probed(540, {**TCP, **STARTUP})),
    Case("readiness after startup", probed(540, {**TCP, **STARTUP}, started=True)),
    Case("a command asks", probed(540, {"readinessProbe": {"exec": {"command": ["true"]}}})),
    Case("a command asks a program that starts", probed(5, {"startupProbe": {"exec": {"command": ["true"]}}})),
    Case(
        "the probe's command takes too long",
        probed(540, {"readinessProbe": {"exec": {"command": ["ray", "health-check"]}}}),
        [event_saying("Unhealthy", 'Readiness probe failed: command timed out: "ray health-check" timed out after 1s')],
    ),
    Case(
        "the probe's command takes too long for containerd",
        probed(540, TCP),
        [
            event_saying(
                "Unhealthy",
                "Readiness probe errored and resulted in unknown state: rpc error: code = DeadlineExceeded desc = failed to "
                "exec in container: timeout 5s exceeded: context deadline exceeded",
            )
        ],
    ),
    Case("it answers that it is not ready", probed(5, HTTP), [event_saying("Unhealthy", NOT_READY)]),
    Case("it answers for minutes that it is not ready", probed(540, HTTP), [event_saying("Unhealthy", NOT_READY)]),
    Case(
        "it answers over gRPC that it is not ready",
        probed(5, STARTUP),
        [event_saying("Unhealthy", 'Startup probe failed: service unhealthy (responded with "NOT_SERVING")')],
    ),
    Case("its previous run answered", probed(5, HTTP), [event_saying("Unhealthy", NOT_READY, seconds=6)]),
    Case("another container answers", probed(5, HTTP), [of_another(event_saying("Unhealthy", NOT_READY))]),
    Case(
        "liveness says nothing about readiness",
        probed(540, TCP),
        [
            event_saying("Unhealthy", "Readiness probe failed: connection refused", seconds=9),
            event_saying("Unhealthy", "Liveness probe failed: no"),
        ],
    ),
    Case("killed for its liveness", restarted(LAST), [SILENT, KILLED]),
    Case("killed for its liveness and ready again", restarted(LAST, ready=True), [SILENT, KILLED]),
    Case("ended in order when killed for its liveness", restarted(ended(0, "Completed", startedAt=ago(100))), [KILLED]),
    *(
        Case(name, restarted(LAST, ready=True), [event_saying("Unhealthy", message, seconds=12), KILLED])
        for name, message in (
            ("hung", 'Liveness probe failed: Get "http://10.0.0.1:80/": context deadline exceeded'),
            ("its command hung", 'Liveness probe failed: command timed out: "true" timed out after 1s'),
            ("no port", "Liveness probe failed: dial tcp 10.0.0.1:80: connect: connection refused"),
            ("its command failed", "Liveness probe failed: cat: can't open '/tmp/healthy': No such file or directory"),
        )
    ),
    Case("only the failure is still known", restarted(LAST), [SILENT]),
    Case("failed its probe, then crashed by itself", restarted(ended(1, startedAt=ago(100))), [SILENT]),
    Case(
        "another container was killed",
        restarted(ended(1, startedAt=ago(100))),
        [event_saying("Killing", "Container b failed liveness probe", seconds=9)],
    ),
    Case("killed in an earlier run", restarted(ended(139, startedAt=ago(9)), ready=True), [SILENT, KILLED]),
    Case(
        "failed its probe after the restart",
        restarted(ended(137, seconds=60, startedAt=ago(100)), ready=True),
        [SILENT],
    ),
    Case("the liveness probe of another container failed", restarted(LAST, ready=True), [of_another(SILENT)]),
    Case(
        "nobody knows when it ended",
        restarted({"terminated": {"exitCode": 137, "reason": "Error"}}, ready=True),
        [SILENT],
    ),
    Case(
        "nobody knows when it ended or began",
        restarted({"terminated": {"exitCode": 137, "reason": "Error"}}, ready=True, state={"running": {}}),
        [SILENT],
    ),
    Case(
        "killed for its startup",
        restarted(LAST),
        [event_saying("Killing", "Container run failed startup probe, will be restarted", seconds=9)],
    ),
    Case(
        "killed again and again",
        probed(
            0,
            {},
            restarts=3,
            lastState=LAST,
            state={"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}},
        ),
        [SILENT, KILLED],
    ),
    Case("one failure of a program that runs", probed(540, TCP, ready=True), [SILENT]),
]


@pytest.mark.parametrize(
    ("stored", "cases"), [("words-of-several-containers", CASES), ("words-of-probes", PROBE_CASES)]
)
def test_the_whole_words_are_as_stored(stored: str, cases: list[Case]) -> None:
    assert_told_as_stored(stored, cases)
