"""Puts the end of a program into words: its exit code, and the command that could not be started."""

from collections.abc import Mapping

from grid.core.labels import KEYS
from grid.core.regexes import RepeatedExpression
from grid.core.translation import gettext as _
from grid.diagnosis.beside import part_of, subject
from grid.diagnosis.diagnosis import Diagnosis, Who, quoted
from grid.diagnosis.disruptions import end_requested_by
from grid.diagnosis.logfindings import LogFinding, findings
from grid.diagnosis.rules import RuleTable
from grid.kube.objects import ContainerStatus, Pod, Terminated

# Reasons of an end without a beginning: the runtime could not start the command, so there is no log.
NEVER_STARTED = frozenset({"StartError", "ContainerCannotRun"})
# The kubelet writes exit code 137 with this reason when it finds the container no more, as after its node's restart.
NOT_LOCATED = "ContainerStatusUnknown"
MEANINGS = {
    126: _("its command is not executable"),
    127: _("its command was not found"),
    130: _("something interrupted it (SIGINT)"),
    134: _("it aborted"),
    137: _("it was killed (SIGKILL)"),
    139: _("it crashed (segmentation fault)"),
    143: _("something asked it to end (SIGTERM)"),
}
_SIGNALS = {
    1: "SIGHUP", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 7: "SIGBUS", 8: "SIGFPE", 13: "SIGPIPE", 24: "SIGXCPU",
    25: "SIGXFSZ",
}  # fmt: skip
# The same where the pod says what asked for the end. SIGINT is what some images ask for in place of SIGTERM.
_REQUESTED = {
    130: _("it was interrupted (SIGINT)"),
    137: _("it was killed (SIGKILL)"),
    143: _("it was asked to end (SIGTERM)"),
}
_NOT_FOUND = RepeatedExpression(
    r"(?m)(?:^|: )([^\s:]+): (?:command )?not found$|^env: \W?([^\s:'’\\]+)(\\r|\r)?\W?: No such file"
)
# What shells say of a file that they cannot execute.
_NOT_EXECUTABLE = RepeatedExpression(
    r"(?m)(?:^|: )([^\s:]+): (Permission denied|Is a directory|cannot execute binary file|Exec format error)"
)
# Of each: what is wrong with the file, and what repairs it.
_FILES = {
    "Permission denied": (_("the command {file} is not executable"), _("Make it executable (chmod +x)")),
    "Is a directory": (_("the command {file} is a directory"), _("Correct its path")),
    "bad interpreter": (_("the first line of {file} names a program that is not in the image"),
                        _("Correct the line that begins with #!, or choose an environment that has the program")),
    "line ends": (_("the script {file} has the line ends of Windows (CRLF)"),
                  _("Save it with the line ends of Unix (LF), for example with dos2unix")),
}  # fmt: skip
# The kernel takes the carriage return for a part of the interpreter's name; bash and env print it in their own ways.
_BAD_INTERPRETER = RepeatedExpression(r"(?m)(?:^|: )([^\s:]+): [^\s:]*?(\^M|\r)?: bad interpreter")
_OTHER_FORMAT = (
    _("the command {file} is built for another architecture than the node's, or is a script without a #! line"),
    _("Begin a script with a #! line, or build the file for the node's architecture"),
)
# What containerd (runc) and cri-o (crun) say of a command that they cannot start; {command} is the command or directory.
CANNOT_START = RuleTable(
    ("runc-no-command", r'exec: "([^"]+)": executable file not found', _("its command {command} does not exist in the image")),
    ("crun-no-command", r"executable file [`'\"]([^`'\"]+)[`'\"] not found", _("its command {command} does not exist in the image")),
    ("no-file", r'exec: "([^"]+)": (?:stat [^:]+: )?no such file or directory', _("its command {command} does not exist in the image")),
    ("not-executable", r'exec: "([^"]+)": (?:stat [^:]+: )?permission denied', _("its command {command} is not executable")),
    ("directory", r'exec: "([^"]+)": is a directory', _("its command {command} is a directory")),
    ("format", r"exec:?(?: \"?([^\s\":]+)\"?)?: exec format error",
     _("its command {command} is built for another architecture than the node's, or is a script without a #! line")),
    ("working-directory", r'chdir to cwd \("([^"]+)"\)', _("its working directory {command} cannot be entered")),
    ("cuda", r"condition: cuda ?>= ?([\d.]*\d)", _("its image needs CUDA {command} or later, and the node's GPU driver is older")),
    ("gpu-driver", r"nvidia-container-cli: (?:[^:r][^:]*)?(?:error|failed)|nvml error|driver/library version mismatch",
     _("the node's GPU driver does not answer")),
    ("seccomp", r"seccomp profile|loading seccomp", _("the node has no such seccomp profile")),
    ("apparmor", r"(?i)apparmor", _("the node cannot enforce its AppArmor profile")),
    ("no-command", r"no command specified", _("neither its image nor its environment names a command")),
    # runc and crun have this text for a memory limit that not even the runtime's own first process fits into.
    ("memory-limit", r"container init was OOM-killed|memory limit too low", _("its memory limit is too small even to start it")),
)  # fmt: skip
# What each means: the code, who can repair it, and how. Of all others the command of the environment is wrong.
_Remedy = tuple[str, Who, str]
_LOOK_AT_NODE = _("Ask an operator to look at the node; launched again, it may get another one.")
_OF_NODE: _Remedy = "node_fault", "operator", _LOOK_AT_NODE
_COMMAND: _Remedy = "command", "admin", _("Ask your admin to correct the environment's command.")
_UNKNOWN: _Remedy = "container", "operator", _("Show an operator the messages below.")
_REMEDIES: Mapping[str, _Remedy] = {
    **dict.fromkeys(("gpu-driver", "seccomp", "apparmor"), _OF_NODE),
    "cuda": ("gpu_driver", "admin", _("Ask your admin for an environment with an older CUDA, or an operator to update the driver: "
                                      "nodes like this one refuse it, too.")),
    "format": ("command", "admin", _("Ask your admin for an image for the node's architecture, or choose a tier with other nodes.")),
    "memory-limit": ("out_of_memory", "you", _("Choose a tier with more memory.")),
}  # fmt: skip
_RUN_THE_ENVIRONMENTS = frozenset({"workspace", "app", "cluster"})


