"""The STATUS and the counts of pods in `kubectl get`, case by case as printPod of a real server decides."""

from typing import Any

import pytest

from grid.sandbox.apiserver.tables_pod import pod_cells
from tests.support.builders import MOMENT, condition, container_status, pod

SIDECAR = {"initContainers": [{"name": "proxy", "image": "p", "restartPolicy": "Always"}]}
DONE = {"terminated": {"exitCode": 0, "reason": "Completed"}}
KILLED = {"terminated": {"exitCode": 143, "reason": "Error"}}
INITIALIZED = [condition("Initialized", "True")]


def sidecar(**status: Any) -> dict[str, Any]:
    return {"initContainerStatuses": [container_status("proxy", **status)]}


@pytest.mark.parametrize(
    ("status", "phase", "more", "cells"),
    [
        ([container_status(ready=True)], "Running", {**sidecar(ready=True), "started": True}, ("2/2", "Running", "0")),
        ([container_status(state=DONE)], "Succeeded", sidecar(state=KILLED), ("0/2", "Completed", "0")),
        ([container_status(state=KILLED)], "Failed", sidecar(state=KILLED), ("0/2", "Error", "0")),
    ],
)
def test_finished_pod_shows_end_of_program_and_not_sidecar(
    status: list[Any], phase: str, more: dict[str, Any], cells: tuple[str, str, str]
) -> None:
    for sidecar in more["initContainerStatuses"]:
        sidecar["started"] = True
    shown = pod("p", node="n", phase=phase, statuses=status, conditions=INITIALIZED, spec=SIDECAR, status=more)
    assert tuple(pod_cells(shown, MOMENT)[1:4]) == cells


def test_finished_pod_kept_by_finalizer_is_not_terminating() -> None:
    kept: dict[str, Any] = {"deletionTimestamp": "2026-03-04T12:00:00Z", "finalizers": ["example.com/keep"]}
    done = pod("p", node="n", phase="Succeeded", statuses=[container_status(state=DONE)], **kept)
    runs = pod("p", node="n", phase="Running", statuses=[container_status(ready=True)], **kept)
    assert [pod_cells(each, MOMENT)[2] for each in (done, runs)] == ["Completed", "Terminating"]


def test_restarts_of_unfinished_init_steps_are_counted() -> None:
    waits = {"waiting": {"reason": "CrashLoopBackOff"}}
    steps = {"initContainerStatuses": [container_status("setup", state=waits, restarts=3)]}
    starting = pod("p", node="n", statuses=[], spec={"initContainers": [{"name": "setup", "image": "i"}]}, status=steps)
    assert pod_cells(starting, MOMENT)[1:4] == ["0/1", "Init:CrashLoopBackOff", "3"]
