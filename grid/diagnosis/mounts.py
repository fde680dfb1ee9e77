"""Explains what keeps a pod from its volumes, ConfigMaps and Secrets, each by its name."""

import re
from collections.abc import Callable

from grid.diagnosis.claims import OURS
from grid.diagnosis.diagnosis import Diagnosis, Who, quoted
from grid.diagnosis.rules import RuleTable
from grid.wording import listed, plural

MOUNT_FAILED = ("FailedMount", "FailedAttachVolume", "FailedMapVolume")
_KINDS = {"configmap": "ConfigMap", "secret": "Secret", "config": "ConfigMap"}
_MISSING_FILE = re.compile(r"references non-existent (config|secret) key: (\S+)")
_NOT_READ = re.compile(r"failed to sync (configmap|secret) cache: timed out", re.IGNORECASE)
_VOLUME = re.compile(r"for volume \"([^\"]+)\"|unmounted volumes=\[([^\]]+)\]")
WHY_NOT_MOUNTED = RuleTable(
    ("file-server-silent", r"(?s)mount\.nfs.*(timed out|refused|unreachable)", "the file server does not answer"),
    ("file-server-refuses", r"(?s)mount\.nfs.*access denied|access denied by server", "the file server refuses access"),
    ("no-driver", r"driver name (\S+) not found", "the storage driver {} does not run on the node"),
    ("file-system", r"wrong fs type|bad superblock", "its file system cannot be read"),
)
_CORRECT = "Ask your admin to create it, or to correct the environment."


def explain_missing(message: str, subject: str, *, reason: str) -> Diagnosis | None:
    """Explain a container that refers to a ConfigMap or Secret that is not there, or to a user that it may not be; None when the
    message says nothing of it."""
    evidence = quoted(f"{reason}: {message}")
    if unread := _not_read(message, evidence):
        return unread
    if "runAsNonRoot" in message:
        sentence = f"{subject} cannot be started: its image runs as root, which is not allowed here."
        step = "Ask your admin for an image that runs as another user."
        return Diagnosis("config", sentence, "problem", "admin", step, evidence)
    missing = _missing(message)
    if not missing:
        return None
    return Diagnosis("config", f"{subject} cannot be started: {missing}.", "problem", "admin", _CORRECT, evidence)


def explain_mount(message: str) -> Diagnosis:
    """Explain a volume that cannot be attached or mounted."""
    evidence = quoted(message)
    if unread := _not_read(message, evidence):
        return unread
    names = _volumes(message)
    name = names[0] if names else ""
    if file := _MISSING_FILE.search(message):  # the message names the volume, not what it is made from
        sentence = f"The {_KINDS[file[1]]} of volume {name or '(unknown)'} has no key {file[2]}, so the volume cannot be mounted."
        return Diagnosis("config", sentence, "problem", "admin", _CORRECT, evidence)
    if missing := _missing(message):
        sentence = f"{missing}, so volume {name or '(unknown)'} cannot be mounted."
        return Diagnosis("config", sentence, "problem", "admin", _CORRECT, evidence)
    ours = OURS.get(name, "")
    what = f"{ours[:1].upper()}{ours[1:]}" or (f"Volume {name}" if name else "A volume")
    be = "are" if ours else "is"
    if attached := ATTACHED.find(message):
        where, who, step = attached[1](attached[2])
        sentence = f"{what} {be} {where}, and such a volume can be attached to one node at a time."
        return Diagnosis("volume_mount", sentence, "problem", who, step, evidence)
    cause = WHY_NOT_MOUNTED.find(message)
    why = f": {cause[1].format(*cause[2].groups())}" if cause else ""
    sentence = f"{what} cannot be attached to the node yet{why}."
    return Diagnosis("volume_mount", sentence, "problem", "operator", "If it lasts, ask an operator.", evidence)


def _in_use(match: re.Match[str]) -> tuple[str, Who, str]:
    """A pod that uses the volume on the other node can be stopped."""
    pods = [name.strip() for name in match[1].split(",")]
    they = f"pod {pods[0]}" if len(pods) == 1 else f"pods {listed(pods)}"
    step = f"Stop {they} first; if that node is lost, ask an operator to detach the volume."
    return f"in use on another node by {they}", "you", step


def _in_use_elsewhere(match: re.Match[str]) -> tuple[str, Who, str]:
    others = f"{plural(int(match[1]), 'pod')} of another namespace"
    return f"in use on another node by {others}", "operator", "Ask an operator what uses it there."


def _still_attached(match: re.Match[str]) -> tuple[str, Who, str]:
    """Without a pod, the other node has not let the volume go, and a lost node never does."""
    step = "It is detached by itself when that node lets it go; if it lasts, ask an operator whether that node is lost."
    return "still attached to another node", "operator", step


# The attach-detach controller's words: it names the pods of the same namespace, and counts those of others.
ATTACHED = RuleTable[Callable[[re.Match[str]], tuple[str, Who, str]]](
    ("in-use", r"already used by pod\(s\) (.+?)(?: and \d+ pod\(s\) in different namespaces)?\s*$", _in_use),
    ("in-use-elsewhere", r"(\d+) pod\(s\) in different namespaces", _in_use_elsewhere),
    ("attached", r"Multi-Attach|already exclusively attached", _still_attached),
)


def _not_read(message: str, evidence: tuple[str, ...]) -> Diagnosis | None:
    """Explain a ConfigMap or Secret that the node has not read yet; it tries again at once, so this is no problem of the pod."""
    found = _NOT_READ.search(message)
    if found is None:
        return None
    names = _volumes(message)
    where = f" for volume {names[0]}" if names else ""
    sentence = f"The node has not read the {_KINDS[found[1].lower()]}{where} yet; it waits for the API server."
    step = "Nothing to do: it tries again by itself. If it lasts, ask an operator to look at the node."
    return Diagnosis("preparing", sentence, "wait", "", step, evidence)


MISSING = RuleTable[Callable[[re.Match[str]], str]](
    (
        "key",
        r"couldn't find key (\S+) in (ConfigMap|Secret) (?:[^\s/]+/)?(\S+)",
        lambda match: f"{match[2]} {match[3].rstrip('.,')} has no key {match[1]}",
    ),
    (
        "object",
        r"(?i)\b(configmap|secret)s? \"([^\"]+)\" not found",
        lambda match: f"{_KINDS[match[1].lower()]} {match[2].rpartition('/')[2]} does not exist",
    ),
)


def _missing(message: str) -> str:
    """Return "ConfigMap settings does not exist", or which key it lacks; "" when nothing is missing."""
    found = MISSING.find(message)
    return found[1](found[2]) if found else ""


def _volumes(message: str) -> list[str]:
    found = _VOLUME.search(message)
    return [found[1]] if found and found[1] else re.split(r"[ ,]+", found[2]) if found else []