def exit_words(ended: Terminated, why: str = "") -> str:
    """Return "exit code 137, it was killed (SIGKILL)", or the command that the log names; `why`: what asked for the end, or ""."""
    if ended.reason == NOT_LOCATED:
        return _("how is not known, because its node found its container no more")
    if why and ended.exit_code in _REQUESTED:
        end = _REQUESTED[ended.exit_code]
        return _("exit code {exit_code}, {end} because {why}", exit_code=ended.exit_code, end=end, why=why)
    known = _command_words(ended) or _meaning(ended.exit_code)
    return _("exit code {exit_code}", exit_code=ended.exit_code) + (f", {known}" if known else "")


def code_words(code: int) -> str:
    """Return "137, it was killed (SIGKILL)", what an exit code says by itself."""
    known = _meaning(code)
    return f"{code}, {known}" if known else str(code)


def _meaning(code: int) -> str:
    """Return what an exit code means, "" when only the program knows. A shell adds 128 to the signal that ended a program."""
    if code in MEANINGS:
        return MEANINGS[code]
    name = _SIGNALS.get(code - 128)
    return _("a signal ended it ({name})", name=name) if name else ""


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
    """Return who can repair a program that ended like this, and how. Exit codes 126 and 127 come from a shell, because a command that the
    runtime itself cannot start never runs. A job's own command is run by one, and may be the cause; others run the environment's."""
    if part_of(pod, status) != "program":
        return "admin", _("See the log of container {name}, or show it to your admin.", name=status.name)
    if ended is None:
        return "you", _("See the end of the log.")
    if ended.reason == NOT_LOCATED:
        return "you", _("Launch it again; if it happens often, show an operator the node.")
    if ended.exit_code in (126, 127):
        if pod.metadata.labels.get(KEYS.workload_type) in _RUN_THE_ENVIRONMENTS:
            return "admin", _("Ask your admin to check the environment's command.")
        return "you", _("{advice}; if the command is the environment's, ask your admin.", advice=_command_advice(ended))
    if known := explain_by_log(ended):
        return "you", known.cure
    if ended.exit_code == 137 and not end_requested_by(pod, ended):
        return "you", _("See the end of the log, and whether its memory use came near the limit.")
    return "you", _("See the end of the log.")


def explain_no_start(pod: Pod, status: ContainerStatus, message: str, *, reason: str) -> Diagnosis:
    """Explain a container whose command the runtime could not start; an unknown message is shown as it is."""
    why, (code, who, step) = "", _UNKNOWN
    if rule := CANNOT_START.find(message):
        key, words, match = rule
        why = f": {words.format(command=next(iter(match.groups()), '') or '').replace('  ', ' ')}"
        code, who, step = _REMEDIES.get(key, _COMMAND)
    sentence = _("{program} cannot be started{why}.", program=subject(pod, status), why=why)
    return Diagnosis(code, sentence, "problem", who, step, quoted(f"{reason}: {message}"))


def _command_words(ended: Terminated) -> str:
    """Return what a shell says of the command that it did not find or could not execute, "" when the log's end names none."""
    if ended.exit_code == 127:
        commands = _NOT_FOUND.findall(ended.message.strip())
        by_shell, other, windows_end = commands[-1] if commands else ("", "", "")
        words = _("the command {missing} was not found") if by_shell or other else ""
        if windows_end:
            words = _("the first line of its script ends as in Windows (CRLF), so that {missing} was not found")
        return words.format(missing=by_shell or other)
    file, why = _refused_file(ended)
    return _FILES.get(why, _OTHER_FORMAT)[0].format(file=file) if file else ""


def _command_advice(ended: Terminated) -> str:
    if ended.exit_code == 127:
        is_windows = any(end for _by_shell, _other, end in _NOT_FOUND.findall(ended.message.strip()))
        return _FILES["line ends"][1] if is_windows else _("Check your command")
    file, why = _refused_file(ended)
    return _FILES.get(why, _OTHER_FORMAT)[1] if file else _("Make its file executable (chmod +x), or correct its path")


def _refused_file(ended: Terminated) -> tuple[str, str]:
    """Return the file that a shell could not execute, and why by its own words; ("", "") when the log's end names none."""
    if ended.exit_code != 126:
        return "", ""
    if scripts := _BAD_INTERPRETER.findall(ended.message.strip()):
        file, windows = scripts[-1]
        return file, "line ends" if windows else "bad interpreter"
    files = _NOT_EXECUTABLE.findall(ended.message.strip())
    return files[-1] if files else ("", "")
