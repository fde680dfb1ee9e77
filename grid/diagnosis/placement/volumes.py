"""The claims of a pod without a node: whether each has a volume, and from which nodes that can be reached."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from grid.core.quantity import format_bytes, whole
from grid.core.regexes import Expression
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import capitalised, folded, listed
from grid.diagnosis.complaints import ASK_ABOUT_VOLUME
from grid.diagnosis.diagnosis import Diagnosis, Who, quoted
from grid.diagnosis.held import is_settled
from grid.diagnosis.mounts import NO_CREDENTIALS, NO_RIGHTS, OURS, claim_words
from grid.diagnosis.placement.surroundings import SchedulingContext
from grid.diagnosis.rules import RuleTable, core_words, most_telling
from grid.kube.objects import Pod, Volume, VolumeClaim
from grid.kube.slim import NodeTerms

_UNBOUND = "unbound immediate PersistentVolumeClaims"
_OF_CLASS = "storageclass.storage.k8s.io"
_NO_CLASS = _OF_CLASS + ' "{}" not found'
_NO_VOLUME = "didn't find available persistent volumes to bind"
_NOT_IN_TIME = "binding volumes: "  # the scheduler has chosen a node, and waited ten minutes for the volume there
_PROVISIONER = Expression(r"external provisioner ['\"]([^'\"]+)['\"]")
# What a storage driver says of a volume that it did not make, who can act, and how. The quotas are of Compute Engine, EC2, Cinder and
# Azure; one of requests per minute is none of disks.
_NOT_MADE = RuleTable[tuple[str, Who, str]](
    ("quota", r"(?i)quota_?exceeded|(?:Volume|System|IOPS)LimitExceeded|exceed\w* (?:allowed|approved) .*quota|maximum number of", (
        _("{sentence} The quota for volumes is used up: {says}."), "operator",
        _("Ask an operator to raise the quota, or to delete volumes that nobody needs."))),
    ("small", r"is less than the size \d+ for the source|smaller than (?:the )?(?:source|snapshot)", (
        _("{sentence} It is smaller than the volume or snapshot that is copied into it."), "admin",
        _("Ask your admin for a claim at least as large as that."))),
    # EC2 removes a new disk whose key it may not use, and then knows no such volume.
    ("key", r"InvalidVolume\.NotFound|(?i:\bkms)", (_("{sentence} The disk cannot be encrypted with its key, as it seems: {says}."),
     "operator", _("Ask an operator whether the storage driver may use the key that encrypts the disks (KMS)."))),
    ("policy", r"(?i)disallowed ?by ?policy|explicit deny|violates constraint|constraints/", (
        _("{sentence} A policy of the cloud forbids it: {says}."), "operator",
        _("Ask an operator for a storage class that the policy allows, or for an exception."))),
    ("rights", f"(?i:{NO_CREDENTIALS})|{NO_RIGHTS}", (_("{sentence} The storage driver has no account that may make it: {says}."),
     "operator", _("Ask an operator to give the storage driver an account with that right."))),
    ("silent", r"DeadlineExceeded", (_("{sentence} The storage does not answer in time."), "admin", ASK_ABOUT_VOLUME)),
    ("no-space", r"(?i)(?:not (?:have )?enough|insufficient|no) (?:free |disk )?(?:space|storage|capacity)", (
        _("{sentence} The storage has no room for a volume of this size: {says}."), "admin",
        _("Ask your admin for a smaller volume, or to make room in the storage."))),
)  # fmt: skip
_UNKNOWN: tuple[str, Who, str] = _("{sentence} Its storage driver says: {says}."), "admin", ASK_ABOUT_VOLUME


@dataclass(frozen=True, slots=True)
class UsedClaim:
    """A claim that a pod uses; `claim` is None when it does not exist."""

    name: str
    words: str
    is_ephemeral: bool
    claim: VolumeClaim | None

    @property
    def number(self) -> int:
        """1 when its words are a singular, 2 when they are a plural."""
        return 2 if self.words in OURS.values() else 1

    @property
    def is_deleted(self) -> bool:
        return self.claim is not None and self.claim.metadata.deletion_timestamp is not None


def reachable_from(pod: Pod, scheduling: SchedulingContext) -> dict[str, NodeTerms]:
    """Return where the pod's volumes can be reached, by what they are in words; without those for which no place is known."""
    reachable = {}
    for used in _used(pod, scheduling):
        volume = (scheduling.volumes or {}).get(used.claim.spec.volume_name) if used.claim else None
        affinity = volume.spec.node_affinity if volume else None
        if affinity is not None and affinity.required is not None:
            reachable[used.words] = affinity.required
    return reachable


