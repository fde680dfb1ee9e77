"""What a person is told about a pod of several containers: setup steps, sidecars, and more than one program."""

from datetime import timedelta
from typing import Any

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


def test_the_whole_words_are_as_stored() -> None:
    assert_told_as_stored("words-of-several-containers", CASES)
