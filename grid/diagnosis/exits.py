"""Puts the end of a program into words: its exit code, and the command that could not be started."""

from collections.abc import Mapping

from grid.core.labels import KEYS
from grid.core.regexes import Expression, RepeatedExpression
from grid.core.translation import gettext as _
from grid.core.wording import capitalised
from grid.diagnosis.beside import PROGRAM, part_of, within
from grid.diagnosis.diagnosis import Diagnosis, Who, quoted
from grid.diagnosis.disruptions import end_requested_by
from grid.diagnosis.lastwords import last_words
from grid.diagnosis.logfindings import LogFinding, findings
from grid.diagnosis.nodefaults import LOOK_AT_NODE, MORE_MEMORY, NO_NAMESPACES, fault_of
from grid.diagnosis.rules import RuleTable, core_words
from grid.kube.objects import ContainerStatus, Pod, Terminated

# Reasons of an end without a beginning: the runtime could not start the command, so there is no log.
NEVER_STARTED = frozenset({"StartError", "ContainerCannotRun"})
# Whoever finds the container no more, as after its node's restart, invents an exit code: the kubelet 137, and containerd 255.
NOT_LOCATED = ("ContainerStatusUnknown", "Unknown")
MEANINGS = {
    126: _("its command is not executable"), 127: _("its command was not found"), 130: _("something interrupted it (SIGINT)"),
    132: _("it used an instruction that the node's processor does not know (SIGILL)"), 134: _("it aborted"),
    135: _("it lost shared memory or a mapped file (SIGBUS)"), 136: _("it divided a whole number by zero (SIGFPE)"),
    137: _("it was killed (SIGKILL)"), 139: _("it crashed (segmentation fault)"), 143: _("something asked it to end (SIGTERM)"),
    159: _("it made a system call that the node forbids (SIGSYS)"),
}  # fmt: skip
# A shell adds 128 to the signal that ended a program.
_SIGNALS = {129: "SIGHUP", 131: "SIGQUIT", 133: "SIGTRAP", 141: "SIGPIPE", 152: "SIGXCPU", 153: "SIGXFSZ"}
_ENDS = {code: _("a signal ended it ({name})", name=name) for code, name in _SIGNALS.items()} | MEANINGS
_CURES = {
    132: _("Choose a tier with other nodes, or packages that are built for this processor."),
    159: _(
        "Ask an operator which call that was: the node's kernel log names it, and its seccomp profile or sandbox forbids it."
    ),
    135: _("Its disk or /dev/shm is usually full: use less of it, or choose a tier with more shared memory."),
}
# The same where the pod says what asked for the end. SIGINT is what some images ask for in place of SIGTERM.
_REQUESTED = {
    130: _("it was interrupted (SIGINT)"), 137: _("it was killed (SIGKILL)"), 143: _("it was asked to end (SIGTERM)"),
}  # fmt: skip
_NOT_FOUND = RepeatedExpression(
    r"(?m)(?:^|: )([^\s:]+?)(\\r'|\r)?: (?:command )?not found$"
    r"|^(?:/usr/bin/)?env: (?:can't execute )?\W?([^\s:'’\\]+)(\\r|\r)?\W?: No such file"
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
_OTHER_FORMAT = (_("the command {file} is built for another architecture than the node's, or is a script without a #! line"),
                 _("Begin a script with a #! line, or build the file for the node's architecture"))  # fmt: skip
# What containerd (runc) and cri-o (crun) say of a command that they cannot start; {command} is the command or directory.
CANNOT_START = RuleTable(
    ("no-command-file", (r"""exec: "([^"]+)": (?:executable file not found|(?:stat [^:]+: )?no such file or directory)"""
     r"""|executable file [`'"]([^`'"]+)[`'"] not found"""), _("its command {command} does not exist in the image")),
    ("not-executable", r'exec: "([^"]+)": (?:stat [^:]+: )?permission denied', _("its command {command} is not executable")),
    ("directory", r'exec: "([^"]+)": is a directory', _("its command {command} is a directory")),
    ("format", r"exec:?(?: \"?([^\s\":]+)\"?)?: exec format error",
     _("its command {command} is built for another architecture than the node's, or is a script without a #! line")),
    ("working-directory", r'chdir to cwd \("([^"]+)"\)', _("its working directory {command} cannot be entered")),
    ("cuda", r"condition: cuda ?>= ?([\d.]*\d)", _("its image needs CUDA {command} or later, and the node's GPU driver is older")),
    ("driver-mismatch", r"driver/library version mismatch",
     _("the node's GPU driver and its libraries have different versions, as after an update without a reboot")),
    ("gpu-driver", r"nvidia-container-cli: (?:[^:r][^:]*)?(?:error|failed)|nvml error",
     _("the node's GPU driver does not answer")),
    ("security-profile", r"(?i)(seccomp|apparmor) (?:profile|spec)", _("the node cannot enforce its security profile ({command})")),
    ("slow-runtime", r"is reserved\b|container name \S+ is already in use|(?i:deadline ?exceeded)",
     _("the node's container runtime is overloaded or hangs, and has not finished an earlier try")),
    ("user-namespaces", r"MOUNT_ATTR_IDMAP|idmap", _("the file system of a volume cannot be used with user namespaces (hostUsers: false)")),
    ("named-user", r"non-numeric user", _("its image names its user in words, so the node cannot tell whether that is root")),
    ("unknown-user", r"no users found|unable to find user ([^:\s]+)|no matching entries in passwd",
     _("the user {command} that it is to run as is not in its image")),
    ("selinux", r'relabel "?\S*?([^/\s"]+)"? with', _("the node cannot give the files of volume {command} their SELinux label")),
    ("sub-path", r'(?i)subPath (?:directory )?for volumeMount "([^"]+)"', _("its folder of volume {command} (subPath) cannot be used")),
    ("mount-kind", r'to rootfs at "([^"]+)"[^\n]*(?:not a directory|Are you trying to mount)',
     _("a folder is to be mounted on the file {command}, or a file on a folder")),
    ("no-folder", r"init: mkdir (\S+): (?:permission denied|read-only file system)",
     _("its folder {command} is not in the image, and cannot be created there")),
    ("image-volume", r'sub ?[pP]ath "([^"]+)"[^"]* (?:image|artifact) volume', _("its image volume has no folder {command}")),
    ("root", r"runAsNonRoot", _("its image runs as root, which is not allowed here")),
    ("no-command", r"no command specified", _("neither its image nor its environment names a command")),
    # runc and crun have this text for a memory limit that not even the runtime's own first process fits into.
    ("memory-limit", r"container init was OOM-killed|memory limit too low", _("its memory limit is too small even to start it")),
)  # fmt: skip
# What each means: the code, who can repair it, and how. Of all others the command of the environment is wrong.
_Remedy = tuple[str, Who, str]
_OF_NODE: _Remedy = "node_fault", "operator", LOOK_AT_NODE
_COMMAND: _Remedy = "command", "admin", _("Ask your admin to correct the environment's command.")
_UNKNOWN: _Remedy = "container", "operator", _("Show an operator the messages below.")
_REMEDIES: Mapping[str, _Remedy] = {
    **dict.fromkeys(("driver-mismatch", "gpu-driver", "security-profile", "slow-runtime"), _OF_NODE),
    "user-namespaces": ("container", "operator", NO_NAMESPACES),
    **dict.fromkeys(("named-user", "unknown-user"), ("config", "admin", _("Ask your admin for an image with a numeric USER."))),
    "selinux": ("container", "operator", _("Ask an operator to mount the volume with an SELinux context, so that no file is relabelled.")),
    "sub-path": ("config", "admin", _("Ask your admin whether that folder exists, and whether this may create it there.")),
    "mount-kind": ("config", "admin", _("Ask your admin to correct the mount; of a subPath, whether its file or key is there.")),
    "no-folder": ("config", "admin", _("Ask your admin for an image that has it, or to correct the working directory or mount.")),
    "image-volume": ("config", "admin", _("Ask your admin to correct the volume's subPath or its image.")),
    "working-directory": ("command", "admin", _("Ask your admin to correct the working directory, or who may enter it.")),
    "root": ("config", "admin", _("Ask your admin for an image that runs as another user.")),
    "cuda": ("gpu_driver", "admin", _("Ask your admin for an environment with an older CUDA, or an operator to update the driver: "
                                      "nodes like this one refuse it, too.")),
    "format": ("command", "admin", _("Ask your admin for an image for the node's architecture, or choose a tier with other nodes.")),
    "memory-limit": ("out_of_memory", "you", MORE_MEMORY),
}  # fmt: skip
_FOR_ADMINS = frozenset({"grid.rights", "grid.storage-rights", "grid.certificate"})  # findings of a log
_OF_SHELLS = (126, 127)
_SHELL_SAYS = Expression(r"(?i)not found|no such file|denied|execut|format error|directory|interpreter")
_RUN_THE_ENVIRONMENTS = frozenset({"workspace", "app", "cluster"})


def exit_words(ended: Terminated, why: str = "") -> str:
    """Return "exit code 137, it was killed (SIGKILL)", or the command that the log names; `why`: what asked for the end, or ""."""
    if ended.reason in NOT_LOCATED:
        return _("how it ended is not known, because its node found its container no more")
    if why and ended.exit_code in _REQUESTED:
        end = _REQUESTED[ended.exit_code]
        return _("exit code {exit_code}, {end} because {why}", exit_code=ended.exit_code, end=end, why=why)
    known = _shell_words(ended)[0] or ("" if _has_run(ended) else _ENDS.get(ended.exit_code))
    return _("exit code {exit_code}", exit_code=ended.exit_code) + (f", {known}" if known else "")


def code_words(code: int) -> str:
    """Return "137, it was killed (SIGKILL)", what an exit code says by itself."""
    return f"{code}, {_ENDS[code]}" if code in _ENDS else str(code)


def cause_words(ended: Terminated | None) -> str:
    """Return " The GPU ran out of memory.", what the end of the log says about the cause, or ""."""
    known = explain_by_log(ended) if ended else None
    return f" {known.meaning}" if known else ""


def explain_by_log(ended: Terminated) -> LogFinding | None:
    """Return what the end of the log says about the cause, if the exit code does not say more."""
    if not ended.exit_code or (ended.exit_code in _OF_SHELLS and not _has_run(ended)):
        return None
    return next(iter(findings(ended.message)), None)


def telling_line(ended: Terminated) -> str:
    """Return the line of the end of the log that tells most, whether the knowledge base knows it or not; "" without an error."""
    known = explain_by_log(ended)
    return known.line if known else last_words(ended.message) if ended.exit_code else ""


def who_can_repair(pod: Pod, status: ContainerStatus, ended: Terminated | None) -> tuple[Who, str]:
    """Return who can repair a program that ended like this, and how. Exit codes 126 and 127 come from a shell, because a command that the
    runtime itself cannot start never runs. A job's own command is run by one, and may be the cause; others run the environment's."""
    is_injected = status.name != PROGRAM and any(each.name == PROGRAM for each in pod.status.container_statuses)
    if is_injected or part_of(pod, status) != "program":
        return "admin", _("See the log of container {name}, or show it to your admin.", name=status.name)
    if ended is None:
        return "you", _("See the end of the log.")
    if ended.reason in NOT_LOCATED:
        return "you", _("Launch it again; if it happens often, show an operator the node.")
    if ended.exit_code in _OF_SHELLS and not _has_run(ended):
        if pod.metadata.labels.get(KEYS.workload_type) in _RUN_THE_ENVIRONMENTS:
            return "admin", _("Ask your admin to check the environment's command.")
        return "you", _("{advice}; if the command is the environment's, ask your admin.", advice=_shell_words(ended)[1])
    known = explain_by_log(ended)
    is_of_memory = known.key == "grid.shared-memory" if known else ended.exit_code == 135  # SIGBUS
    if is_of_memory and KEYS.execution not in pod.metadata.labels:  # in a pod of ours it is the tier's
        return "you", _("Use less of it, as with fewer loader processes, or give its pod a larger volume at /dev/shm.")
    if known and known.key == "grid.heap" and (role := _spark_role(pod, ended)):
        return "you", _("Raise spark.{role}.memory: a larger tier alone does not raise the heap.", role=role)
    if known:
        return ("admin" if known.key in _FOR_ADMINS else "you"), known.cure
    if ended.exit_code == 137 and not end_requested_by(pod, ended):
        return "you", _("See the end of the log, and whether its memory use came near the limit.")
    return "you", _CURES.get(ended.exit_code) or _("See the end of the log.")


def _spark_role(pod: Pod, ended: Terminated) -> str:
    """Return "executor" or "driver"; executors end with exit code 52 when their heap is full, wherever they run. "" of other programs."""
    role = pod.metadata.labels.get("spark-role", "")
    return role if role in ("executor", "driver") else "executor" if ended.exit_code == 52 else ""


def explain_no_start(pod: Pod, status: ContainerStatus, message: str, *, reason: str) -> Diagnosis:
    """Explain a container whose command the runtime could not start; of an unknown message its core is said."""
    says, (code, who, step) = core_words(message), _UNKNOWN
    sentence = _("{program} cannot be started{why}.")
    if rule := CANNOT_START.find(message):
        key, words, match = rule
        says = words.format(command=next(filter(None, match.groups()), "")).replace("  ", " ")
        code, who, step = _REMEDIES.get(key, _COMMAND)
    elif fault := fault_of(message):
        sentence = _("the node cannot start {program}{why}.")
        code, says, who, step = "node_fault", fault.words, fault.who, fault.next_step
    why = f": {says}" if says else ""
    sentence = capitalised(sentence.format(program=within(pod, status), why=why))
    return Diagnosis(code, sentence, "problem", who, step, quoted(f"{reason}: {message}"))


def _has_run(ended: Terminated) -> bool:
    """Return whether a program chose an exit code of shells by itself: its last words are not about a command that could not be run."""
    says = last_words(ended.message) if ended.exit_code in _OF_SHELLS else ""
    return bool(says) and not _SHELL_SAYS.search(says)


def _shell_words(ended: Terminated) -> tuple[str, str]:
    """Return what a shell says of the command that it did not find or could not execute, "" when the log's end names none, and the cure."""
    text = ended.message.strip()
    if ended.exit_code == 127:
        *_before, (by_shell, windows, by_env, windows_start) = [("", "", "", ""), *_NOT_FOUND.findall(text)]
        words, missing = _("the command {missing} was not found"), by_shell or by_env
        if windows_start:
            words = _("the first line of its script ends as in Windows (CRLF), so that {missing} was not found")
        elif windows:
            words = _("its script has the line ends of Windows (CRLF)")
        cure = _FILES["line ends"][1] if windows or windows_start else _("Check your command")
        return words.format(missing=missing) if missing else "", cure
    *_others, (file, why) = [("", ""), *_NOT_EXECUTABLE.findall(text)]
    if scripts := _BAD_INTERPRETER.findall(text):
        file, why = scripts[-1][0], "line ends" if scripts[-1][1] else "bad interpreter"
    if ended.exit_code != 126 or not file:
        return "", _("Make its file executable (chmod +x), or correct its path")
    words, cure = _FILES.get(why, _OTHER_FORMAT)
    return words.format(file=file), cure
