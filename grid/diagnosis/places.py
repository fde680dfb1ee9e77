"""Which nodes take new pods now, and which taints keep a pod off them; pure."""

from collections.abc import Iterable

from grid.kube.objects import Node, Taint, Toleration, is_ready

_KEEPS_OFF = frozenset({"NoSchedule", "NoExecute"})
# What Kubernetes and the autoscaler put on nodes that take no pods for a while; these come and go with the node's condition.
_OF_CONDITION = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "ToBeDeletedByClusterAutoscaler")


def takes_pods(node: Node) -> bool:
    """Return whether the node is ready, not cordoned, and not about to be removed; its other taints are for each pod to tolerate."""
    leaves = any(taint.key.startswith(_OF_CONDITION) and taint.effect in _KEEPS_OFF for taint in node.spec.taints)
    return is_ready(node) and not leaves and not node.spec.unschedulable


def lasting_taints(node: Node) -> tuple[Taint, ...]:
    """Return the taints that keep pods off whatever the node's condition, in one order and without times: alike for alike nodes."""
    taints_found = {
        Taint(key=taint.key, value=taint.value, effect=taint.effect)
        for taint in node.spec.taints
        if taint.effect in _KEEPS_OFF and not taint.key.startswith(_OF_CONDITION)
    }
    return tuple(sorted(taints_found, key=lambda taint: (taint.key, taint.value, taint.effect)))


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