def explain_claims(pod: Pod, scheduling: SchedulingContext, message: str, *, now: datetime) -> Diagnosis | None:
    """Explain the first claim that keeps the pod from every node; None when none does, or when the claims are not known. A claim without
    a volume is no reason by itself: some get their volume when the pod gets its node. The scheduler says when it is one."""
    # A pod with a nominated node and no word of the scheduler waits for what is made there.
    is_chosen = bool(pod.status.nominated_node_name) and not message
    unbound = is_chosen or any(words in message for words in (_UNBOUND, _NO_VOLUME, _NOT_IN_TIME))
    for used in _used(pod, scheduling):
        if (classless := _without_class(used, scheduling, message)) is not None:
            return classless
        sentence = _problem(used, scheduling, unbound=unbound, none_available=_NO_VOLUME in message)
        if not sentence:
            continue
        events = scheduling.claim_events(used.claim) if used.claim is not None else ()
        says = events[-1].message if events else ""
        # The controller says again and again that it waits for the provisioner; what that said before tells more.
        failed = [
            each.message for each in events if each.reason == "ProvisioningFailed" and _OF_CLASS not in each.message
        ]
        who, step, evidence = _UNKNOWN[1], ASK_ABOUT_VOLUME, quoted(message)
        if used.is_deleted:
            step = _("Its deletion cannot be undone: ask your admin for a new claim, and who deleted this one.")
        elif failed:
            says = most_telling(failed)
            evidence = quoted(message, says, failed[-1])
            words, who, step = _NOT_MADE.meaning(says) or _UNKNOWN
            sentence = words.format(sentence=sentence, says=core_words(says) or folded(says))
        elif not is_settled(pod, now) and (used.claim.status.phase != "Lost" if used.claim else used.is_ephemeral):
            step = _("Nothing to do: it is being made.")
            return Diagnosis("volume", sentence, "wait", "", step, evidence, link="project", is_normal=True)
        elif provisioner := _PROVISIONER.search(says):
            who, evidence = "operator", quoted(message, says)
            step = _("Ask an operator whether the provisioner {name} runs.", name=provisioner[1])
        if _NOT_IN_TIME in message:
            sentence = _("{sentence} A node was found, but the volume was not made in time.", sentence=sentence)
        return Diagnosis("volume", sentence, "problem", who, step, evidence, link="project", is_normal=False)
    return None


