"""What a person is told while the project's files in Git are fetched, and when they cannot be."""

import json
from typing import Any

import pytest

from grid.diagnosis.pods import explain_pod
from grid.diagnosis.run_report import report_of
from grid.kube.objects import Pod
from tests.diagnosis.situations import as_text, ended
from tests.diagnosis.test_parts import DONE, WAITS, made_of, running, status
from tests.support.builders import MOMENT, decode
from tests.support.golden import assert_golden

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


PREPARER = {"name": "executor-prepare", "image": "executor:1"}


def ordinary(
    prepare: dict[str, Any], executor: dict[str, Any] = WAITS, program: dict[str, Any] = WAITS, phase: str = "Running"
) -> Pod:
    """A pod of a cluster without native sidecars."""
    both = [status(name, state, ready="running" in state) for name, state in (("executor", executor), ("run", program))]
    return decode(made_of([status("executor-prepare", prepare)], both, steps=(PREPARER,), phase=phase), Pod)


NO_BRANCH, UNUSABLE, OUT_OF_MEMORY = (
    ended_saying(3, "No branch a."),
    ended_saying(4, "It cannot be used: x"),
    ended(137, "OOMKilled"),
)
SIDECARS = {
    "fetches": pod_with(running()),
    "tries again": pod_with(running(), lastState=UNUSABLE),
    "not there": pod_with(BACK_OFF, lastState=NO_BRANCH),
    "too little memory": pod_with(BACK_OFF, lastState=OUT_OF_MEMORY),
    "no image": pod_with(PULLING),
    "runs": pod_with(running(), running(), started=True),
    "saves": pod_with(running(), DONE, started=True),
}
ORDINARY = {
    "fetches": ordinary(running(), phase="Pending"),
    "not there": ordinary(NO_BRANCH, phase="Failed"),
    "not now": ordinary(UNUSABLE, phase="Failed"),
    "runs": ordinary(DONE, running(), running()),
    "was killed": ordinary(DONE, OUT_OF_MEMORY, running()),
    "saves": ordinary(DONE, running(), DONE),
    "saves a failure": ordinary(DONE, running(), ended(7)),
    "failed": ordinary(DONE, DONE, ended(7), "Failed"),
    "saving failed": ordinary(DONE, ended(137), DONE, "Failed"),
}


def test_executor_is_told_as_stored_and_is_no_program() -> None:
    situations = SIDECARS | {f"{name}, ordinary container": pod for name, pod in ORDINARY.items()}
    blocks = [f"# {name}\n{as_text(explain_pod(pod, (), now=MOMENT))}" for name, pod in situations.items()]
    assert_golden("words-of-executors", "\n".join(blocks), ending="txt")


def test_container_named_executor_in_other_pods_is_a_program() -> None:
    made = made_of([], [status("executor", ended(7)), status("driver", ended(0))], steps=(), phase="Failed")
    assert explain_pod(decode(made, Pod), (), now=MOMENT).code == "exit_code"


@pytest.mark.parametrize("message", ["", "no JSON", "[]", '{"code": "x"}', '{"began": "aaa'])
def test_last_words_that_are_no_report_are_none(message: str) -> None:
    last = ended(0)
    last["terminated"]["message"] = message
    assert report_of(pod_with(last, DONE)) is None
