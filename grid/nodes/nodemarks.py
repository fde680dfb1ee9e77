"""What a taint or label that an operator adds to a node, or removes, changes: its pods, its pool, the tiers that fit; pure.

Kubernetes' own marks, and those of node autoscalers, follow what they see; changing them by hand would be undone, or have them act on
something that is not so.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from grid.core.labels import DELETION_CANDIDATE_TAINT, PLATFORM_NODE, PLATFORM_POOL, SIMULATED, TO_BE_DELETED_TAINT
from grid.core.regexes import Expression
from grid.core.translation import gettext as _
from grid.diagnosis.nodeshapes import NodeShape
from grid.diagnosis.places import taint_text, tolerates
from grid.diagnosis.requests import has_ended
from grid.kube.objects import Node, Pod, RawObject, Taint
from grid.nodes.drain import DisruptionBudget
from grid.tiers.tierdoctor import TierRequest, pack

TAINT, UNTAINT, LABEL, UNLABEL = "taint", "untaint", "label", "unlabel"
ACTIONS = (TAINT, UNTAINT, LABEL, UNLABEL)
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NAME = Expression(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_DOMAIN = Expression(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_DOMAIN_LONGEST = 253
_AUTOSCALERS = frozenset({DELETION_CANDIDATE_TAINT, TO_BE_DELETED_TAINT})


@dataclass(frozen=True, slots=True)
class Mark:
    """A taint or label to add or remove; `effect` is a taint's alone. A node has one taint of a key and effect, one label of a key."""

    action: str
    key: str
    value: str = ""
    effect: str = ""

    @property
    def is_taint(self) -> bool:
        return self.action in (TAINT, UNTAINT)

    @property
    def adds(self) -> bool:
        return self.action in (TAINT, LABEL)

    @property
    def taint(self) -> Taint:
        return Taint(key=self.key, value=self.value, effect=self.effect)

    def __str__(self) -> str:
        if self.is_taint:
            return taint_text(self.taint)
        return f"{self.key}={self.value}" if self.adds else self.key


def refusal(mark: Mark, node: Node) -> str | None:
    """Return why the mark is refused; None when it is not."""
    if mark.action not in ACTIONS or (mark.is_taint and mark.effect not in EFFECTS):
        return _("Choose what to add or remove.")
    return _bad_name(mark) or whose_mark(mark.key) or _changes_nothing(mark, node)


def whose_mark(key: str) -> str | None:
    """Return a sentence about who else keeps the marks of this key; None when operators may change them."""
    domain = key.rpartition("/")[0]
    if any(domain == kept or domain.endswith(f".{kept}") for kept in ("kubernetes.io", "k8s.io")):
        if key == "node.kubernetes.io/unschedulable":
            return _("Kubernetes keeps this taint on cordoned nodes: cordon or uncordon the node instead.")
        return _(
            "Marks of {domain} are kept by Kubernetes itself and follow the node's state, so they are not changed by hand.",
            domain=domain,
        )
    if key in _AUTOSCALERS or domain == "karpenter.sh" or domain.endswith(".karpenter.sh"):
        return _("The node autoscaler keeps this mark for the nodes that it removes, so it is not changed by hand.")
    if key == SIMULATED:
        return _("This label tells the embedded cluster which nodes are real, so it is not changed by hand.")
    return None


def _bad_name(mark: Mark) -> str | None:
    domain, slash, name = mark.key.rpartition("/")
    if slash and (len(domain) > _DOMAIN_LONGEST or not _DOMAIN.fullmatch(domain)):
        return _("Before the slash, a key has a domain name in small letters, such as example.com/team.")
    if not _NAME.fullmatch(name):
        return _(
            "A key has 1 to 63 letters, digits, dots, dashes and underscores, and begins and ends with a letter or digit."
        )
    if mark.adds and mark.value and not _NAME.fullmatch(mark.value):
        return _(
            "A value has up to 63 letters, digits, dots, dashes and underscores, and begins and ends with a letter or digit."
        )
    return None


def _changes_nothing(mark: Mark, node: Node) -> str | None:
    if with_mark(node, mark) != node:
        return None
    if mark.is_taint:
        return _("The node has this taint already.") if mark.adds else _("The node has no such taint.")
    return _("The node has this label already.") if mark.adds else _("The node has no such label.")


