"""Explains what keeps a pod from its volumes, ConfigMaps and Secrets, each by its name; and names its volume claims by what they hold."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from grid.core.regexes import Expression, Match
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import capitalised, duration, listed, plural
from grid.diagnosis.diagnosis import Diagnosis, Who, quoted, together
from grid.diagnosis.rules import RuleTable, core_words, most_telling
from grid.kube.objects import Event, Pod
from grid.kube.slim import PodVolume

# The volumes of our own pods (`grid.executions.storage`).
OURS = {"project": _("the project's files"), "home": _("the files of HOME")}
MOUNT_FAILED = ("FailedMount", "FailedAttachVolume", "FailedMapVolume", "VolumePermissionChangeInProgress")
_WHO: Mapping[str, Who] = {"no-folder": "admin", "secret-store": "admin", "node-is-full": "you"}  # else an operator
_LASTS = timedelta(minutes=5)  # an attach or mount that takes longer is no ordinary delay
_OWNERSHIP = Expression(r"Setting volume ownership for .*?(?:processed (\d+) files|$)")
_KINDS = {"configmap": "ConfigMap", "secret": "Secret", "config": "ConfigMap"}
_MISSING_FILE = Expression(r"references non-existent (config|secret) key: (\S+)")
_NOT_READ = Expression(r"(?i)failed to sync (configmap|secret) cache: timed out|object .* not registered$")
_VOLUME = Expression(r"for volume \"([^\"]+)\"|unmounted volumes=\[([^\], ]+)")
# What clouds say of an account that may not do something, and of the lack of one.
NO_RIGHTS = r"= (?:PermissionDen|Unauthen)|not (?:have (?:\S+ acc|auth)|authorized)|Authorization[FP]|Forbidden|AccessDenied|d '\S+' perm"
NO_CREDENTIALS = (
    r"((?:\bno|missing|invalid|expired|failed to refresh|could not find) (?:\w+ )?credentials\b[^,:\n]*|NoCredentialProviders|"
    r"ExpiredToken\w*|InvalidClientTokenId|InvalidAccessKeyId|client secret keys? .*expired|no EC2 IMDS role found)"
)
# Why a volume is not mounted, and what changes that: "" where it may end by itself.
WHY_NOT_MOUNTED = RuleTable(
    ("no-client", r"need a /sbin/mount\.|bad superblock on [^/\s]+:|unknown filesystem type|mount\.\w+: (?:command )?not found", (
        _("the node lacks the client program of this file system, such as nfs-common"),
        _("Ask an operator to install it on the node; launched again, this may get another node."))),
    ("no-folder", r"(?s)mount.*: No such file or directory|hostPath type check failed|path .* does not exist", (
        _("the folder behind it does not exist: {says}"), _("Ask your admin to create it, or to correct its path."))),
    ("secret-store", r"secrets store obj|fetching secret|secretproviderclass", (_("a secret that it holds cannot be read: {says}"),
        _("Ask your admin whether the secret exists in the secret store, and may be read from here."))),
    ("used-elsewhere", r"still being used|IN_USE|(?:Volume|Resource)InUse|already (?:attached|being used)|attached to a different", (
        _("another node still uses it, or was lost before it let it go; its files are kept"), "")),
    ("node-is-full", r"(?i)maximum number of (?:data disks|attach)|attachment limit", (_("the node has as many volumes as it can take"),
        _("Stop it and launch it again, to get another node; ask an operator if it happens often."))),
    ("node-disk", r"mkdir /var/lib/kubelet/\S+: (read-only file system|no space left on device|input/output error)", (
        _("the node's own disk fails ({driver})"), _("Ask an operator to repair the node; launched again, this may get another one."))),
    ("no-token", r"failed to fetch token", (_("the API server gives the node no token for it yet"),
        _("It is tried again by itself; if it lasts, ask an operator to look at the API server and the node's kubelet."))),
    ("not-attached-yet", r"but was attaching|(?:hasn't been|not yet) attached|find disk on lun|find device path|no relationship found",
        (_("the cloud has not finished attaching it"), "")),
    ("file-server-silent", r"(?s)mount\.nfs.*(timed out|refused|unreachable)|Is the MGS running|mount error\W11[0-35]\b",
        (_("the file server does not answer"), "")),
    ("file-server-refuses", r"(?s)mount\.nfs.*access denied|access denied by server", (
        _("the file server refuses access"), _("Ask an operator to let the node use what the file server exports."))),
    ("no-credentials", rf"(?i){NO_CREDENTIALS}", (_("its storage driver has no valid credentials: {driver}"), _(
        "Ask an operator for the account or the secret with which the driver comes to the storage."))),
    ("no-rights", rf"{NO_RIGHTS}|error\W13\b", (_("its account may not use the storage: {says}"),
        _("Ask an operator to give that account the right, or to correct what the volume names."))),
    ("no-driver", r"driver name (\S+) not found|CSINode \S+ does not contain driver (\S+)", (
        _("the storage driver {driver} does not run on the node"), "")),
    ("damaged", r"fsck. found errors|UNEXPECTED INCONSISTENCY|Structure needs cleaning", (_("its file system is damaged"),
     _("Ask an operator to repair it by hand (fsck) or to restore a snapshot: neither waiting nor another launch helps."))),
    ("not-expanded", r"failed while expanding volume|NodeExpand(?:Volume)? failed", (
        _("the volume was enlarged, but its file system could not be"),
        _("Ask an operator to repair the volume's file system on the node."))),
    ("file-system", r"wrong fs type|bad superblock", (_("its file system cannot be read"),
     _("Ask an operator whether the file system is damaged, or of a kind that the node does not know."))),
    # What the storage does not know, or does not offer, it will not know or offer at the next attempt either.
    ("no-such-volume", r'(?i)(?:volume|disk|image)s?\b(?: "[^"]+")?[^,:"]{0,150}(?:\bnot ?found|not exist)|(?:find|no such) volume', (
        _("its storage knows no such volume: {says}"),
        _("Ask an operator whether it was deleted, and can be restored: neither waiting nor another launch helps."))),
    ("not-offered", r"= (?:InvalidArgument|Unimplemented|OutOfRange) |(?i:not supported)", ("{says}", _(
        "Waiting does not change that: choose a tier on other nodes, or ask an operator about the volume and this kind of node."))),
    ("storage-silent", r"(?i)deadline ?exceeded|(?:connection|i/o) (?:timed out|timeout)|an operation .*already",
        (_("the storage does not answer in time"), "")),
)  # fmt: skip
_CORRECT = _("Ask your admin to create what is missing, or to correct the environment.")
_OF_CONTROLLERS = Expression(
    r'"(?:[^"/]+/)?(?:kube-root-ca\.crt|openshift-service-ca\.crt|istio-ca-root-cert)" not found'
)
_ASK_CONTROLLER = _(
    "Ask an operator to look at the controller that puts it into every namespace: nobody creates it by hand."
)


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
    """Explain a container that refers to a ConfigMap or Secret that is not there, or not read yet; None for any other."""
    evidence, missing = quoted(f"{reason}: {message}"), _missing(message)
    sentence = _("{program} cannot be started: {missing}.", program=subject, missing=missing)
    config = Diagnosis("config", sentence, "problem", "admin", _CORRECT, evidence) if missing else None
    return _not_read(message, evidence) or config


def explain_mounts(events: Sequence[Event], waited: timedelta, cluster: str = "") -> Diagnosis:
    """Explain volumes that cannot be attached or mounted, by events about that, oldest first. `cluster` is the id of the pod's. Of two that
    have a cause each, both are named; the kubelet tries again every two minutes, while a Multi-Attach error is said once."""
    messages, newest = [event.message for event in events], events[-1].last_seen
    telling = most_telling(messages)
    why = _explain_mount(telling, messages[-1], waited, cluster)
    of_others = [
        event.message
        for event in events
        if core_words(event.message) and _volume(event.message) not in ("", _volume(telling))
        if ATTACHED.find(event.message) or (event.last_seen and newest and newest - event.last_seen < _LASTS)
    ]
    other = _explain_mount(most_telling(of_others), of_others[-1], waited, cluster) if of_others else why
    return together(why, other) if other is not why and why.severity == other.severity == "problem" else why


def _explain_mount(message: str, newest: str, waited: timedelta, cluster: str) -> Diagnosis:
    evidence = quoted(message, newest)
    if owned := _OWNERSHIP.search(message):
        files = _(", {number:,} so far", number=int(owned[1])) if owned[1] else ""
        sentence = _("The node changes the owner of all files of a volume before the start{files}.", files=files)
        step = _("Nothing to do: it continues by itself. Fewer files shorten it; ask your admin for OnRootMismatch.")
        return Diagnosis("preparing", sentence, "wait", "", step, evidence)
    if unread := _not_read(message, evidence):
        return unread
    name = _volume(message)
    if file := _MISSING_FILE.search(message):  # the message names the volume, not what it is made from
        sentence = _("The {kind} of volume {name} has no key {key}, so the volume cannot be mounted.")
        sentence = sentence.format(kind=_KINDS[file[1]], name=name or _("(unknown)"), key=file[2])
        return Diagnosis("config", sentence, "problem", "admin", _CORRECT, evidence)
    if missing := _missing(message):
        sentence = _("{missing}, so volume {name} cannot be mounted.", missing=missing, name=name or _("(unknown)"))
        return Diagnosis("config", sentence, "problem", *_who_creates(message), evidence)
    ours = OURS.get(name, "")
    what = capitalised(ours) or (_("Volume {name}", name=name) if name else _("A volume"))
    if attached := ATTACHED.find(message):
        key, (where, who, step), match = attached
        pods = _pods_in_words(match, are_counted=key == "in-use-elsewhere")
        if cluster and cluster in match[0]:
            who, step = "admin", _SEVERAL_NODES
        singular = _("{what} is {where}, and such a volume can be attached to one node at a time.")
        several = _("{what} are {where}, and such a volume can be attached to one node at a time.")
        sentence = ngettext(singular, several, 2 if ours else 1, what=what, where=where.format(pods=pods))
        return Diagnosis("volume_mount", sentence, "problem", who, step.format(pods=pods), evidence)
    cause = WHY_NOT_MOUNTED.find(message)
    key, (words, step) = cause[:2] if cause else ("", ("{says}", ""))
    named = next(filter(None, cause[2].groups()), "") if cause else ""
    words = words.format(driver=named, says=core_words(message))
    why = f": {words}" if words else ""
    yet = "" if step or waited > _LASTS else _(" yet")
    sentence = _("{what} cannot be attached to the node{yet}{why}.", what=what, yet=yet, why=why)
    if "MountVolume." in message and "WaitForAttach" not in message:
        sentence = _("{what} cannot be mounted on the node{yet}{why}.", what=what, yet=yet, why=why)
    lasts = _("It is tried again, for {time} so far: ask an operator to look at the storage.", time=duration(waited))
    step = step or (lasts if waited > _LASTS else _("If it lasts, ask an operator."))
    return Diagnosis("volume_mount", sentence, "problem", _WHO.get(key, "operator"), step, evidence)


# The attach-detach controller's words: it names the pods of the same namespace, and counts those of others. Without a pod, the other node
# has not let the volume go, and a lost node never does.
ATTACHED = RuleTable[tuple[str, Who, str]](
    ("in-use", r"already used by pod\(s\) (.+?)(?: and \d+ pod\(s\) in different namespaces)?\s*$", (_("in use on another node by {pods}"),
     "you", _("Stop {pods} first; if that node is lost, ask an operator to detach the volume."))),
    ("in-use-elsewhere", r"(\d+) pod\(s\) in different namespaces", (
        _("in use on another node by {pods} of another namespace"), "operator", _("Ask an operator what uses it there."))),
    ("attached", r"Multi-Attach|already exclusively attached", (_("still attached to another node"), "operator",
        _("It is detached by itself when that node lets it go; if it lasts, ask an operator whether that node is lost."))),
)  # fmt: skip
_SEVERAL_NODES = _("Its pods are on several nodes: ask your admin for storage that several can use (ReadWriteMany).")


def _pods_in_words(match: Match, *, are_counted: bool) -> str:
    if are_counted:
        return plural(int(match[1]), "pod", "pods")
    names = [name.strip() for text in match.groups() for name in text.split(",")]
    return ngettext("pod {names}", "pods {names}", len(names), names=listed(names or [""]))


def _not_read(message: str, evidence: tuple[str, ...]) -> Diagnosis | None:
    """Explain a ConfigMap or Secret that the node has not read yet; it tries again at once, so this is no problem of the pod."""
    if (match := _NOT_READ.search(message)) is None:
        return None
    name, kind = _volume(message), _KINDS.get((match[1] or "").lower(), _("ConfigMap or Secret"))
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


def _who_creates(message: str) -> tuple[Who, str]:
    """Return who creates what is missing, and how; some ConfigMaps a controller puts into every namespace."""
    return ("operator", _ASK_CONTROLLER) if _OF_CONTROLLERS.search(message) else ("admin", _CORRECT)


def _volume(message: str) -> str:
    """Return the name of the first volume that the message names, "" for none."""
    match = _VOLUME.search(message)
    return (match[1] or match[2]) if match else ""
