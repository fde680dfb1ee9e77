"""What the pods that hold each node request of it, kept up to date with each change of a pod."""

from collections.abc import Collection

from grid.diagnosis.requests import Amounts, holds_a_node, is_own, is_placeholder, summary
from grid.diagnosis.resources import PODS, ResourceAmounts, requested_amounts
from grid.kube.objects import Pod

_NOTHING: ResourceAmounts = {}


class NodeRoom:
    """Sums by node, without placeholders, whose room is free to any execution. `pod_changed` is a listener of a store of pods, so a change
    costs the same however many pods there are."""

    def __init__(self) -> None:
        self._requested: dict[str, dict[str, int]] = {}
        self._own: dict[str, dict[str, int]] = {}
        self._keeping_apart: dict[str, Pod] = {}

    def requested(self, node_name: str) -> ResourceAmounts:
        """Return the sums by resource over the pods that hold the node, "pods" being their number; a live view, not to be changed."""
        return self._requested.get(node_name, _NOTHING)

    def own(self, node_name: str) -> ResourceAmounts:
        """Return the sums over the node's own pods: those of DaemonSets and its static pods, which an empty node runs too; a live view."""
        return self._own.get(node_name, _NOTHING)

    def amounts(self, node_name: str) -> Amounts:
        """Return the sums of CPU, memory and GPUs of all names."""
        return summary(self.requested(node_name))

    def keeping_apart(self) -> Collection[Pod]:
        """Return the pods on nodes that require to be apart from other pods, as a live view."""
        return self._keeping_apart.values()

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Take in a pod that came (`old` is None), changed, or went (`new` is None)."""
        before = old if old is not None and _takes_room(old) else None
        after = new if new is not None and _takes_room(new) else None
        if before is not None and after is not None and before.spec == after.spec and is_own(before) == is_own(after):
            if before.metadata.key in self._keeping_apart:
                self._keeping_apart[after.metadata.key] = after
            return
        if before is not None:
            self._count(before, -1)
            self._keeping_apart.pop(before.metadata.key, None)
        if after is not None:
            self._count(after, 1)
            if after.spec.affinity is not None and after.spec.affinity.pod_anti_affinity is not None:
                self._keeping_apart[after.metadata.key] = after

    def _count(self, pod: Pod, sign: int) -> None:
        _add(self._requested, pod, sign)
        if is_own(pod):
            _add(self._own, pod, sign)


def _takes_room(pod: Pod) -> bool:
    return holds_a_node(pod) and not is_placeholder(pod)


def _add(sums_of: dict[str, dict[str, int]], pod: Pod, sign: int) -> None:
    sums = sums_of.setdefault(pod.spec.node_name, {})
    for resource, amount in requested_amounts(pod).items():
        sums[resource] = sums.get(resource, 0) + sign * amount
    if not sums[PODS]:
        del sums_of[pod.spec.node_name]  # an entry for each node that ever was would never end
