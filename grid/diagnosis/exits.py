"""Puts the end of a program into words: its exit code, and the command that could not be started."""

import re

from grid.diagnosis.diagnosis import Diagnosis, Who, quoted
from grid.diagnosis.disruptions import end_requested_by
from grid.diagnosis.logfindings import LogFinding, findings
from grid.diagnosis.parts import part_of, subject
from grid.diagnosis.rules import RuleTable
from grid.kube.objects import ContainerStatus, Pod, Terminated
from grid.labels import KEYS

# Reasons of an end without a beginning: the runtime could not start the command, so there is no log.
NEVER_STARTED = frozenset({"StartError", "ContainerCannotRun"})
MEANINGS = {
    126: "its command is not executable",
    127: "its command was not found",
    130: "something interrupted it (SIGINT)",
    134: "it aborted",
    137: "it was killed (SIGKILL)",
    139: "it crashed (segmentation fault)",
    143: "something asked it to end (SIGTERM)",
}
_SIGNALS = {
    1: "SIGHUP",
    3: "SIGQUIT",
    4: "SIGILL",
    5: "SIGTRAP",
    7: "SIGBUS",
    8: "SIGFPE",
    13: "SIGPIPE",
    24: "SIGXCPU",
    25: "SIGXFSZ",
}
# The same where the pod says what asked for the end. SIGINT is what some images ask for in place of SIGTERM.
_REQUESTED = {130: "it was interrupted (SIGINT)", 137: "it was killed (SIGKILL)", 143: "it was asked to end (SIGTERM)"}
_NOT_FOUND = re.compile(
    r"(?:^|: )([^\s:]+): (?:command )?not found$|^env: \W?([^\s:'’]+)\W?: No such file", re.MULTILINE
)
# What shells say of a file that they cannot execute; {} is the file.
_NOT_EXECUTABLE = re.compile(
    r"(?:^|: )([^\s:]+): (Permission denied|Is a directory|cannot execute binary file|Exec format error)", re.MULTILINE
)
_WRONG_FORMAT = "is built for another architecture than the node's, or is a script without a #! line"
# Of each: what is wrong with the file, and what repairs it.
_FILES = {
    "Permission denied": ("is not executable", "Make it executable (chmod +x)"),
    "Is a directory": ("is a directory", "Correct its path"),
}
_OTHER_FORMAT = (_WRONG_FORMAT, "Begin a script with a #! line, or build the file for the node's architecture")
# What containerd (runc) and cri-o (crun) say of a command that they cannot start; {} is the command or directory.
CANNOT_START = RuleTable(
    ("runc-no-command", r'exec: "([^"]+)": executable file not found', "its command {} does not exist in the image"),
    ("crun-no-command", r"executable file [`'\"]([^`'\"]+)[`'\"] not found", "its command {} does not exist in the image"),
    ("no-file", r'exec: "([^"]+)": (?:stat [^:]+: )?no such file or directory', "its command {} does not exist in the image"),
    ("not-executable", r'exec: "([^"]+)": (?:stat [^:]+: )?permission denied', "its command {} is not executable"),
    ("directory", r'exec: "([^"]+)": is a directory', "its command {} is a directory"),
    ("format", r"exec(?: \"?([^\s\":]+)\"?)?: exec format error", f"its command {{}} {_WRONG_FORMAT}"),
    ("working-directory", r'chdir to cwd \("([^"]+)"\)', "its working directory {} cannot be entered"),
    ("no-command", r"no command specified", "neither its image nor its environment names a command"),
)  # fmt: skip
_RUN_THE_ENVIRONMENTS = frozenset({"workspace", "app", "cluster"})
_COMMAND_ADVICE = "Ask your admin to correct the environment's command."


def exit_words(ended: Terminated, why: str = "") -> str:
    """Return "exit code 137, it was killed (SIGKILL)"; the name of a command comes from the end of the log. `why` says what asked for the
    end, "" when that is not known."""
    if why and ended.exit_code in _REQUESTED:
        return f"exit code {ended.exit_code}, {_REQUESTED[ended.exit_code]} because {why}"
    known = _command_words(ended) or _meaning(ended.exit_code)
    return f"exit code {ended.exit_code}" + (f", {known}" if known else "")


