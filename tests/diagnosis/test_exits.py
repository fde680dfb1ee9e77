"""What a person is told about a program's exit code, and about a command that could not be started."""

from datetime import timedelta
from typing import Any

import pytest

from grid.core.labels import KEYS
from tests.diagnosis.rule_examples import EXAMPLES
from tests.diagnosis.situations import Case, ago, assert_told_as_stored, ended, on_a_node
from tests.support.builders import MOMENT, condition

RUNC = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "
    "unable to start container process: error during container init: "
)
NO_FOO = RUNC + 'exec: "foo": executable file not found in $PATH: unknown'


def exits(code: int, log: str = "") -> dict[str, Any]:
    return on_a_node(ended(code, message=log))


def crashes(code: int, reason: str = "Error", message: str = "") -> dict[str, Any]:
    last = ended(code, reason, message=message)
    return on_a_node({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 20s"}}, restarts=1, lastState=last)


def waits(reason: str, message: str) -> dict[str, Any]:
    return on_a_node({"waiting": {"reason": reason, "message": message}})


def of_kind(kind: str, pod: dict[str, Any]) -> dict[str, Any]:
    """The pod as that of an execution of this kind."""
    return {**pod, "metadata": {**pod["metadata"], "labels": {KEYS.workload_type: kind}}}


def deleted(pod: dict[str, Any], *, seconds: float, grace: int = 30) -> dict[str, Any]:
    """The pod with its deletion asked for so long ago; its grace period of 30 s is not over."""
    meta = {"deletionTimestamp": ago(seconds - 30), "deletionGracePeriodSeconds": grace}
    return {**pod, "metadata": {**pod["metadata"], **meta}, "status": {**pod["status"], "phase": "Failed"}}


def evicted(pod: dict[str, Any]) -> dict[str, Any]:
    """The pod with its eviction asked for 9 seconds ago, but still running by its phase."""
    target = condition("DisruptionTarget", "True", "EvictionByEvictionAPI", at=MOMENT - timedelta(seconds=9))
    return {**pod, "status": {**pod["status"], "phase": "Running", "conditions": [target]}}


CASES = [
    Case("any code", exits(1)),
    Case("not executable", exits(126)),
    Case("not executable in a workspace", of_kind("workspace", exits(126))),
    Case("dash may not execute it", exits(126, "sh: 1: ./train.sh: Permission denied")),
    Case("bash executes no directory", exits(126, "bash: line 1: /data: Is a directory")),
    Case(
        "bash executes no other architecture",
        exits(126, "start\nbash: line 1: ./train: cannot execute binary file: Exec format error"),
    ),
    Case("permission denied to a program", exits(1, "cat: /data: Permission denied")),
    Case("not found", exits(127)),
    Case("not found in a workspace", of_kind("workspace", exits(127))),
    Case("dash does not find it", exits(127, "start\nsh: 1: train: not found\n")),
    Case("busybox does not find it", exits(127, "/bin/sh: train: not found")),
    Case("env does not find it", exits(127, "env: ‘python2’: No such file or directory")),
    Case("env of a full path does not find it", exits(127, "/usr/bin/env: 'bash\\r': No such file or directory")),
    Case("busybox's env does not find it", exits(127, "env: can't execute 'bash\r': No such file or directory")),
    Case("line ends of Windows in bash", exits(127, "run.sh: line 2: $'\\r': command not found")),
    Case("line ends of Windows in dash", exits(127, "run.sh: 2: ls\r: not found")),
    Case(
        "line ends of Windows before a loop", exits(2, "run.sh: line 4: syntax error near unexpected token `$'do\\r''")
    ),
    Case("something else is not found", exits(1, "sh: 1: train: not found")),
    Case("a file is not found", exits(127, "train: not found in the table")),
    Case("128 of a program", exits(128)),
    Case("interrupted", exits(130)),
    Case("aborted", exits(134)),
    *(Case(f"ended by signal {code - 128}", exits(code)) for code in (132, 135, 136, 141, 159)),
    Case("killed", exits(137)),
    Case("killed for memory", on_a_node(ended(137, "OOMKilled"))),
    Case("segmentation fault", exits(139)),
    Case("asked to end", exits(143)),
    *(Case(f"deleted, exit code {code}", deleted(exits(code), seconds=9)) for code in (130, 137, 143)),
    Case("deleted, confirmed by its node", deleted(exits(143), seconds=33, grace=0)),
    Case("crashed while it was deleted", deleted(exits(1), seconds=9)),
    Case("ended before it was deleted", deleted(on_a_node(ended(143, seconds=30)), seconds=9)),
    Case("asked to end when its node is drained", evicted(exits(143))),
    Case("asked to end before its node is drained", evicted(on_a_node(ended(143, seconds=30)))),
    Case("keeps not being executable", crashes(126)),
    Case("no such command", on_a_node(ended(128, "StartError", message=NO_FOO))),
    Case("no such command, again and again", crashes(128, "StartError", NO_FOO)),
    Case("no such command, at first", waits("RunContainerError", NO_FOO)),
    *(Case(key, waits("RunContainerError", message)) for key, (message, _) in EXAMPLES["exits.CANNOT_START"].items()),
    Case("other architecture of a command unnamed", waits("RunContainerError", RUNC + "exec: exec format error")),
    Case(
        "an unknown fault of the runtime",
        waits("RunContainerError", RUNC + 'error mounting "/dev/fuse": no such device: unknown'),
    ),
    Case("no words", on_a_node(ended(128, "StartError"))),
]


def test_program_that_never_started_has_no_log_to_read() -> None:
    diagnoses = [diagnosis for case in CASES if (diagnosis := case.explain()).code in ("command", "container")]
    assert len(diagnoses) > 5
    assert [diagnosis.next_step for diagnosis in diagnoses if "log" in diagnosis.next_step] == []


@pytest.mark.parametrize(
    ("kind", "who"), [("job", "you"), ("workspace", "admin"), ("app", "admin"), ("cluster", "admin"), ("other", "you")]
)
def test_failed_command_is_the_users_to_repair_for_jobs(kind: str, who: str) -> None:
    assert Case("", of_kind(kind, exits(126))).explain().who == who


def test_the_whole_words_are_as_stored() -> None:
    assert_told_as_stored("words-of-exits", CASES)
