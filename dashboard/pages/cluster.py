"""The watch caches read for pages: sums for each node, worked out again only for what changed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.conf import settings

from dashboard.viewmodels.nodes import NodeSums, node_sums
from grid.kube.objects import Node, Pod
from grid.metrics.usage import Usage
from grid.runtime import Runtime
from grid.watch.pools import NodeGroup, node_groups


@dataclass(frozen=True, slots=True)
class _Remembered:
    node: Node
    pods: tuple[Pod, ...]
    usage: Usage | None
    sums: NodeSums


class ClusterReader:
    """Belongs to one runtime; used on its event loop only."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self._nodes: dict[str, _Remembered] = {}
        self._groups: dict[str, NodeGroup] = {}
        self._groups_version = -1
        self._pending: dict[str, int] = {}
        self._pending_version = -1

    def sums(self) -> list[NodeSums]:
        """All nodes, in no order."""
        known, self._nodes = self._nodes, {}
        return [self._sums_of(node, known) for node in self.runtime.nodes.values()]

    def pods_on(self, name: str) -> Sequence[Pod]:
        return self.runtime.pods.by("node", name)

    def groups(self) -> dict[str, NodeGroup]:
        """The autoscaler's node groups; parsed when its status has changed."""
        if self._groups_version != self.runtime.config_maps.version:
            self._groups_version = self.runtime.config_maps.version
            self._groups = node_groups(self.runtime.config_maps.values())
        return self._groups

    def pending(self) -> dict[str, int]:
        """Pods without a node, by the pool that they ask for."""
        if self._pending_version != self.runtime.pods.version:
            self._pending_version = self.runtime.pods.version
            self._pending = _count_pending(self.runtime.pods.values())
        return self._pending

    def _sums_of(self, node: Node, known: dict[str, _Remembered]) -> NodeSums:
        name = node.metadata.name
        pods, usage = tuple(self.pods_on(name)), self.runtime.usage.node(name)
        old = known.get(name)
        if old is None or old.node is not node or old.usage is not usage or old.pods != pods:
            sums = node_sums(node, pods, usage, pool_label=settings.NODE_POOL_LABEL)
            old = _Remembered(node, pods, usage, sums)
        self._nodes[name] = old
        return old.sums


def _count_pending(pods: Iterable[Pod]) -> dict[str, int]:
    waiting: dict[str, int] = {}
    for pod in pods:
        if pod.spec.node_name or pod.status.phase != "Pending" or pod.metadata.deletion_timestamp is not None:
            continue
        if pool := pod.spec.node_selector.get(settings.NODE_POOL_LABEL, ""):
            waiting[pool] = waiting.get(pool, 0) + 1
    return waiting
