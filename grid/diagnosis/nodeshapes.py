"""Groups a pool's nodes by what a pod can get of one that is otherwise empty, so that thousands of nodes are judged as a few shapes; pure.

A node's own pods are those of DaemonSets and static pods: they are on every node, also on an empty one. All other pods end or can move.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from grid.diagnosis.places import lasting_taints, takes_pods
from grid.diagnosis.resources import ResourceAmounts, resource_amounts
from grid.kube.objects import Node, Taint

# Machines of one type differ by some KiB, and would be as many shapes as nodes. Rounding what is free changes no number of places for a
# tier whose memory and disk are multiples of this.
ROUNDED_TO = 4 * 2**20
_ROUNDED = frozenset({"memory", "ephemeral-storage"})

Room = Mapping[str, int]
"""Amounts by Kubernetes' name of the resource: CPU in thousandths of a core, all else in whole units."""


@dataclass(frozen=True, slots=True)
class NodeShape:
    """Nodes that are alike. `nodes` of them take pods now; `away` are cordoned, being removed or not ready."""

    allocatable: Room
    own: Room  # what the node's own pods request
    taints: tuple[Taint, ...]
    nodes: int
    away: int

    @property
    def free(self) -> dict[str, int]:
        """What is left for other pods on an otherwise empty node."""
        return {name: max(0, amount - self.own.get(name, 0)) for name, amount in self.allocatable.items()}


@dataclass(frozen=True, slots=True)
class PoolShapes:
    """A pool with the shapes of its nodes, the most frequent first, and its maximum of nodes (0: the autoscaler does not know the pool).
    `remembered` is the shape that new nodes will have, where that is known, and `seen` the day on which such a node was last seen."""

    name: str
    shapes: tuple[NodeShape, ...] = ()
    maximum: int = 0
    remembered: NodeShape | None = None
    seen: str = ""

    @property
    def next(self) -> NodeShape | None:
        """The shape of the node that is started first in a pool without nodes; None when that is not known, or none is started."""
        return self.remembered if not self.shapes and self.maximum > 0 else None


_Amounts = tuple[tuple[str, int], ...]
ShapeKey = tuple[_Amounts, _Amounts, tuple[Taint, ...]]
"""What nodes of one shape have in common: what they offer, what their own pods take, their lasting taints."""


class ShapeTally:
    """Counts nodes by shape, one after the other, so that a caller with thousands of nodes can pause in between."""

    def __init__(self) -> None:
        self._counts: dict[ShapeKey, list[int]] = {}

    def count(self, node: Node, own: ResourceAmounts) -> None:
        """Add a node; `own` is what its own pods request (`NodeRoom.own`)."""
        counts = self._counts.setdefault(shape_key(node, own), [0, 0])
        counts[0 if takes_pods(node) else 1] += 1

    def shapes(self) -> tuple[NodeShape, ...]:
        shapes = [
            NodeShape(dict(allocatable), dict(own), taints, nodes, away)
            for (allocatable, own, taints), (nodes, away) in self._counts.items()
        ]
        return tuple(sorted(shapes, key=lambda shape: (-shape.nodes, -shape.away, sorted(shape.free.items()))))


def shape_key(node: Node, own: ResourceAmounts) -> ShapeKey:
    """Return what is equal for nodes of one shape; `own` is what the node's own pods request."""
    taken = tuple(sorted((name, amount) for name, amount in own.items() if amount))
    offered = tuple(sorted(resource_amounts(node.status.allocatable).items()))
    return _alike(offered, taken), taken, lasting_taints(node)


@lru_cache(maxsize=4096)
def _alike(allocatable: _Amounts, own: _Amounts) -> _Amounts:
    """Return the allocatable with what is free of its memory and disk rounded down."""
    taken = dict(own)
    return tuple(
        (name, amount - (amount - taken.get(name, 0)) % ROUNDED_TO if name in _ROUNDED else amount)
        for name, amount in allocatable
    )
