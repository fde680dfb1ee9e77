"""What a person is told while the project's files in Git are fetched, and when they cannot be."""

import json
from typing import Any

import pytest

from grid.diagnosis.pods import explain_pod
from grid.diagnosis.run_report import report_of
from grid.kube.objects import Pod
from tests.diagnosis.situations import ended
from tests.diagnosis.test_parts import DONE, WAITS, made_of, running, status
from tests.support.builders import MOMENT, decode

EXECUTOR = {"name": "executor", "image": "executor:1", "restartPolicy": "Always"}
PULLING = {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "executor:1"'}}
BACK_OFF = {"waiting": {"reason": "CrashLoopBackOff"}}


def ended_saying(code: int, problem: str) -> dict[str, Any]:
    last = ended(code)
    last["terminated"]["message"] = json.dumps({"code": code, "problem": problem})
    return last


def pod_with(state: dict[str, Any], program: dict[str, Any] = WAITS, *, started: bool = False, **more: Any) -> Pod:
    first = status("executor", state, **{"started": started, "ready": started, **more})
    made = made_of([first], [status("run", program, ready="running" in program)], steps=(EXECUTOR,))
    return decode(made, Pod)


@pytest.mark.parametrize(
    ("pod", "code", "sentence"),
    [
        (pod_with(running()), "files", "Fetching the project's files from Git."),
        (
            pod_with(running(), lastState=ended_saying(4, "It cannot be used: x")),
            "files_unusable",
            "It cannot be used: x",
        ),
        (pod_with(BACK_OFF, lastState=ended_saying(3, "No branch a.")), "files_missing", "No branch a."),
        (pod_with(BACK_OFF, lastState=ended(137, "OOMKilled")), "out_of_memory", "ended sidecar executor"),
        (pod_with(PULLING), "image", "The image executor:1 cannot be pulled."),
        (pod_with(running(), running(), started=True), "running", "Running."),
        (pod_with(running(), DONE, started=True), "completed", "The program ended by itself, without an error."),
    ],
    ids=["fetches", "tries again", "not there", "too little memory", "no image", "runs", "saves"],
)
def test_the_executor_is_explained_by_what_it_does(pod: Pod, code: str, sentence: str) -> None:
    diagnosis = explain_pod(pod, (), now=MOMENT)
    assert (diagnosis.code, sentence in diagnosis.sentence) == (code, True), diagnosis


PREPARER = {"name": "executor-prepare", "image": "executor:1"}


def ordinary(
    prepare: dict[str, Any], executor: dict[str, Any] = WAITS, program: dict[str, Any] = WAITS, phase: str = "Running"
) -> Pod:
    """A pod of a cluster without native sidecars."""
    both = [status(name, state, ready="running" in state) for name, state in (("executor", executor), ("run", program))]
    return decode(made_of([status("executor-prepare", prepare)], both, steps=(PREPARER,), phase=phase), Pod)


@pytest.mark.parametrize(
    ("pod", "code", "sentence"),
    [
        (ordinary(running(), phase="Pending"), "files", "Fetching the project's files from Git."),
        (ordinary(ended_saying(3, "No branch a."), phase="Failed"), "files_missing", "No branch a."),
        (ordinary(ended_saying(4, "It cannot be used: x"), phase="Failed"), "files_unusable", "It cannot be used: x"),
        (ordinary(DONE, running(), running()), "running", "Running."),
        (ordinary(DONE, ended(137, "OOMKilled"), running()), "out_of_memory", "ended sidecar executor"),
        (ordinary(DONE, running(), DONE), "completed", "The program ended by itself, without an error."),
        (ordinary(DONE, running(), ended(7)), "exit_code", "The program ended with an error: exit code 7."),
        (ordinary(DONE, DONE, ended(7), "Failed"), "exit_code", "The program ended with an error: exit code 7."),
        (ordinary(DONE, ended(137), DONE, "Failed"), "completed", "The program ended by itself, without an error."),
    ],
    ids=[
        "fetches",
        "not there",
        "not now",
        "runs",
        "was killed",
        "saves",
        "saves a failure",
        "failed",
        "saving failed",
    ],
)
def test_an_ordinary_executor_is_no_program(pod: Pod, code: str, sentence: str) -> None:
    diagnosis = explain_pod(pod, (), now=MOMENT)
    assert (diagnosis.code, sentence in diagnosis.sentence) == (code, True), diagnosis


def test_container_named_executor_in_other_pods_is_a_program() -> None:
    made = made_of([], [status("executor", ended(7)), status("driver", ended(0))], steps=(), phase="Failed")
    assert explain_pod(decode(made, Pod), (), now=MOMENT).code == "exit_code"


@pytest.mark.parametrize("message", ["", "no JSON", "[]", '{"code": "x"}', '{"began": "aaa'])
def test_last_words_that_are_no_report_are_none(message: str) -> None:
    last = ended(0)
    last["terminated"]["message"] = message
    assert report_of(pod_with(last, DONE)) is None
