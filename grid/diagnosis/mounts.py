"""Explains what keeps a pod from its volumes, ConfigMaps and Secrets, each by its name; and names its volume claims by what they hold."""

from collections.abc import Callable

from grid.core.regexes import Expression, Match, RepeatedExpression
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import capitalised, listed, plural
from grid.diagnosis.diagnosis import Diagnosis, Who, quoted
from grid.diagnosis.rules import RuleTable
from grid.kube.objects import Pod
from grid.kube.slim import PodVolume

# The volumes of our own pods (`grid.executions.storage`).
OURS = {"project": _("the project's files"), "home": _("the files of HOME")}
MOUNT_FAILED = ("FailedMount", "FailedAttachVolume", "FailedMapVolume")
_KINDS = {"configmap": "ConfigMap", "secret": "Secret", "config": "ConfigMap"}
_MISSING_FILE = Expression(r"references non-existent (config|secret) key: (\S+)")
_NOT_READ = Expression(r"(?i)failed to sync (configmap|secret) cache: timed out")
_SEPARATORS = RepeatedExpression(r"[ ,]+")
_VOLUME = Expression(r"for volume \"([^\"]+)\"|unmounted volumes=\[([^\]]+)\]")
# Why a volume is not mounted, and who can change that: "" where it may end by itself.
WHY_NOT_MOUNTED = RuleTable(
    ("file-server-silent", r"(?s)mount\.nfs.*(timed out|refused|unreachable)", (_("the file server does not answer"), "")),
    ("file-server-refuses", r"(?s)mount\.nfs.*access denied|access denied by server", (
        _("the file server refuses access"), _("Ask an operator to let the node use what the file server exports."))),
    ("no-driver", r"driver name (\S+) not found|CSINode \S+ does not contain driver (\S+)", (
        _("the storage driver {driver} does not run on the node"), "")),
    ("damaged", r"fsck. found errors|UNEXPECTED INCONSISTENCY|Structure needs cleaning", (
        _("its file system is damaged"),
        _("Ask an operator to repair it by hand (fsck) or to restore a snapshot: neither waiting nor another launch helps."))),
    ("not-expanded", r"failed while expanding volume|NodeExpand(?:Volume)? failed", (
        _("the volume was enlarged, but its file system could not be"),
        _("Ask an operator to repair the volume's file system on the node."))),
    ("file-system", r"wrong fs type|bad superblock", (
        _("its file system cannot be read"),
        _("Ask an operator whether the file system is damaged, or of a kind that the node does not know."))),
)  # fmt: skip
_CORRECT = _("Ask your admin to create it, or to correct the environment.")


def claim_words(volume: PodVolume, claim_name: str) -> str:
    """Return "the project's files", "the scratch volume cache" or "the volume claim data"."""
    if volume.ephemeral is not None:
        return _("the scratch volume {name}", name=volume.name)
    return OURS.get(volume.name) or _("the volume claim {name}", name=claim_name)


def claims_in_words(pod: Pod, message: str) -> list[str]:
    """Return the pod's claims that the message names, or all of them when it names none."""
    names = {volume.claim_of(pod.metadata.name): volume for volume in pod.spec.volumes}
    named = {name: volume for name, volume in names.items() if f'"{name}"' in message}
    return [claim_words(volume, name) for name, volume in (named or names).items()]


def explain_missing(message: str, subject: str, *, reason: str) -> Diagnosis | None:
    """Explain a container that refers to a ConfigMap or Secret that is not there, or to a user that it may not be; None for any other."""
    evidence = quoted(f"{reason}: {message}")
    if unread := _not_read(message, evidence):
        return unread
    step, missing = _CORRECT, _missing(message)
    if "non-numeric user" in message:
        sentence = _(
            "{program} cannot be started: its image names its user in words, so the node cannot tell whether that is root."
        )
        step = _("Ask your admin for an image with a numeric USER.")
    elif "runAsNonRoot" in message:
        sentence = _("{program} cannot be started: its image runs as root, which is not allowed here.")
        step = _("Ask your admin for an image that runs as another user.")
    elif missing:
        sentence = _("{program} cannot be started: {missing}.")
    else:
        return None
    sentence = sentence.format(program=subject, missing=missing)
    return Diagnosis("config", sentence, "problem", "admin", step, evidence)


