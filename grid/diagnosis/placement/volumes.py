"""The claims of a pod without a node: whether each has a volume, and from which nodes that can be reached."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from grid.diagnosis.claims import OURS, claim_words
from grid.diagnosis.diagnosis import Diagnosis, quoted
from grid.diagnosis.held import is_settled
from grid.diagnosis.placement.surroundings import Surroundings
from grid.kube.constraints import NodeTerms
from grid.kube.objects import Pod, StorageClass, Volume, VolumeClaim
from grid.quantity import format_bytes, whole
from grid.wording import listed

_UNBOUND = "unbound immediate PersistentVolumeClaims"
_NO_CLASS = 'storageclass.storage.k8s.io "{}" not found'
_NO_VOLUME = "didn't find available persistent volumes to bind"


@dataclass(frozen=True, slots=True)
class UsedClaim:
    """A claim that a pod uses; `claim` is None when it does not exist."""

    name: str
    words: str
    is_ephemeral: bool
    claim: VolumeClaim | None


def reachable_from(pod: Pod, around: Surroundings) -> dict[str, NodeTerms]:
    """Return where the pod's volumes can be reached, by what they are in words; without those for which no place is known."""
    found = {}
    for used in _used(pod, around):
        volume = (around.volumes or {}).get(used.claim.spec.volume_name) if used.claim else None
        affinity = volume.spec.node_affinity if volume else None
        if affinity is not None and affinity.required is not None:
            found[used.words] = affinity.required
    return found


def explain_claims(pod: Pod, around: Surroundings, said: str, *, now: datetime) -> Diagnosis | None:
    """Explain the first claim that keeps the pod from every node; None when none does, or when the claims are not known.

    A claim without a volume is no reason by itself: some get their volume when the pod gets its node. The scheduler says when it is one.
    """
    unbound = _UNBOUND in said or _NO_VOLUME in said
    for used in _used(pod, around):
        if (classless := _without_class(used, around, said)) is not None:
            return classless
        sentence = _problem(used, around, unbound=unbound, none_available=_NO_VOLUME in said)
        if not sentence:
            continue
        waits = not is_settled(pod, now) and (used.claim is not None or used.is_ephemeral)
        if waits:
            step = "Nothing to do: it is being made."
            return Diagnosis("volume", sentence, "wait", "", step, quoted(said), link="project", is_normal=True)
        step = "Ask your admin to look at the volume claim and its storage class."
        return Diagnosis("volume", sentence, "problem", "admin", step, quoted(said), link="project", is_normal=False)
    return None


def _without_class(used: UsedClaim, around: Surroundings, said: str) -> Diagnosis | None:
    """Explain a claim for which no volume is made, because its storage class does not exist or it has none; None when nothing says so.

    What exists decides; where that may not be listed, Kubernetes' last word on the claim does.
    """
    claim, classes = used.claim, around.classes
    if claim is None or claim.spec.volume_name or claim.metadata.deletion_timestamp is not None:
        return None
    name, events = claim.spec.storage_class_name, around.claim_events(claim)
    last = events[-1].message if events else ""
    if name:
        # An admin's own volumes may name a class that has no object; what they lack is said elsewhere.
        has_volumes = any(one.spec.storage_class_name == name for one in (around.volumes or {}).values())
        is_missing = _NO_CLASS.format(name) in last if classes is None else name not in classes and not has_volumes
        why, make = f"there is no storage class {name}", "create the class"
    else:
        is_missing = name is None and _UNBOUND in said and classes is not None and not _has_default(classes)
        why = "it names no storage class, and the cluster has no default one"
        make = "make a class the default" if classes else "create a default class"
    if not is_missing:
        return None
    again = f", or to make the claim again with one that exists: {listed(sorted(classes))}" if classes else ""
    sentence, step = f"{_subject(used)} no volume: {why}.", f"Ask your admin to {make}{again}."
    evidence = quoted(said, last)
    return Diagnosis("storage_class", sentence, "problem", "admin", step, evidence, link="project", is_normal=False)


def _has_default(classes: Mapping[str, StorageClass]) -> bool:
    return any(one.is_default for one in classes.values())


def _subject(used: UsedClaim) -> str:
    return f"{used.words[0].upper()}{used.words[1:]} {'have' if used.words in OURS.values() else 'has'}"


def _problem(used: UsedClaim, around: Surroundings, *, unbound: bool, none_available: bool) -> str:
    words = used.words[0].upper() + used.words[1:]
    subject = _subject(used)
    claim = used.claim
    if claim is None:
        if used.is_ephemeral:
            return f"{words} is not made yet: there is no claim {used.name}."
        return f"{words} cannot be used: the volume claim {used.name} does not exist." if used.words in OURS.values() else (
            f"{words} does not exist."
        )  # fmt: skip
    if claim.metadata.deletion_timestamp is not None:
        return f"{words} cannot be used: the volume claim {used.name} is being deleted."
    if claim.status.phase == "Lost":
        return f"{subject} lost the volume {claim.spec.volume_name}, which no longer exists."
    if not claim.spec.volume_name and unbound:
        if none_available and around.volumes is not None:
            return f"{subject} no volume: {_why_none(claim, around.volumes.values())}."
        named = f" (storage class {claim.spec.storage_class_name})" if claim.spec.storage_class_name else ""
        return f"{subject} no volume{' that a node could reach' if none_available else ' yet'}{named}."
    return ""


def _why_none(claim: VolumeClaim, volumes: Iterable[Volume]) -> str:
    """Return why no volume that exists serves the claim, which no provisioner makes one for."""
    name, asked = claim.spec.storage_class_name or "", claim.spec.resources.requests.get("storage", "")
    of_class = f" of the storage class {name}" if name else " without a storage class"
    free = [one for one in volumes if one.spec.storage_class_name == name and one.spec.claim_ref is None]
    if not free:
        return f"there is no free one{of_class}"
    sizes = [whole(one.spec.capacity.get("storage", "0")) for one in free]
    if asked and (largest := max(sizes)) < whole(asked):
        return (
            f"it asks for {format_bytes(whole(asked))}, and the largest free one{of_class} has {format_bytes(largest)}"
        )
    return f"no node that may take this reaches a free one{of_class} that is large enough"


def _used(pod: Pod, around: Surroundings) -> Iterator[UsedClaim]:
    if around.claims is None:
        return
    for volume in pod.spec.volumes:
        name = volume.claim_of(pod.metadata.name)
        claim = around.claims.get(f"{pod.metadata.namespace}/{name}")
        yield UsedClaim(name, claim_words(volume, name), volume.ephemeral is not None, claim)
