"""What a person is told about a program's exit code, and about a command that could not be started."""

import pytest

from tests.diagnosis.situations import Case, assert_explained, assert_told_as_stored, ended, on_a_node

RUNC = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "
    "unable to start container process: error during container init: "
)
NO_FOO = RUNC + 'exec: "foo": executable file not found in $PATH: unknown'


def exits(code: int, log: str = "") -> dict[str, object]:
    return on_a_node(ended(code, message=log))


def crashes(code: int, reason: str = "Error", message: str = "") -> dict[str, object]:
    last = ended(code, reason, message=message)
    return on_a_node({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 20s"}}, restarts=1, lastState=last)


def waits(reason: str, message: str) -> dict[str, object]:
    return on_a_node({"waiting": {"reason": reason, "message": message}})


CASES = [
    Case("any code", exits(1), "exit_code", "exit code 1."),
    Case("not executable", exits(126), "exit_code", "exit code 126, its command is not executable."),
    Case("not found", exits(127), "exit_code", "exit code 127, its command was not found."),
    Case(
        "dash does not find it",
        exits(127, "start\nsh: 1: train: not found\n"),
        "exit_code",
        "the command train was not found.",
    ),
    Case(
        "bash does not find it",
        exits(127, "run.sh: line 3: train: command not found"),
        "exit_code",
        "the command train was not",
    ),
    Case("busybox does not find it", exits(127, "/bin/sh: train: not found"), "exit_code", "the command train was not"),
    Case(
        "env does not find it",
        exits(127, "env: ‘python2’: No such file or directory"),
        "exit_code",
        "the command python2 was not",
    ),
    Case("something else is not found", exits(1, "sh: 1: train: not found"), "exit_code", "exit code 1."),
    Case("a file is not found", exits(127, "train: not found in the table"), "exit_code", "its command was not found."),
    Case("128 of a program", exits(128), "exit_code", "exit code 128."),
    Case("interrupted", exits(130), "exit_code", "exit code 130, it was interrupted (SIGINT)."),
    Case("aborted", exits(134), "exit_code", "exit code 134, it aborted."),
    Case("killed", exits(137), "exit_code", "exit code 137, it was killed (SIGKILL)."),
    Case(
        "killed for memory", on_a_node(ended(137, "OOMKilled")), "out_of_memory", "more memory than its limit of 4 GiB"
    ),
    Case("segmentation fault", exits(139), "exit_code", "exit code 139, it crashed (segmentation fault)."),
    Case("asked to end", exits(143), "exit_code", "exit code 143, it was asked to end (SIGTERM)."),
    Case("keeps not being executable", crashes(126), "crash_loop", "exit code 126, its command is not executable."),
    Case(
        "no such command",
        on_a_node(ended(128, "StartError", message=NO_FOO)),
        "command",
        "its command foo does not exist in the image.",
    ),
    Case(
        "no such command, again and again",
        crashes(128, "StartError", NO_FOO),
        "command",
        "foo does not exist in the image. It is tried",
    ),
    Case("no such command, at first", waits("RunContainerError", NO_FOO), "command", "its command foo does not exist"),
    Case(
        "older runtime",
        on_a_node(ended(127, "ContainerCannotRun", message=NO_FOO)),
        "command",
        "its command foo does not exist",
    ),
    Case(
        "crun knows no such command",
        waits(
            "RunContainerError",
            "container create failed: executable file `foo` not found in $PATH: No such file or directory",
        ),
        "command",
        "its command foo does not exist",
    ),
    Case(
        "no such file",
        waits("RunContainerError", RUNC + 'exec: "/app/run": stat /app/run: no such file or directory: unknown'),
        "command",
        "its command /app/run does not exist",
    ),
    Case(
        "not allowed",
        waits("RunContainerError", RUNC + 'exec: "/app/run": permission denied: unknown'),
        "command",
        "/app/run is not executable.",
    ),
    Case(
        "a directory",
        waits("RunContainerError", RUNC + 'exec: "/app": is a directory: unknown'),
        "command",
        "/app is a directory.",
    ),
    Case(
        "other architecture",
        waits("RunContainerError", RUNC + "exec /app/run: exec format error"),
        "command",
        "another architecture",
    ),
    Case(
        "no working directory",
        waits(
            "RunContainerError",
            RUNC + 'chdir to cwd ("/mnt/project") set in config.json failed: permission denied: unknown',
        ),
        "command",
        "its working directory /mnt/project cannot be entered.",
    ),
    Case(
        "no command",
        waits("CreateContainerError", "failed to generate spec: no command specified"),
        "command",
        "names a command.",
    ),
    Case(
        "words of nobody",
        waits("CreateContainerError", "the moon is in the wrong phase"),
        "container",
        "The program cannot be started.",
    ),
    Case("no words", on_a_node(ended(128, "StartError")), "container", "The program cannot be started."),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_end_is_explained_in_words(case: Case) -> None:
    assert_explained(case)


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.code in ("command", "container")], ids=lambda case: case.name
)
def test_nobody_is_sent_to_the_log_of_a_program_that_never_started(case: Case) -> None:
    assert "log" not in case.explain().next_step


def test_the_whole_words_are_as_stored() -> None:
    assert_told_as_stored("words-of-exits", CASES)