def explain_mount(message: str) -> Diagnosis:
    """Explain a volume that cannot be attached or mounted."""
    evidence = quoted(message)
    if unread := _not_read(message, evidence):
        return unread
    name = _volume(message)
    if file := _MISSING_FILE.search(message):  # the message names the volume, not what it is made from
        sentence = _("The {kind} of volume {name} has no key {key}, so the volume cannot be mounted.")
        sentence = sentence.format(kind=_KINDS[file[1]], name=name or _("(unknown)"), key=file[2])
        return Diagnosis("config", sentence, "problem", "admin", _CORRECT, evidence)
    if missing := _missing(message):
        sentence = _("{missing}, so volume {name} cannot be mounted.", missing=missing, name=name or _("(unknown)"))
        return Diagnosis("config", sentence, "problem", "admin", _CORRECT, evidence)
    ours = OURS.get(name, "")
    what = capitalised(ours) or (_("Volume {name}", name=name) if name else _("A volume"))
    if attached := ATTACHED.find(message):
        where, who, step = attached[1](attached[2])
        sentence = ngettext(
            "{what} is {where}, and such a volume can be attached to one node at a time.",
            "{what} are {where}, and such a volume can be attached to one node at a time.",
            2 if ours else 1,
            what=what,
            where=where,
        )
        return Diagnosis("volume_mount", sentence, "problem", who, step, evidence)
    cause = WHY_NOT_MOUNTED.find(message)
    words, step = cause[1] if cause else ("", "")
    why = f": {words.format(driver=next(filter(None, cause[2].groups()), ''))}" if cause else ""
    yet = "" if step else _(" yet")
    sentence = _("{what} cannot be attached to the node{yet}{why}.", what=what, yet=yet, why=why)
    if "MountVolume." in message and "WaitForAttach" not in message:
        sentence = _("{what} cannot be mounted on the node{yet}{why}.", what=what, yet=yet, why=why)
    step = step or _("If it lasts, ask an operator.")
    return Diagnosis("volume_mount", sentence, "problem", "operator", step, evidence)


def _in_use(match: Match) -> tuple[str, Who, str]:
    """A pod that uses the volume on the other node can be stopped."""
    pods = [name.strip() for name in match[1].split(",")]
    they = ngettext("pod {names}", "pods {names}", len(pods), names=listed(pods))
    step = _("Stop {pods} first; if that node is lost, ask an operator to detach the volume.", pods=they)
    return _("in use on another node by {pods}", pods=they), "you", step


def _in_use_elsewhere(match: Match) -> tuple[str, Who, str]:
    others = _("{pods} of another namespace", pods=plural(int(match[1]), "pod", "pods"))
    return _("in use on another node by {pods}", pods=others), "operator", _("Ask an operator what uses it there.")


def _still_attached(match: Match) -> tuple[str, Who, str]:
    """Without a pod, the other node has not let the volume go, and a lost node never does."""
    step = _(
        "It is detached by itself when that node lets it go; if it lasts, ask an operator whether that node is lost."
    )
    return _("still attached to another node"), "operator", step


# The attach-detach controller's words: it names the pods of the same namespace, and counts those of others.
ATTACHED = RuleTable[Callable[[Match], tuple[str, Who, str]]](
    ("in-use", r"already used by pod\(s\) (.+?)(?: and \d+ pod\(s\) in different namespaces)?\s*$", _in_use),
    ("in-use-elsewhere", r"(\d+) pod\(s\) in different namespaces", _in_use_elsewhere),
    ("attached", r"Multi-Attach|already exclusively attached", _still_attached),
)


def _not_read(message: str, evidence: tuple[str, ...]) -> Diagnosis | None:
    """Explain a ConfigMap or Secret that the node has not read yet; it tries again at once, so this is no problem of the pod."""
    match = _NOT_READ.search(message)
    if match is None:
        return None
    name, kind = _volume(message), _KINDS[match[1].lower()]
    where = _(" for volume {name}", name=name) if name else ""
    sentence = _("The node has not read the {kind}{where} yet; it waits for the API server.", kind=kind, where=where)
    step = _("Nothing to do: it tries again by itself. If it lasts, ask an operator to look at the node.")
    return Diagnosis("preparing", sentence, "wait", "", step, evidence)


MISSING = RuleTable[Callable[[Match], str]](
    ("key", r"couldn't find key (\S+) in (ConfigMap|Secret) (?:[^\s/]+/)?(\S+)",
     lambda match: _("{kind} {name} has no key {key}", kind=match[2], name=match[3].rstrip(".,"), key=match[1])),
    ("object", r"(?i)\b(configmap|secret)s? \"([^\"]+)\" not found",
     lambda match: _("{kind} {name} does not exist", kind=_KINDS[match[1].lower()], name=match[2].rpartition("/")[2])),
)  # fmt: skip


def _missing(message: str) -> str:
    """Return "ConfigMap settings does not exist", or which key it lacks; "" when nothing is missing."""
    rule = MISSING.find(message)
    return rule[1](rule[2]) if rule else ""


def _volume(message: str) -> str:
    """Return the name of the first volume that the message names, "" for none."""
    match = _VOLUME.search(message)
    return (match[1] or _SEPARATORS.split(match[2])[0]) if match else ""
