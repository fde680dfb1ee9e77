"""Which nodes take new pods now, which taints keep a pod off them, and what a taint says of its node; pure.

A taint says that its node is still starting, not well, leaving, or kept for other work. Sources: Kubernetes' well-known taints, and the
documentation of those who set the others (Cilium, the CSI drivers and the termination handler of AWS, the cluster autoscaler, Karpenter,
GKE). A key that is not known says nothing of why somebody set it.
"""

from collections.abc import Iterable, Mapping
from typing import Literal

from grid.core.labels import KARPENTER_DISRUPTED_TAINTS, TO_BE_DELETED_TAINT
from grid.core.quantity import is_gpu
from grid.core.translation import gettext as _
from grid.kube.objects import Node, Taint, Toleration, is_ready

_KEEPS_OFF = frozenset({"NoSchedule", "NoExecute"})
# What Kubernetes and the autoscaler put on nodes that take no pods for a while; these come and go with the node's condition.
_OF_CONDITION = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "ToBeDeletedByClusterAutoscaler")

TaintKind = Literal["cordon", "not_ready", "leaving", "control_plane"]

NODE = "node.kubernetes.io"
CORDONED, NOT_READY, UNREACHABLE = f"{NODE}/unschedulable", f"{NODE}/not-ready", f"{NODE}/unreachable"
_STARTING: tuple[TaintKind, str] = ("not_ready", _("still starting"))
_RECLAIMED: tuple[TaintKind, str] = ("leaving", _("being reclaimed by the cloud"))
_STATES: Mapping[str, tuple[TaintKind, str]] = {
    CORDONED: ("cordon", _("cordoned")),
    NOT_READY: ("not_ready", _("not ready")),
    UNREACHABLE: ("not_ready", _("not reachable")),
    f"{NODE}/disk-pressure": ("not_ready", _("short of disk")), f"{NODE}/memory-pressure": ("not_ready", _("short of memory")),
    f"{NODE}/pid-pressure": ("not_ready", _("short of process ids")), f"{NODE}/out-of-service": ("not_ready", _("out of service")),
    f"{NODE}/network-unavailable": ("not_ready", _("without a network")),
    "node.cloudprovider.kubernetes.io/shutdown": ("not_ready", _("shut down")),
    TO_BE_DELETED_TAINT: ("leaving", _("being removed by the autoscaler")),
    **{key: ("leaving", _("being removed by Karpenter")) for key in KARPENTER_DISRUPTED_TAINTS},
    **{f"node-role.kubernetes.io/{role}": ("control_plane", _("of the control plane")) for role in ("control-plane", "master")},
}  # fmt: skip
# Set on a new node until something that it needs is there: who removes it, by how its key begins.
_REMOVERS = {
    "node.cloudprovider.kubernetes.io/uninitialized": _("the cloud controller manager"), "karpenter.sh/unregistered": _("Karpenter"),
    "startup-taint.cluster-autoscaler.kubernetes.io/": _("its setup"), "ignore-taint.cluster-autoscaler.kubernetes.io/": _("its setup"),
}  # fmt: skip
STARTING_STATES = {_STARTING[1], _STATES[NOT_READY][1]}
_TAKEN_BACK = ("aws-node-termination-handler/", "cloud.google.com/impending-node-termination")
_DEDICATED = {"CriticalAddonsOnly", "kubernetes.azure.com/scalesetpriority", "cloud.google.com/gke-spot", "spot"}


def takes_pods(node: Node) -> bool:
    """Return whether the node is ready, not cordoned, and not about to be removed; its other taints are for each pod to tolerate."""
    leaves = any(taint.key.startswith(_OF_CONDITION) and taint.effect in _KEEPS_OFF for taint in node.spec.taints)
    return is_ready(node) and not leaves and not node.spec.unschedulable


def lasting_taints(node: Node) -> tuple[Taint, ...]:
    """Return the taints that keep pods off whatever the node's condition, in one order and without times: alike for alike nodes."""
    lasting = (
        each for each in node.spec.taints if each.effect in _KEEPS_OFF and not each.key.startswith(_OF_CONDITION)
    )
    taints = {Taint(key=each.key, value=each.value, effect=each.effect) for each in lasting}
    return tuple(sorted(taints, key=lambda taint: (taint.key, taint.value, taint.effect)))


def untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> list[Taint]:
    """Return the taints that keep a pod with these tolerations off."""
    return [taint for taint in taints if taint.effect in _KEEPS_OFF and not tolerates(tolerations, taint)]


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Return whether one of the tolerations matches the taint, as Kubernetes compares them:
    https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/"""
    return any(_matches(toleration, taint) for toleration in tolerations)


def taint_text(taint: Taint) -> str:
    """Return the taint as kubectl writes it, and as a tier's tolerations are typed."""
    return f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"


def _matches(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if not toleration.key:
        return toleration.operator == "Exists"
    return toleration.key == taint.key and (toleration.operator == "Exists" or toleration.value == taint.value)


def state_of(key: str) -> tuple[TaintKind, str] | None:
    """Return what a taint of this key says of its node's state, and the words for it; None when it says nothing of that."""
    if known := _STATES.get(key):
        return known
    if remover_of(key):
        return _STARTING
    return _RECLAIMED if key.startswith(_TAKEN_BACK) else None


def remover_of(key: str) -> str:
    """Return who removes the startup taint of this key once the node can be used; "" for any other taint."""
    if key.endswith("not-ready") and key not in _STATES:
        return _("the agent of {prefix}", prefix=key.rpartition("/")[0] or key)
    return next((who for beginning, who in _REMOVERS.items() if key.startswith(beginning)), "")


def is_for_other_work(key: str) -> bool:
    """Return whether a taint of this key keeps its node for work of a kind."""
    return key in _DEDICATED or "dedicated" in key.lower() or is_gpu(key)
