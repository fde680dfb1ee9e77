"""What a drain of a node evicts, what stays, what does not come back, and which disruption budget forbids an eviction now; pure.

As `kubectl drain` decides: pods of a DaemonSet and static pods stay, everything else that has not ended is evicted. The Eviction API has
the last word on budgets; here is what it would say from what the budgets tell of themselves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from grid.core.labels import APP_COMPONENT, HEAD, WORKER
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.diagnosis.requests import has_ended, is_own, is_placeholder
from grid.diagnosis.selectors import matches_labels
from grid.kube.objects import Metadata, Pod
from grid.kube.slim import LabelSelector, Slim

Fate = Literal["evicted", "stays", "ended"]


class BudgetSpec(Slim, frozen=True, kw_only=True):
    selector: LabelSelector | None = None


class BudgetStatus(Slim, frozen=True, kw_only=True):
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0


class DisruptionBudget(Slim, frozen=True, kw_only=True):
    """A PodDisruptionBudget."""

    metadata: Metadata
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()

    def counts(self, pod: Pod) -> bool:
        is_beside = self.metadata.namespace == pod.metadata.namespace
        return is_beside and matches_labels(self.spec.selector, pod.metadata.labels)


class EvictedVolume(Slim, frozen=True, kw_only=True):
    name: str = ""
    empty_dir: dict[str, Any] | None = None


class Volumes(Slim, frozen=True, kw_only=True):
    volumes: tuple[EvictedVolume, ...] = ()


class EvictedData(Slim, frozen=True, kw_only=True):
    """The volumes of a pod, of which `Pod` keeps only those with a claim."""

    metadata: Metadata
    spec: Volumes = Volumes()


@dataclass(frozen=True, slots=True)
class DrainedPod:
    """One pod of the node. `why` says why it stays or what becomes of it; `comes_back` is False for a pod that no controller creates
    again; `lost` names its emptyDir volumes on disk; `forbids` says which budget forbids its eviction now, None for none."""

    pod: Pod
    fate: Fate
    why: str
    comes_back: bool = True
    lost: tuple[str, ...] = ()
    forbids: str | None = None


def is_evicted(pod: Pod) -> bool:
    """Return True for a pod that a drain waits for."""
    return not is_own(pod) and not has_ended(pod)


def drain_plan(
    pods: Sequence[Pod], volumes: Sequence[EvictedData], budgets: Sequence[DisruptionBudget]
) -> list[DrainedPod]:
    """Return what becomes of each pod, those that are evicted first."""
    volumes_of = {data.metadata.key: data.spec.volumes for data in volumes}
    planned = [_planned(pod, volumes_of.get(pod.metadata.key, ()), budgets) for pod in pods]
    order = {"evicted": 0, "stays": 1, "ended": 2}
    return sorted(planned, key=lambda drained: (order[drained.fate], drained.pod.metadata.key))


def _planned(pod: Pod, volumes: Sequence[EvictedVolume], budgets: Sequence[DisruptionBudget]) -> DrainedPod:
    if is_own(pod):
        why = _("It is a static pod of the node, and ends with the node.")
        if _controller(pod) == "DaemonSet":
            why = _("It is a DaemonSet's pod, and ends with the node.")
        return DrainedPod(pod, "stays", why)
    if has_ended(pod):
        return DrainedPod(pod, "ended", _("It has ended."))
    directories = ((each.name, each.empty_dir) for each in volumes if each.empty_dir is not None)
    lost = tuple(name for name, directory in directories if directory.get("medium") != "Memory")
    comes_back, why = _what_follows(pod)
    return DrainedPod(pod, "evicted", why, comes_back, lost, forbidding(pod, budgets))


def _what_follows(pod: Pod) -> tuple[bool, str]:
    component = pod.metadata.labels.get(APP_COMPONENT)
    if is_placeholder(pod):
        return True, _(
            "A placeholder of warm-up hours or of a rush plan; the controller creates another while they last."
        )
    owner = _controller(pod)
    if owner in ("", "ConfigMap"):
        return False, _("No controller creates it again.")
    if component == HEAD:
        return True, _("A new head starts elsewhere; what was in the old one's memory is lost.")
    if component == WORKER:
        return True, _("Another worker starts elsewhere.")
    return True, _("Its {owner} creates another one elsewhere.", owner=owner)


def _controller(pod: Pod) -> str:
    return next((owner.kind for owner in pod.metadata.owner_references if owner.controller), "")


def forbidding(pod: Pod, budgets: Sequence[DisruptionBudget]) -> str | None:
    """Return which budget forbids the pod's eviction now, as a sentence; None when none does. One that waits to start is always evicted."""
    meta = pod.metadata
    if pod.status.phase == "Pending" or meta.deletion_timestamp is not None:
        return None
    matching = [budget for budget in budgets if budget.counts(pod)]
    if len(matching) > 1:
        names = ", ".join(sorted(budget.metadata.name for budget in matching))
        return _("It has more than one PodDisruptionBudget ({names}), so Kubernetes refuses to evict it.", names=names)
    for budget in matching:
        if (status := budget.status).disruptions_allowed < 1:
            healthy, current = plural(status.desired_healthy, "healthy pod", "healthy pods"), status.current_healthy
            sentence = _(
                "The PodDisruptionBudget {name} allows no eviction now: it needs {healthy_pods} and has {current_healthy}."
            )
            return sentence.format(name=budget.metadata.name, healthy_pods=healthy, current_healthy=current)
    return None