def with_mark(node: Node, mark: Mark) -> Node:
    """Return the node as it is after the change."""
    if not mark.is_taint:
        labels = {key: value for key, value in node.metadata.labels.items() if key != mark.key}
        labels |= {mark.key: mark.value} if mark.adds else {}
        return msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, labels=labels))
    if mark.adds and any(_same(taint, mark) and taint.value == mark.value for taint in node.spec.taints):
        return node
    taints = tuple(taint for taint in node.spec.taints if not _same(taint, mark)) + ((mark.taint,) if mark.adds else ())
    return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, taints=taints))


def _same(taint: Taint, mark: Mark) -> bool:
    return (taint.key, taint.effect) == (mark.key, mark.effect)


def patch_with(raw: RawObject, mark: Mark) -> RawObject:
    """Return the merge patch, which the API server refuses (Conflict) for any other version than `raw`, the whole node."""
    meta: RawObject = {"resourceVersion": raw["metadata"].get("resourceVersion")}
    if not mark.is_taint:
        return {"metadata": {**meta, "labels": {mark.key: mark.value if mark.adds else None}}}
    stored = raw.get("spec", {}).get("taints") or ()
    taints = [taint for taint in stored if (taint.get("key"), taint.get("effect")) != (mark.key, mark.effect)]
    if mark.adds:
        taints.append({"key": mark.key, "effect": mark.effect, **({"value": mark.value} if mark.value else {})})
    return {"metadata": meta, "spec": {"taints": taints or None}}


def fingerprint(node: Node) -> str:
    """Return what identifies the node's labels and taints that somebody looked at. Its resource version would not do: a kubelet's report,
    at least every five minutes, changes that too."""
    taints = sorted(taint_text(taint) for taint in node.spec.taints)
    marks = [node.metadata.uid, sorted(node.metadata.labels.items()), taints, node.spec.unschedulable]
    return hashlib.sha256(json.dumps(marks).encode()).hexdigest()[:16]


def is_platform(node: Node, pool_label: str) -> bool:
    labels = node.metadata.labels
    return labels.get(PLATFORM_NODE) == "true" or labels.get(pool_label) == PLATFORM_POOL


@dataclass(frozen=True, slots=True)
class Eviction:
    """A pod that a NoExecute taint evicts, and after how many seconds."""

    pod: Pod
    after: int = 0


def evictions(pods: Iterable[Pod], taint: Taint) -> list[Eviction]:
    """Return which pods the taint evicts, those of DaemonSets too. Of a pod's tolerations the first that covers the taint counts."""
    evicted = []
    for pod in pods if taint.effect == "NoExecute" else ():
        covering = next((toleration for toleration in pod.spec.tolerations if tolerates((toleration,), taint)), None)
        seconds = covering.toleration_seconds if covering is not None else 0
        if not has_ended(pod) and pod.metadata.deletion_timestamp is None and seconds is not None:
            evicted.append(Eviction(pod, max(0, seconds)))
    return evicted


def budgets_of(pods: Iterable[Pod], budgets: Sequence[DisruptionBudget]) -> list[str]:
    """Return the names of the disruption budgets that count one of the pods: a NoExecute taint evicts without asking them."""
    return sorted({budget.metadata.name for pod in pods for budget in budgets if budget.counts(pod)})


def selected_by_label(pods: Iterable[Pod], mark: Mark) -> list[Pod]:
    """Return the node's pods that ask for another value of the label than it has afterwards."""
    value = mark.value if mark.adds else None
    return [pod for pod in pods if not has_ended(pod) and pod.spec.node_selector.get(mark.key, value) != value]


@dataclass(frozen=True, slots=True)
class NodePlace:
    """A node's pool ("" for none and for platform nodes) and its shape."""

    pool: str
    shape: NodeShape


def tiers_changed(
    tiers: Mapping[str, TierRequest], others: Mapping[str, Sequence[NodeShape]], before: NodePlace, after: NodePlace
) -> tuple[list[str], list[str]]:
    """Return the names of the tiers that fit no node of their pool afterwards and did before, and of those the other way round. `others`
    are the shapes of all other nodes, by pool; each node is taken as otherwise empty."""
    lost, gained = list[str](), list[str]()
    for name, request in tiers.items():
        if request.pool not in (before.pool, after.pool) or _fits(request, others.get(request.pool, ())):
            continue
        fitted = before.pool == request.pool and _fits(request, (before.shape,))
        fits = after.pool == request.pool and _fits(request, (after.shape,))
        if fitted != fits:
            (lost if fitted else gained).append(name)
    return lost, gained


def _fits(request: TierRequest, shapes: Iterable[NodeShape]) -> bool:
    return any(pack(request, shape).takes for shape in shapes)
