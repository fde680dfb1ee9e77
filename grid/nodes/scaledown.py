"""Whether and when the cluster autoscaler would remove a node, and what keeps it; pure.

A node is removable when its pods request less than the threshold of its allocatable, all its pods can be moved, nothing forbids it, and all
this has been true for the unneeded time. The autoscaler taints a node when it first finds it unneeded; the taint's value is that moment in
Unix time. Only the autoscaler knows whether the pods fit on other nodes, and neither disruption budgets nor volumes that it cannot move are
read here, so a node that looks removable may be kept; only a taint gives a time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from grid.core import labels
from grid.core.translation import gettext as _
from grid.diagnosis.requests import Amounts, amounts, has_ended, is_own, pod_requests, total
from grid.kube.objects import Node, Pod, Taint, is_ready
from grid.kube.pools import NodeGroup

_NOT_READY = "node.kubernetes.io/not-ready"  # a new node has it for some seconds after it is ready
_MOVABLE_OWNERS = frozenset({"ReplicaSet", "ReplicationController", "StatefulSet", "Job"})


@dataclass(frozen=True, slots=True)
class ScaleDownRules:
    """The scale-down settings of the autoscaler, as the central configuration repeats them."""

    threshold_percent: int
    unneeded_seconds: int


@dataclass(frozen=True, slots=True)
class ScaleDown:
    """The verdict on one node. `at` is when a marked node can be removed; `sentence` says why or why not."""

    verdict: Literal["removing", "marked", "unneeded", "kept", "unmanaged"]
    sentence: str
    at: datetime | None = None


def scale_down(
    node: Node, pods: Sequence[Pod], *, group: NodeGroup | None, group_size: int, rules: ScaleDownRules
) -> ScaleDown:
    """Return the verdict on the node with `pods` on it; `group` is None when the autoscaler does not manage its pool."""
    taints = {taint.key: taint for taint in node.spec.taints}
    if labels.TO_BE_DELETED_TAINT in taints:
        return ScaleDown("removing", _("The autoscaler is removing it now."))
    if any(key in taints for key in labels.KARPENTER_DISRUPTED_TAINTS):
        return ScaleDown("removing", _("Karpenter is removing it now."))
    if labels.KARPENTER_POOL in node.metadata.labels:
        return ScaleDown("unmanaged", _("Karpenter decides when it goes, by the rules of its NodePool."))
    if group is None:
        return ScaleDown("unmanaged", _("Kept: fixed size."))
    if reason := kept_because(node, pods, group=group, group_size=group_size, rules=rules):
        return ScaleDown("kept", reason)
    if mark := taints.get(labels.DELETION_CANDIDATE_TAINT):
        since = _moment(mark)
        at = since + timedelta(seconds=rules.unneeded_seconds) if since else None
        return ScaleDown("marked", _("Unneeded; it can be removed"), at)
    return ScaleDown("unneeded", _("Lightly used; the autoscaler has not marked it yet."))


def kept_because(
    node: Node, pods: Sequence[Pod], *, group: NodeGroup, group_size: int, rules: ScaleDownRules
) -> str | None:
    """Return a sentence with the first reason why the node is kept; None when there is none."""
    if node.metadata.annotations.get(labels.SCALE_DOWN_DISABLED, "").lower() == "true":
        return _("Kept: its annotation scale-down-disabled forbids its removal.")
    if not is_ready(node) or any(taint.key == _NOT_READY for taint in node.spec.taints):
        return _("Kept for now: it is not ready, so the autoscaler waits before it decides.")
    if group_size <= group.minimum:
        return _("Kept: the pool is at its minimum of {minimum}.", minimum=group.minimum)
    running = [pod for pod in pods if not has_ended(pod)]
    what, share = busiest(total(map(pod_requests, running)), amounts(node.status.allocatable))
    if share >= (threshold := rules.threshold_percent):
        sentence = _("Kept: {share} % of {resource} requested; removable below {threshold_percent} %.")
        return sentence.format(share=int(share), resource=what, threshold_percent=threshold)
    for pod in running:
        if reason := _unmovable_because(pod):
            return _("Kept: pod {name} cannot be moved: {reason}.", name=pod.metadata.name, reason=reason)
    return None


def busiest(requested: Amounts, allocatable: Amounts) -> tuple[str, float]:
    """Return the most requested resource and its percentage of allocatable; on a node with GPUs only they count, as for the autoscaler."""
    if allocatable.gpus:
        return _("GPUs"), 100 * requested.gpus / allocatable.gpus
    cpu = 100 * requested.cpu / allocatable.cpu if allocatable.cpu else 0.0
    memory = 100 * requested.memory / allocatable.memory if allocatable.memory else 0.0
    return ("CPU", cpu) if cpu >= memory else (_("memory"), memory)


def _unmovable_because(pod: Pod) -> str | None:
    safe = pod.metadata.annotations.get(labels.SAFE_TO_EVICT, "").lower()
    owner = next((owner for owner in pod.metadata.owner_references if owner.controller), None)
    if is_own(pod) or safe == "true":
        return None
    if safe == "false":
        return _("its annotation safe-to-evict is false")
    if owner is None or owner.kind not in _MOVABLE_OWNERS:
        return _("no controller would create it again elsewhere")
    if pod.metadata.namespace == "kube-system":
        return _("it is a pod of kube-system")
    return None


def _moment(mark: Taint) -> datetime | None:
    """Return the taint's value as a Unix time, or the time at which the taint was added when the value is none."""
    try:
        return datetime.fromtimestamp(int(mark.value), UTC)
    except (ValueError, OverflowError, OSError):
        return mark.time_added
