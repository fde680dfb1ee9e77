"""Groups a pool's nodes by what a pod can get of one that is otherwise empty, so that thousands of nodes are judged as a few shapes; pure.

A node's own pods are those of DaemonSets and static pods: they are on every node, also on an empty one. All other pods end or can move.
A pool that is scaled to zero has no node to look at, and the autoscaler's status tells no sizes: a new node will look like the most
frequent of its nodes did when they were last seen.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec

from grid.core.decoding import prepared
from grid.core.wording import date_words
from grid.diagnosis.places import lasting_taints, taint_text, takes_pods
from grid.diagnosis.resources import ResourceAmounts, resource_amounts
from grid.kube.objects import Condition, Metadata, Node, NodeSpec, NodeStatus, Taint

# Machines of one type differ by some KiB, and would be as many shapes as nodes. Rounding what is free changes no number of places for a
# tier whose memory and disk are multiples of this.
ROUNDED_TO = 4 * 2**20
_NAME = "new"
_OF_ONE_NODE = "kubernetes.io/hostname"
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


@dataclass(frozen=True, slots=True)
class NodeTemplate:
    """A node that stands for new ones. `node` has the labels that the pool's nodes share, its lasting taints and its allocatable, and is
    ready; `own` is what its own pods take (`NodeRoom.own`)."""

    node: Node
    own: ResourceAmounts
    seen_at: datetime

    @property
    def seen(self) -> str:
        """Return the day in words: "24 November 2026"."""
        return date_words(self.seen_at.astimezone(UTC))

    @property
    def shape(self) -> NodeShape:
        """Return the shape of such nodes, of which there is none now."""
        return NodeShape(resource_amounts(self.node.status.allocatable), self.own, self.node.spec.taints, 0, 0)


class TemplateTally:
    """Counts the nodes of a pool, one after the other, so that a caller with thousands of nodes can pause in between."""

    def __init__(self) -> None:
        self._counts: dict[ShapeKey, int] = {}
        self._labels: dict[ShapeKey, Mapping[str, str]] = {}

    def count(self, node: Node, own: ResourceAmounts) -> None:
        """Add a node if it takes pods: one that is about to leave has lost some of its own pods."""
        if not takes_pods(node):
            return
        key, labels = shape_key(node, own), node.metadata.labels
        self._counts[key] = self._counts.get(key, 0) + 1
        shared = self._labels.get(key)
        if shared is None:
            self._labels[key] = {name: value for name, value in labels.items() if name != _OF_ONE_NODE}
        elif not shared.items() <= labels.items():
            self._labels[key] = dict(shared.items() & labels.items())

    def template(self, seen_at: datetime) -> NodeTemplate | None:
        """Return the most frequent; None when no node takes pods. A label that differs between its nodes, such as their zone, is left
        out, because nobody knows which one the next node gets."""
        if not self._counts:
            return None
        key = min(self._counts, key=lambda shape: (-self._counts[shape], shape[:2], *map(taint_text, shape[2])))
        allocatable, own, taints = key
        offers = {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in allocatable}
        return NodeTemplate(_node(self._labels[key], taints, offers), dict(own), seen_at)


class StoredNode(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the database keeps of a template's node."""

    labels: dict[str, str]
    taints: tuple[Taint, ...]
    allocatable: dict[str, str]


def as_stored(template: NodeTemplate) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the node and its own pods as JSON, equal for equal templates."""
    node = template.node
    taints = [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in node.spec.taints]
    labels, offers = node.metadata.labels, node.status.allocatable
    return {"labels": dict(labels), "taints": taints, "allocatable": dict(offers)}, dict(template.own)


def from_stored(node: object, own: object, seen_at: datetime) -> NodeTemplate:
    """Return the template that was stored. Raise ValueError when it is something else."""
    stored, taken = msgspec.convert(node, prepared(StoredNode)), msgspec.convert(own, dict[str, int])
    return NodeTemplate(_node(stored.labels, stored.taints, stored.allocatable), taken, seen_at)


def _node(labels: Mapping[str, str], taints: Iterable[Taint], allocatable: Mapping[str, str]) -> Node:
    return Node(
        metadata=Metadata(name=_NAME, labels=dict(labels)),
        spec=NodeSpec(taints=tuple(taints)),
        status=NodeStatus(allocatable=dict(allocatable), conditions=(Condition(type="Ready", status="True"),)),
    )
