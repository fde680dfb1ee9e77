"""Groups of nodes that are the same to a pod but for what runs there: a pool's nodes are of few kinds, so each kind is judged once."""

from collections.abc import Sequence
from typing import NamedTuple

from grid.diagnosis.placement.devices import devices_of
from grid.kube.objects import Node

_MOST_KEPT = 32


class NodeQuestion(NamedTuple):
    """What a pod asks of nodes: the labels that it selects by, "" for the name, those that a node only has to have, and the resources that
    it needs."""

    labels: tuple[str, ...]
    present: tuple[str, ...]
    resources: tuple[str, ...]


class NodeKinds:
    """The nodes of a cluster, grouped. Groups are kept, because most pods ask for the same labels and resources."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self._kept: dict[NodeQuestion, list[list[Node]]] = {}

    def groups(self, asked: NodeQuestion) -> Sequence[Sequence[Node]]:
        """Return the nodes in groups that differ in nothing that is asked, nor in their state; do not change them."""
        groups = self._kept.get(asked)
        if groups is None:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            groups = self._kept[asked] = self._grouped(asked)
        return groups

    def _grouped(self, asked: NodeQuestion) -> list[list[Node]]:
        labels, present, resources = asked
        by_name = "" in labels
        groups: dict[object, list[Node]] = {}
        for node in self.nodes:
            key = (
                tuple(map(node.metadata.labels.get, labels)),
                tuple([label in node.metadata.labels for label in present]),
                node.metadata.name if by_name else "",
                node.spec.taints,
                node.spec.unschedulable,
                is_unready(node),
                tuple(map(node.status.allocatable.get, resources)),
                tuple([devices_of(node, resource) for resource in resources]),
            )
            groups.setdefault(key, []).append(node)
        return list(groups.values())


def is_unready(node: Node) -> bool:
    for condition in node.status.conditions:
        if condition.type == "Ready":
            return condition.status != "True"
    return False