def _without_class(used: UsedClaim, scheduling: SchedulingContext, message: str) -> Diagnosis | None:
    """Explain a claim for which no volume is made, because its storage class does not exist or it has none; None when nothing says so.
    What exists decides; where that may not be listed, Kubernetes' last word on the claim does."""
    claim, classes = used.claim, scheduling.classes
    if claim is None or claim.spec.volume_name or used.is_deleted:
        return None
    name, events = claim.spec.storage_class_name, scheduling.claim_events(claim)
    last = events[-1].message if events else ""
    if name:
        # An admin's own volumes may name a class that has no object; what they lack is said elsewhere.
        has_volumes = any(volume.spec.storage_class_name == name for volume in (scheduling.volumes or {}).values())
        is_missing = _NO_CLASS.format(name) in last if classes is None else name not in classes and not has_volumes
        why = _("there is no storage class {name}", name=name)
        step = _("Ask your admin to create the class{again}.")
    else:
        has_default = classes is None or any(storage_class.is_default for storage_class in classes.values())
        is_missing = name is None and _UNBOUND in message and not has_default
        why = _("it names no storage class, and the cluster has no default one")
        step = _("Ask your admin to create a default class{again}.")
        if classes:
            step = _("Ask your admin to make a class the default{again}.")
    if not is_missing:
        return None
    again = ""
    if classes:
        again = _(", or to make the claim again with one that exists: {classes}", classes=listed(sorted(classes)))
    sentence, step, evidence = _without(used, why), step.format(again=again), quoted(message, last)
    return Diagnosis("storage_class", sentence, "problem", "admin", step, evidence, link="project", is_normal=False)


def _without(used: UsedClaim, why: str) -> str:
    what = capitalised(used.words)
    return ngettext("{what} has no volume: {why}.", "{what} have no volume: {why}.", used.number, what=what, why=why)


def _problem(used: UsedClaim, scheduling: SchedulingContext, *, unbound: bool, none_available: bool) -> str:
    what, claim = capitalised(used.words), used.claim
    if claim is None:
        if used.is_ephemeral:
            return _("{what} is not made yet: there is no claim {name}.", what=what, name=used.name)
        if used.number == 1:
            return _("{what} does not exist.", what=what)
        return _("{what} cannot be used: the volume claim {name} does not exist.", what=what, name=used.name)
    if used.is_deleted:
        return _("{what} cannot be used: the volume claim {name} is being deleted.", what=what, name=used.name)
    if claim.status.phase == "Lost":
        singular = _("{what} has lost the volume {volume}, which no longer exists.")
        several = _("{what} have lost the volume {volume}, which no longer exists.")
        return ngettext(singular, several, used.number, what=what, volume=claim.spec.volume_name)
    if not claim.spec.volume_name and unbound:
        if none_available and scheduling.volumes is not None:
            return _without(used, _why_none(claim, scheduling.volumes.values()))
        storage_class = claim.spec.storage_class_name
        named = _(" (storage class {storage_class})", storage_class=storage_class) if storage_class else ""
        lack = _("volume that a node could reach") if none_available else _("volume yet")
        forms = _("{what} has no {lack}{named}."), _("{what} have no {lack}{named}.")
        return ngettext(*forms, used.number, what=what, lack=lack, named=named)
    return ""


def _why_none(claim: VolumeClaim, volumes: Iterable[Volume]) -> str:
    """Return why no volume that exists serves the claim, which no provisioner makes one for."""
    name, asked = claim.spec.storage_class_name or "", claim.spec.resources.requests.get("storage", "")
    of_class = _(" of the storage class {name}", name=name) if name else _(" without a storage class")
    free = [volume for volume in volumes if volume.spec.storage_class_name == name and volume.spec.claim_ref is None]
    if not free:
        return _("there is no free one{of_class}", of_class=of_class)
    sizes = [whole(volume.spec.capacity.get("storage", "0")) for volume in free]
    if asked and (largest := max(sizes)) < whole(asked):
        words = _("it asks for {asked}, and the largest free one{of_class} has {largest}")
        return words.format(asked=format_bytes(whole(asked)), of_class=of_class, largest=format_bytes(largest))
    return _("no node that may take this reaches a free one{of_class} that is large enough", of_class=of_class)


def _used(pod: Pod, scheduling: SchedulingContext) -> Iterator[UsedClaim]:
    if scheduling.claims is None:
        return
    for volume in pod.spec.volumes:
        name = volume.claim_of(pod.metadata.name)
        claim = scheduling.claims.get(f"{pod.metadata.namespace}/{name}")
        yield UsedClaim(name, claim_words(volume, name), volume.ephemeral is not None, claim)
