"""What a new node of a pool will look like: as the most frequent of its nodes did when they were last seen; pure.

A pool that is scaled to zero has no node to look at, and the autoscaler's status tells no sizes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from grid.core.wording import date_words
from grid.diagnosis.nodeshapes import NodeShape, ShapeKey, shape_key
from grid.diagnosis.places import taint_text, takes_pods
from grid.diagnosis.resources import ResourceAmounts, resource_amounts
from grid.kube.objects import Condition, Metadata, Node, NodeSpec, NodeStatus, Taint

_NAME = "new"
_OF_ONE_NODE = "kubernetes.io/hostname"


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
    stored, taken = msgspec.convert(node, StoredNode), msgspec.convert(own, dict[str, int])
    return NodeTemplate(_node(stored.labels, stored.taints, stored.allocatable), taken, seen_at)


def _node(labels: Mapping[str, str], taints: Iterable[Taint], allocatable: Mapping[str, str]) -> Node:
    return Node(
        metadata=Metadata(name=_NAME, labels=dict(labels)),
        spec=NodeSpec(taints=tuple(taints)),
        status=NodeStatus(allocatable=dict(allocatable), conditions=(Condition(type="Ready", status="True"),)),
    )
