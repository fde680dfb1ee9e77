"""The node pools as a launch sees them, and how many pods of it find room on their nodes; pure.

Alike pods and nodes are counted at once, so that thousands of workers cost no more than one. Affinities and the zones of volumes are
not looked at.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from grid.diagnosis.nodeshapes import NodeTemplate
from grid.diagnosis.places import lasting_taints, takes_pods, untolerated
from grid.diagnosis.resources import ResourceAmounts, resource_amounts
from grid.diagnosis.room import NodeRoom
from grid.kube.objects import Node, Taint, Toleration
from grid.kube.pools import NodeGroup

Resources = Mapping[str, int]  # by Kubernetes' names: cpu in thousandths of a core, everything else in whole units


@dataclass(frozen=True, slots=True)
class PodPlan:
    """Equal pods of a launch: their tier's name, what each requests, and how many."""

    tier: str
    pool: str
    requests: Resources
    tolerations: tuple[Toleration, ...] = ()
    count: int = 1


@dataclass(frozen=True, slots=True)
class AlikeNodes:
    """Nodes that are alike. `free` is what each has left now, `empty` what it offers beside the pods that run on every node;
    `takes_pods` is False for nodes that are cordoned or not ready."""

    free: Resources
    empty: Resources
    count: int = 1
    taints: tuple[Taint, ...] = ()
    takes_pods: bool = True


@dataclass(frozen=True, slots=True)
class LaunchPool:
    """A node pool: its nodes, how many it may have (0: no autoscaler is known to start any), and how long one usually takes to start.
    `remembered` is an empty node as the pool's nodes were when last seen, on the day `seen`, for a pool that has none now.
    `is_backed_off` says that the cloud failed to deliver a node lately."""

    name: str
    nodes: tuple[AlikeNodes, ...] = ()
    maximum: int = 0
    start_seconds: float | None = None
    remembered: AlikeNodes | None = None
    seen: str = ""
    is_backed_off: bool = False

    @property
    def size(self) -> int:
        return sum(alike.count for alike in self.nodes)

    @property
    def known(self) -> tuple[AlikeNodes, ...]:
        """The nodes that tell how large new ones will be: those of now, or else the remembered one."""
        return self.nodes or ((self.remembered,) if self.remembered else ())


Pools = Mapping[str, LaunchPool]


def largest_for(plan: PodPlan, pool: LaunchPool) -> AlikeNodes | None:
    """Return the nodes that take the most such pods while empty; None when none takes one."""
    best = max(open_to(pool, plan), key=lambda alike: places(plan.requests, alike.empty), default=None)
    return best if best is not None and places(plan.requests, best.empty) else None


def nodes_needed(plans: Iterable[PodPlan], pool: LaunchPool) -> int | None:
    """Return how many empty nodes like the pool's largest take the pods, the largest pods first; None when one fits no node."""
    opened: list[AlikeNodes] = []
    for plan in sorted(plans, key=size_of, reverse=True):
        count, opened = place_on(opened, plan)
        if not count:
            continue
        largest = largest_for(plan, pool)
        if largest is None:
            return None
        fresh = replace(largest, free=largest.empty, count=-(-count // places(plan.requests, largest.empty)))
        opened += place_on([fresh], replace(plan, count=count))[1]
    return sum(alike.count for alike in opened)


def place_on(nodes: Iterable[AlikeNodes], plan: PodPlan) -> tuple[int, list[AlikeNodes]]:
    """Put as many pods as fit on the nodes. Return how many are left over, and the nodes after that."""
    count, after = plan.count, list[AlikeNodes]()
    for alike in nodes:
        if not count:
            after.append(alike)
            continue
        each = places(plan.requests, alike.free) if not untolerated(alike.taints, plan.tolerations) else 0
        full = min(alike.count, count // each) if each else 0
        rest = count - full * each if each and full < alike.count else 0
        count -= full * each + rest
        for pods, number in ((each, full), (rest, 1 if rest else 0), (0, alike.count - full - (1 if rest else 0))):
            if number:
                after.append(replace(alike, free=minus(alike.free, plan.requests, pods), count=number))
    return count, after


def places(requests: Resources, free: Resources) -> int:
    """Return how many pods of this size find room in these amounts; 0 also when a resource is missing."""
    return min((max(0, free.get(name, 0)) // amount for name, amount in requests.items() if amount > 0), default=1)


def open_to(pool: LaunchPool, plan: PodPlan) -> list[AlikeNodes]:
    return [alike for alike in pool.known if not untolerated(alike.taints, plan.tolerations)]


def minus(free: Resources, requests: Resources, count: int = 1) -> Resources:
    return {name: amount - requests.get(name, 0) * count for name, amount in free.items()} if count else free


def size_of(plan: PodPlan) -> tuple[int, ...]:
    devices = sum(amount for name, amount in plan.requests.items() if "/" in name)
    return devices, plan.requests.get("cpu", 0), plan.requests.get("memory", 0)


@dataclass(slots=True)
class _Alike:
    """Nodes of one shape and with the same taints: how many have what left, and the least that the own pods of one take of it: a pod that
    is on some nodes only must not make a tier too large."""

    offered: ResourceAmounts
    taints: tuple[Taint, ...]
    own: ResourceAmounts
    left: Counter[tuple[tuple[tuple[str, int], ...], bool]] = field(default_factory=Counter)


class RoomTally:
    """Counts the nodes of a pool, one after the other, so that a caller with thousands of nodes can pause in between."""

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
        """Return the state of the pool with this node group, and with `template` for what its next node will look like."""
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
