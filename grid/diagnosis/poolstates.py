"""The node pools as a launch sees them: what each node has free now, and what it offers beside the pods that run on every node; pure."""

from collections import Counter
from dataclasses import dataclass, field, replace

from grid.diagnosis.launchplaces import AlikeNodes, LaunchPool, minus
from grid.diagnosis.nodetemplates import NodeTemplate
from grid.diagnosis.places import lasting_taints, takes_pods
from grid.diagnosis.resources import ResourceAmounts, resource_amounts
from grid.diagnosis.room import NodeRoom
from grid.kube.objects import Node, Taint
from grid.kube.pools import NodeGroup


@dataclass(slots=True)
class _Alike:
    """Nodes of one shape and with the same taints: how many have what left, and the least that the own pods of one take of it: a pod that
    is on some nodes only must not make a tier too large."""

    offered: ResourceAmounts
    taints: tuple[Taint, ...]
    own: ResourceAmounts
    left: Counter[tuple[tuple[tuple[str, int], ...], bool]] = field(default_factory=Counter)


class RoomTally:
    """Counts the nodes of a pool, one after the other, so that a caller with thousands of nodes can pause in between.

    `room` has the sums of each node.
    """

    def __init__(self, room: NodeRoom) -> None:
        self._room = room
        self._shapes: dict[tuple[int, tuple[Taint, ...]], _Alike] = {}

    def count(self, node: Node) -> None:
        offered, name = resource_amounts(node.status.allocatable), node.metadata.name
        own = self._room.own(name)
        taints = lasting_taints(node)
        shape = (id(offered), taints)  # one and the same object for equal nodes
        alike = self._shapes.get(shape)
        if alike is None:
            alike = self._shapes[shape] = _Alike(offered, taints, own)
        elif own != alike.own:
            alike.own = {name: min(amount, own.get(name, 0)) for name, amount in alike.own.items()}
        alike.left[tuple(self._room.requested(name).items()), takes_pods(node)] += 1

    def state(self, name: str, group: NodeGroup | None, template: NodeTemplate | None = None) -> LaunchPool:
        """Return the state of the pool of that name, of which `group` is the node group, and `template` what its next node will look
        like."""
        nodes: list[AlikeNodes] = []
        for alike in self._shapes.values():
            empty = minus(alike.offered, alike.own)
            nodes += [
                AlikeNodes(minus(alike.offered, dict(taken)), empty, count, alike.taints, takes_pods)
                for (taken, takes_pods), count in alike.left.items()
            ]
        maximum, is_backed_off = (group.maximum, bool(group.is_backed_off)) if group else (0, False)
        pool = LaunchPool(name, tuple(nodes), maximum, is_backed_off=is_backed_off)
        if nodes or template is None:
            return pool
        free = minus(template.shape.allocatable, template.own)
        return replace(pool, remembered=AlikeNodes(free, free, 1, template.shape.taints), seen=template.seen)