def code_words(code: int) -> str:
    """Return "137, it was killed (SIGKILL)", what an exit code says by itself."""
    known = _meaning(code)
    return f"{code}, {known}" if known else str(code)


def _meaning(code: int) -> str:
    """Return what an exit code means, "" when only the program knows. A shell adds 128 to the signal that ended a program."""
    if code in MEANINGS:
        return MEANINGS[code]
    name = _SIGNALS.get(code - 128)
    return f"a signal ended it ({name})" if name else ""


def cause_words(ended: Terminated | None) -> str:
    """Return " The GPU ran out of memory.", what the end of the log says about the cause, or ""."""
    known = explain_by_log(ended) if ended else None
    return f" {known.meaning}" if known else ""


def explain_by_log(ended: Terminated) -> LogFinding | None:
    """Return what the end of the log says about the cause, if the exit code does not say more."""
    if ended.exit_code in (0, 126, 127):
        return None
    return next(iter(findings(ended.message)), None)


def who_can_repair(pod: Pod, status: ContainerStatus, ended: Terminated | None) -> tuple[Who, str]:
    """Return who can repair a program that ended like this, and how.

    Exit codes 126 and 127 come from a shell, because a command that the runtime itself cannot start never runs. A job's own command is
    run by one, and may be the cause; other executions run the environment's.
    """
    if part_of(pod, status) != "program":
        return "admin", f"See the log of container {status.name}, or show it to your admin."
    if ended is None:
        return "you", "See the end of the log."
    if ended.exit_code in (126, 127):
        if pod.metadata.labels.get(KEYS.workload_type) in _RUN_THE_ENVIRONMENTS:
            return "admin", "Ask your admin to check the environment's command."
        return "you", f"{_command_advice(ended)}; if the command is the environment's, ask your admin."
    if known := explain_by_log(ended):
        return "you", known.cure
    if ended.exit_code == 137 and not end_requested_by(pod, ended):
        return "you", "See the end of the log, and whether its memory use came near the limit."
    return "you", "See the end of the log."


def explain_no_start(pod: Pod, status: ContainerStatus, message: str, *, reason: str) -> Diagnosis:
    """Explain a container whose command the runtime could not start; an unknown message is shown as it is."""
    why = ""
    if found := CANNOT_START.find(message):
        _, words, match = found
        why = f": {words.format(next(iter(match.groups()), '') or '').replace('  ', ' ')}"
    code = "command" if why else "container"
    who: Who = "admin" if why else "operator"
    step = _COMMAND_ADVICE if why else "Show an operator the messages below."
    sentence = f"{subject(pod, status)} cannot be started{why}."
    return Diagnosis(code, sentence, "problem", who, step, quoted(f"{reason}: {message}"))


def _command_words(ended: Terminated) -> str:
    """Return what a shell says of the command that it did not find or could not execute, "" when the log's end names none."""
    if ended.exit_code == 127:
        found = _NOT_FOUND.findall(ended.message.strip())
        missing = next((one or other for one, other in reversed(found)), "")
        return f"the command {missing} was not found" if missing else ""
    file, why = _refused_file(ended)
    return f"the command {file} {_FILES.get(why, _OTHER_FORMAT)[0]}" if file else ""


def _command_advice(ended: Terminated) -> str:
    if ended.exit_code == 127:
        return "Check your command"
    file, why = _refused_file(ended)
    return _FILES.get(why, _OTHER_FORMAT)[1] if file else "Make its file executable (chmod +x), or correct its path"


def _refused_file(ended: Terminated) -> tuple[str, str]:
    """Return the file that a shell could not execute, and why by its own words; ("", "") when the log's end names none."""
    found = _NOT_EXECUTABLE.findall(ended.message.strip()) if ended.exit_code == 126 else []
    return found[-1] if found else ("", "")
