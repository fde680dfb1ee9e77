"""Puts the end of a program into words: its exit code, and the command that could not be started."""

import re

from grid.diagnosis.diagnosis import Diagnosis, Who, quoted
from grid.diagnosis.logfindings import LogFinding, findings
from grid.diagnosis.parts import part_of, subject
from grid.kube.objects import ContainerStatus, Pod, Terminated

# Reasons of an end without a beginning: the runtime could not start the command, so there is no log.
NEVER_STARTED = frozenset({"StartError", "ContainerCannotRun"})
_MEANINGS = {
    126: "its command is not executable",
    127: "its command was not found",
    130: "it was interrupted (SIGINT)",
    134: "it aborted",
    137: "it was killed (SIGKILL)",
    139: "it crashed (segmentation fault)",
    143: "it was asked to end (SIGTERM)",
}
_NOT_FOUND = re.compile(
    r"(?:^|: )([^\s:]+): (?:command )?not found$|^env: \W?([^\s:'’]+)\W?: No such file", re.MULTILINE
)
# What containerd (runc) and cri-o (crun) say of a command that they cannot start; {} is the command or directory.
_CANNOT_START = (
    (r'exec: "([^"]+)": executable file not found', "its command {} does not exist in the image"),
    (r"executable file [`'\"]([^`'\"]+)[`'\"] not found", "its command {} does not exist in the image"),
    (r'exec: "([^"]+)": (?:stat [^:]+: )?no such file or directory', "its command {} does not exist in the image"),
    (r'exec: "([^"]+)": (?:stat [^:]+: )?permission denied', "its command {} is not executable"),
    (r'exec: "([^"]+)": is a directory', "its command {} is a directory"),
    (
        r"exec(?: \"?([^\s\":]+)\"?)?: exec format error",
        "its command is built for another architecture than the node's",
    ),
    (r'chdir to cwd \("([^"]+)"\)', "its working directory {} cannot be entered"),
    (r"no command specified", "neither its image nor its environment names a command"),
)
_COMMAND_ADVICE = "Ask your admin to correct the environment's command."


def exit_words(ended: Terminated) -> str:
    """Return "exit code 137, it was killed (SIGKILL)"; the name of a missing command comes from the end of the log."""
    missing = _missing_command(ended)
    known = f"the command {missing} was not found" if missing else _MEANINGS.get(ended.exit_code)
    return f"exit code {ended.exit_code}" + (f", {known}" if known else "")


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
    exit_code = ended.exit_code if ended else 1
    if part_of(pod, status) != "program":
        return "admin", f"See the log of container {status.name}, or show it to your admin."
    if ended is not None and _missing_command(ended):
        return "you", "Check your command; if it is the environment's, ask your admin."
    if exit_code in (126, 127):
        return "admin", "Ask your admin to check the environment's command."
    if ended is not None and (known := explain_by_log(ended)):
        return "you", known.cure
    if exit_code == 137:
        return "you", "See the end of the log, and whether its memory use came near the limit."
    return "you", "See the end of the log."


def explain_no_start(pod: Pod, status: ContainerStatus, message: str, *, reason: str) -> Diagnosis:
    """Explain a container whose command the runtime could not start; an unknown message is shown as it is."""
    why = ""
    for pattern, words in _CANNOT_START:
        if found := re.search(pattern, message):
            why = f": {words.format(next(iter(found.groups()), ''))}"
            break
    code = "command" if why else "container"
    who: Who = "admin" if why else "operator"
    step = _COMMAND_ADVICE if why else "Show an operator the messages below."
    sentence = f"{subject(pod, status)} cannot be started{why}."
    return Diagnosis(code, sentence, "problem", who, step, quoted(f"{reason}: {message}"))


def _missing_command(ended: Terminated) -> str:
    """Return the command that a shell did not find, "" when the log's end names none."""
    if ended.exit_code != 127:
        return ""
    return next((one or other for one, other in reversed(_NOT_FOUND.findall(ended.message.strip()))), "")
