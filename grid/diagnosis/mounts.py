"""Explains what keeps a pod from its volumes, ConfigMaps and Secrets, each by its name."""

import re

from grid.diagnosis.claims import OURS
from grid.diagnosis.diagnosis import Diagnosis, quoted

MOUNT_FAILED = ("FailedMount", "FailedAttachVolume", "FailedMapVolume")
_KINDS = {"configmap": "ConfigMap", "secret": "Secret", "config": "ConfigMap"}
_MISSING = re.compile(r"\b(configmap|secret)s? \"([^\"]+)\" not found", re.IGNORECASE)
_MISSING_KEY = re.compile(r"couldn't find key (\S+) in (ConfigMap|Secret) (?:[^\s/]+/)?(\S+)")
_MISSING_FILE = re.compile(r"references non-existent (config|secret) key: (\S+)")
_VOLUME = re.compile(r"for volume \"([^\"]+)\"|unmounted volumes=\[([^\]]+)\]")
_WHY = (
    (r"mount\.nfs.*(timed out|refused|unreachable)", "the file server does not answer"),
    (r"mount\.nfs.*access denied|access denied by server", "the file server refuses access"),
    (r"driver name (\S+) not found", "the storage driver {} does not run on the node"),
    (r"wrong fs type|bad superblock", "its file system cannot be read"),
)


def explain_missing(message: str, subject: str, *, reason: str) -> Diagnosis | None:
    """Explain a container that refers to a ConfigMap or Secret that is not there, or to a user that it may not be; None when the
    message says nothing of it."""
    if "runAsNonRoot" in message:
        sentence = f"{subject} cannot be started: its image runs as root, which is not allowed here."
        step = "Ask your admin for an image that runs as another user."
        return Diagnosis("config", sentence, "problem", "admin", step, quoted(f"{reason}: {message}"))
    missing = _missing(message)
    if not missing:
        return None
    step = "Ask your admin to create it, or to correct the environment."
    return Diagnosis(
        "config", f"{subject} cannot be started: {missing}.", "problem", "admin", step, quoted(f"{reason}: {message}")
    )


def explain_mount(message: str) -> Diagnosis:
    """Explain a volume that cannot be attached or mounted."""
    names = _volumes(message)
    if missing := _missing(message):
        sentence = (
            f"{missing[0].upper()}{missing[1:]}, so volume {names[0] if names else '(unknown)'} cannot be mounted."
        )
        step = "Ask your admin to create it, or to correct the environment."
        return Diagnosis("config", sentence, "problem", "admin", step, quoted(message))
    name = names[0] if names else ""
    ours = OURS.get(name, "")
    what = f"{ours[:1].upper()}{ours[1:]}" or (f"Volume {name}" if name else "A volume")
    be = "are" if ours else "is"
    if "Multi-Attach" in message or "already exclusively attached" in message:
        sentence = f"{what} {be} in use on another node, and such a volume can be attached to one node at a time."
        step = "Stop the project's other execution first."
        return Diagnosis("volume_mount", sentence, "problem", "you", step, quoted(message))
    causes = ((re.search(pattern, message, re.DOTALL), words) for pattern, words in _WHY)
    why = next((f": {words.format(*found.groups())}" for found, words in causes if found), "")
    sentence = f"{what} cannot be attached to the node yet{why}."
    return Diagnosis("volume_mount", sentence, "problem", "operator", "If it lasts, ask an operator.", quoted(message))


def _missing(message: str) -> str:
    """Return "ConfigMap settings does not exist", or which key it lacks; "" when nothing is missing."""
    if key := _MISSING_KEY.search(message):
        return f"{key[2]} {key[3].rstrip('.,')} has no key {key[1]}"
    if found := _MISSING.search(message):
        return f"{_KINDS[found[1].lower()]} {found[2].rpartition('/')[2]} does not exist"
    if file := _MISSING_FILE.search(message):
        return f"the {_KINDS[file[1]]} has no key {file[2]}"
    return ""


def _volumes(message: str) -> list[str]:
    found = _VOLUME.search(message)
    return [found[1]] if found and found[1] else re.split(r"[ ,]+", found[2]) if found else []
