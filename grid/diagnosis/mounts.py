"""Explains what keeps a pod from its volumes, ConfigMaps and Secrets, each by its name."""

import re

from grid.diagnosis.claims import OURS
from grid.diagnosis.diagnosis import Diagnosis, quoted
from grid.wording import listed, plural

MOUNT_FAILED = ("FailedMount", "FailedAttachVolume", "FailedMapVolume")
_KINDS = {"configmap": "ConfigMap", "secret": "Secret", "config": "ConfigMap"}
_MISSING = re.compile(r"\b(configmap|secret)s? \"([^\"]+)\" not found", re.IGNORECASE)
_MISSING_KEY = re.compile(r"couldn't find key (\S+) in (ConfigMap|Secret) (?:[^\s/]+/)?(\S+)")
_MISSING_FILE = re.compile(r"references non-existent (config|secret) key: (\S+)")
_NOT_READ = re.compile(r"failed to sync (configmap|secret) cache: timed out", re.IGNORECASE)
_VOLUME = re.compile(r"for volume \"([^\"]+)\"|unmounted volumes=\[([^\]]+)\]")
# The attach-detach controller's words: it names the pods of the same namespace, and counts those of others.
_USED_BY = re.compile(r"already used by pod\(s\) (.+?)(?: and \d+ pod\(s\) in different namespaces)?\s*$")
_USED_ELSEWHERE = re.compile(r"(\d+) pod\(s\) in different namespaces")
_WHY = (
    (r"mount\.nfs.*(timed out|refused|unreachable)", "the file server does not answer"),
    (r"mount\.nfs.*access denied|access denied by server", "the file server refuses access"),
    (r"driver name (\S+) not found", "the storage driver {} does not run on the node"),
    (r"wrong fs type|bad superblock", "its file system cannot be read"),
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
    if "Multi-Attach" in message or "already exclusively attached" in message:
        return _attached_elsewhere(f"{what} {be}", message)
    causes = ((re.search(pattern, message, re.DOTALL), words) for pattern, words in _WHY)
    why = next((f": {words.format(*found.groups())}" for found, words in causes if found), "")
    sentence = f"{what} cannot be attached to the node yet{why}."
    return Diagnosis("volume_mount", sentence, "problem", "operator", "If it lasts, ask an operator.", evidence)


def _attached_elsewhere(what: str, message: str) -> Diagnosis:
    """Explain a volume that another node has. A pod that uses it there can be stopped; without one, the other node has not let it go, and
    a lost node never does."""
    only_one = "such a volume can be attached to one node at a time"
    used, elsewhere = _USED_BY.search(message), _USED_ELSEWHERE.search(message)
    if used is not None:
        pods = [name.strip() for name in used[1].split(",")]
        they = f"pod {pods[0]}" if len(pods) == 1 else f"pods {listed(pods)}"
        sentence = f"{what} in use on another node by {they}, and {only_one}."
        step = f"Stop {they} first; if that node is lost, ask an operator to detach the volume."
        return Diagnosis("volume_mount", sentence, "problem", "you", step, quoted(message))
    if elsewhere is not None:
        sentence = (
            f"{what} in use on another node by {plural(int(elsewhere[1]), 'pod')} of another namespace, and {only_one}."
        )
        step = "Ask an operator what uses it there."
    else:
        sentence = f"{what} still attached to another node, and {only_one}."
        step = "It is detached by itself when that node lets it go; if it lasts, ask an operator whether that node is lost."
    return Diagnosis("volume_mount", sentence, "problem", "operator", step, quoted(message))


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


def _missing(message: str) -> str:
    """Return "ConfigMap settings does not exist", or which key it lacks; "" when nothing is missing."""
    if key := _MISSING_KEY.search(message):
        return f"{key[2]} {key[3].rstrip('.,')} has no key {key[1]}"
    if found := _MISSING.search(message):
        return f"{_KINDS[found[1].lower()]} {found[2].rpartition('/')[2]} does not exist"
    return ""


def _volumes(message: str) -> list[str]:
    found = _VOLUME.search(message)
    return [found[1]] if found and found[1] else re.split(r"[ ,]+", found[2]) if found else []
