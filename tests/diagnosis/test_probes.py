"""What a person is told about a program that does not answer, and about one that was restarted for that."""

from typing import Any

import pytest

from tests.diagnosis.situations import Case, ago, assert_explained, assert_told_as_stored, ended, said
from tests.support.builders import container_status, pod

SILENT = said("Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 500", seconds=12)
KILLED = said("Killing", "Container run failed liveness probe, will be restarted", seconds=10)
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
CASES = [
    Case(
        "nginx in front says that it does not answer",
        probed(5, FRONT),
        "starting",
        "The program is starting and does not answer yet.",
        [said("Unhealthy", NOT_THERE)],
    ),
    Case(
        "nginx in front says for minutes that it does not answer",
        probed(540, FRONT),
        "not_answering",
        "Running for 9 minutes without answering.",
        [said("Unhealthy", NOT_THERE)],
    ),
    Case(
        "it answers through nginx in front that it is not ready",
        probed(540, FRONT),
        "not_answering",
        "Running for 9 minutes, and still answers with HTTP 503.",
        [said("Unhealthy", NOT_THERE.replace("502", "503"))],
    ),
    Case("starting", probed(5, TCP), "starting", "The program is starting and does not answer on port 8888 yet."),
    Case("slow", probed(540, TCP), "not_answering", "Running for 9 minutes without answering on port 8888."),
    Case("port by name", probed(540, HTTP), "not_answering", "without answering on port web."),
    Case("startup before readiness", probed(540, {**TCP, **STARTUP}), "not_answering", "on port 9000."),
    Case("readiness after startup", probed(540, {**TCP, **STARTUP}, started=True), "not_answering", "on port 8888."),
    Case(
        "a command asks",
        probed(540, {"readinessProbe": {"exec": {"command": ["true"]}}}),
        "not_answering",
        "Running for 9 minutes without passing its readiness probe.",
    ),
    Case(
        "a command asks a program that starts",
        probed(5, {"startupProbe": {"exec": {"command": ["true"]}}}),
        "starting",
        "The program is starting and has not passed its startup probe yet.",
    ),
    Case(
        "it answers that it is not ready",
        probed(5, HTTP),
        "starting",
        "The program is starting and answers on port web with HTTP 503, so it is not ready yet.",
        [said("Unhealthy", NOT_READY)],
    ),
    Case(
        "it answers for minutes that it is not ready",
        probed(540, HTTP),
        "not_answering",
        "Running for 9 minutes, and still answers on port web with HTTP 503.",
        [said("Unhealthy", NOT_READY)],
    ),
    Case(
        "it answers over gRPC that it is not ready",
        probed(5, STARTUP),
        "starting",
        "answers on port 9000 with NOT_SERVING, so it is not ready yet.",
        [said("Unhealthy", 'Startup probe failed: service unhealthy (responded with "NOT_SERVING")')],
    ),
    Case(
        "its previous run answered",
        probed(5, HTTP),
        "starting",
        "does not answer on port web yet.",
        [said("Unhealthy", NOT_READY, seconds=6)],
    ),
    Case(
        "another container answers",
        probed(5, HTTP),
        "starting",
        "does not answer on port web yet.",
        [of_another(said("Unhealthy", NOT_READY))],
    ),
    Case(
        "liveness says nothing about readiness",
        probed(540, TCP),
        "not_answering",
        "on port 8888.",
        [
            said("Unhealthy", "Readiness probe failed: connection refused", seconds=9),
            said("Unhealthy", "Liveness probe failed: no"),
        ],
    ),
    Case(
        "killed for its liveness",
        restarted(LAST),
        "probe",
        "Program restarted 5 seconds ago: it failed its liveness probe (HTTP 500). It does not answer yet.",
        [SILENT, KILLED],
    ),
    Case(
        "killed for its liveness and ready again",
        restarted(LAST, ready=True),
        "probe",
        "Program restarted 5 seconds ago: it failed its liveness probe (HTTP 500).",
        [SILENT, KILLED],
    ),
    Case(
        "ended in order when killed for its liveness",
        restarted(ended(0, "Completed", startedAt=ago(100))),
        "probe",
        "liveness probe.",
        [KILLED],
    ),
    *(
        Case(
            name,
            restarted(LAST, ready=True),
            "probe",
            "it failed its liveness probe.",
            [said("Unhealthy", message, seconds=12), KILLED],
        )
        for name, message in (
            ("hung", 'Liveness probe failed: Get "http://10.0.0.1:80/": context deadline exceeded'),
            ("its command hung", 'Liveness probe failed: command timed out: "true" timed out after 1s'),
            ("no port", "Liveness probe failed: dial tcp 10.0.0.1:80: connect: connection refused"),
            ("its command failed", "Liveness probe failed: cat: can't open '/tmp/healthy': No such file or directory"),
        )
    ),
    Case(
        "only the failure is still known",
        restarted(LAST),
        "probe",
        "it failed its liveness probe (HTTP 500).",
        [SILENT],
    ),
    Case(
        "failed its probe, then crashed by itself",
        restarted(ended(1, startedAt=ago(100))),
        "restarted",
        "Program restarted 5 seconds ago: exit code 1. It does not answer yet.",
        [SILENT],
    ),
    Case(
        "another container was killed",
        restarted(ended(1, startedAt=ago(100))),
        "restarted",
        "exit code 1. It does not answer yet.",
        [said("Killing", "Container b failed liveness probe", seconds=9)],
    ),
    Case(
        "killed in an earlier run",
        restarted(ended(139, startedAt=ago(9)), ready=True),
        "restarted",
        "segmentation fault",
        [SILENT, KILLED],
    ),
    Case(
        "failed its probe after the restart",
        restarted(ended(137, seconds=60, startedAt=ago(100)), ready=True),
        "restarted",
        "exit code 137",
        [SILENT],
    ),
    Case(
        "the liveness probe of another container failed",
        restarted(LAST, ready=True),
        "restarted",
        "exit code 137",
        [of_another(SILENT)],
    ),
    Case(
        "nobody knows when it ended",
        restarted({"terminated": {"exitCode": 137, "reason": "Error"}}, ready=True),
        "restarted",
        "Program restarted 4 seconds ago: exit code 137",
        [SILENT],
    ),
    Case(
        "nobody knows when it ended or began",
        restarted({"terminated": {"exitCode": 137, "reason": "Error"}}, ready=True, state={"running": {}}),
        "restarted",
        "Program was restarted: exit code 137",
        [SILENT],
    ),
    Case(
        "killed for its startup",
        restarted(LAST),
        "probe",
        "it failed its startup probe.",
        [said("Killing", "Container run failed startup probe, will be restarted", seconds=9)],
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
        "probe",
        "The program is restarted again and again (3 restarts): it fails its liveness probe (HTTP 500).",
        [SILENT, KILLED],
    ),
    Case("one failure of a program that runs", probed(540, TCP, ready=True), "running", "Running.", [SILENT]),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_probe_that_fails_is_explained(case: Case) -> None:
    assert_explained(case)


def test_the_whole_words_are_as_stored() -> None:
    assert_told_as_stored("words-of-probes", CASES)
