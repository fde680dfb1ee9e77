"""What keeps a pod off one node: every reason, not the first as in the scheduler's message."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from grid.core.quantity import is_gpu
from grid.diagnosis.diagnosis import Lasting
from grid.diagnosis.placement.inter_pod_affinity import InterPodAffinity, counted_by
from grid.diagnosis.placement.spread import Spread
from grid.diagnosis.placement.surroundings import NodeQuestion, SchedulingContext, devices_of, is_unready, tells_of_gpus
from grid.diagnosis.places import CORDONED, NOT_READY, UNREACHABLE, state_of, untolerated
from grid.diagnosis.requests import holds_a_node, is_own
from grid.diagnosis.resources import ResourceAmounts, requested_amounts, resource_amounts
from grid.diagnosis.selectors import in_words, keys_of, matches_terms
from grid.kube.objects import Node, Pod, Taint
from grid.kube.slim import ContainerPort, NodeTerms

Kind = Literal[
    "pool", "selector", "affinity", "label", "control_plane", "cordon", "leaving", "taint", "not_ready", "too_small", "broken", "volume",
    "full", "port", "apart", "beside", "spread",
]  # fmt: skip
# Nodes that the pod's own demands exclude, and those of the control plane: they are not among the nodes that it may use.
FOREIGN: frozenset[Kind] = frozenset({"pool", "selector", "affinity", "label", "control_plane"})
CLOSED: frozenset[Kind] = frozenset({"cordon", "leaving", "taint"})
NEVER: frozenset[Kind] = frozenset({"too_small", "volume"})
_LASTING: Mapping[Kind, Lasting] = {**dict.fromkeys((*FOREIGN, *CLOSED), "decision"), **dict.fromkeys(NEVER, "always")}
_CORDON = Taint(key=CORDONED, effect="NoSchedule")
_UNREADY = Taint(key=NOT_READY, effect="NoSchedule")


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One reason. `subject` tells it from others of its kind: a label, a taint, a resource. `size` is how much of the resource a pod could
    have on the empty node, `free` how much is free now; `beside_own` says that the node's own pods (of DaemonSets) take the rest. `key` is
    the label by which a rule between pods takes nodes together. Of broken devices, `size` is how many the node has, 0 when only
    its labels tell of some, and `free` how many of them work."""

    kind: Kind
    subject: str = ""
    size: int = 0
    free: int = 0
    beside_own: bool = False
    key: str = ""

    @property
    def lasting(self) -> Lasting:
        return _LASTING.get(self.kind, "for_now")


_NOTHING: ResourceAmounts = {}
_Amounts = tuple[int | None, ...]
_Conflict = tuple[Kind, str, str]
_Taken = tuple[_Amounts, _Amounts, tuple[_Conflict, ...]]


@dataclass(frozen=True, slots=True)
class NodeSituation:
    """Nodes, one or more, that the same keeps the pod off."""

    nodes: list[Node]
    obstacles: tuple[Obstacle, ...]
    kinds: frozenset[str]


def without(situations: Iterable[NodeSituation], *kinds: str) -> list[NodeSituation]:
    """Return the nodes that no obstacle of these kinds keeps the pod off."""
    return [situation for situation in situations if situation.kinds.isdisjoint(kinds)]


class Placement:
    """A pod and its surroundings. A large cluster has thousands of nodes in few situations, so nothing is made for a single node."""

    def __init__(
        self, pod: Pod, scheduling: SchedulingContext, *, volumes: Mapping[str, NodeTerms] | None = None
    ) -> None:
        """`volumes` are where the volumes of the pod can be reached, by what they are in words."""
        self.pod, self.scheduling = pod, scheduling
        self.needs: ResourceAmounts = {name: amount for name, amount in requested_amounts(pod).items() if amount > 0}
        self.volumes = volumes or {}
        terms = pod.spec.affinity.node_affinity if pod.spec.affinity else None
        self._affinity = terms.required if terms else None
        selecting = [*self.volumes.values(), *([self._affinity] if self._affinity else ())]
        labels = frozenset(pod.spec.node_selector).union(*map(keys_of, selecting))
        self._counted_by = counted_by(pod)
        asked = NodeQuestion(tuple(sorted(labels)), tuple(sorted(self._counted_by)), tuple(sorted(self.needs)))
        self._groups = scheduling.alike(asked)
        self._between = InterPodAffinity(pod, scheduling, self._groups)
        self._ports = host_ports(pod)

    @property
    def spreads(self) -> Sequence[Spread]:
        """The pod's constraints on an even spread with what they count."""
        return self._between.spreads

    @property
    def pool(self) -> str:
        """The node pool that the pod asks for, "" for any."""
        return self.pod.spec.node_selector.get(self.scheduling.pool_label, "")

    def in_pool(self, situations: Iterable[NodeSituation]) -> list[NodeSituation]:
        """Return the nodes of that pool; none when the pod asks for no pool."""
        if not self.pool:
            return []
        label = self.scheduling.pool_label
        return [each for each in situations if each.nodes[0].metadata.labels.get(label) == self.pool]

    def situations(self) -> list[NodeSituation]:
        """Return all nodes with everything that keeps the pod off them now; with those that it may not use at all, only why."""
        situations = []
        for group in self._groups:
            obstacles = self.when_empty(group[0])
            is_foreign = any(obstacle.kind in FOREIGN for obstacle in obstacles)
            each = {obstacles: list(group)} if is_foreign else self._now(group, obstacles)
            kinds = {some: frozenset([obstacle.kind for obstacle in some]) for some in each}
            situations += [NodeSituation(nodes, some, kinds[some]) for some, nodes in each.items()]
        return situations

    def when_empty(self, node: Node, own: ResourceAmounts = _NOTHING) -> tuple[Obstacle, ...]:
        """Return what keeps the pod off the node while nothing runs there but `own`, the pods that belong to it."""
        obstacles = tuple(self._judge(node))
        return (*obstacles, *self._full(self._checked(node, obstacles), own, own)) if own else obstacles

    def _now(self, group: Sequence[Node], empty: tuple[Obstacle, ...]) -> dict[tuple[Obstacle, ...], list[Node]]:
        """Return nodes that are alike by what keeps the pod off each now. Those on which the same is taken are judged once."""
        checked, room, between = self._checked(group[0], empty), self.scheduling.room, self._between
        names = [name for name, _, _ in checked]
        alike: dict[_Taken, list[Node]] = {}
        for node in group:
            name = node.metadata.name
            conflicts: tuple[_Conflict, ...] = between.obstacles(node)
            if self._ports:
                conflicts = (*self._taken_ports(name), *conflicts)
            key = tuple(map(room.requested(name).get, names)), tuple(map(room.own(name).get, names)), conflicts
            alike.setdefault(key, []).append(node)
        by_obstacles: dict[tuple[Obstacle, ...], list[Node]] = {}
        for (_unused, _unused, conflicts), nodes in alike.items():
            name = nodes[0].metadata.name
            full = self._full(checked, room.requested(name), room.own(name))
            obstacles = (*empty, *full, *(Obstacle(kind, subject, key=key) for kind, subject, key in conflicts))
            by_obstacles.setdefault(obstacles, []).extend(nodes)
        return by_obstacles

    def _checked(self, node: Node, empty: Sequence[Obstacle]) -> list[tuple[str, int, int]]:
        """Return the resources that may be short: name, need and size. What never fits or is broken is not full besides."""
        size = resource_amounts(node.status.allocatable)
        small = {obstacle.subject for obstacle in empty if obstacle.kind in ("too_small", "broken")}
        return [(name, amount, size.get(name, 0)) for name, amount in self.needs.items() if name not in small]

    def _judge(self, node: Node) -> Iterator[Obstacle]:
        spec, labels = self.pod.spec, node.metadata.labels
        for key, value in spec.node_selector.items():
            if labels.get(key) != value:
                is_pool = key == self.scheduling.pool_label
                yield Obstacle("pool", value) if is_pool else Obstacle("selector", f"{key}={value}")
        if self._affinity is not None and not matches_terms(self._affinity, node):
            yield Obstacle("affinity", in_words(self._affinity))
        yield from (Obstacle("label", key) for key in self._counted_by if key not in labels)
        yield from self._state(node)
        size = resource_amounts(node.status.allocatable)
        for name, amount in self.needs.items():
            offered = size.get(name, 0)
            if amount > offered:
                devices = devices_of(node, name)
                if amount <= devices or (not devices and is_gpu(name) and tells_of_gpus(node)):
                    yield Obstacle("broken", name, devices, offered)
                else:
                    yield Obstacle("too_small", name, max(offered, devices))
        for words, terms in self.volumes.items():
            if not matches_terms(terms, node):
                yield Obstacle("volume", words)

    def _state(self, node: Node) -> Iterator[Obstacle]:
        """Yield the taints that nothing tolerates, and those that Kubernetes sets a moment after the node's state."""
        is_told = any(taint.key == UNREACHABLE for taint in node.spec.taints)
        unready = (_UNREADY,) if is_unready(node) and not is_told else ()
        implied = ((_CORDON,) if node.spec.unschedulable else ()) + unready
        seen = set()
        for taint in untolerated((*node.spec.taints, *implied), self.pod.spec.tolerations):
            words = f"{taint.key}={taint.value}" if taint.value else taint.key
            kind, subject = state_of(taint.key) or ("taint", words)
            if (kind, subject) not in seen:
                seen.add((kind, subject))
                yield Obstacle(kind, subject)

    def _full(
        self, checked: Iterable[tuple[str, int, int]], taken: ResourceAmounts, own: ResourceAmounts
    ) -> Iterator[Obstacle]:
        """Yield the resources that are short now: for ever when the node's own pods, which never leave it, take too much."""
        for name, amount, size in checked:
            free = size - taken.get(name, 0)
            if amount <= free:
                continue
            left = size - own.get(name, 0)
            if amount > left:
                yield Obstacle("too_small", name, left, beside_own=True)
            else:
                yield Obstacle("full", name, size, max(0, free))

    def own_take_its_port(self, node: Node) -> bool:
        """Return whether a pod that belongs to the node has a port that this pod needs."""
        return bool(self._ports) and any(self._taken_ports(node.metadata.name, own_only=True))

    def port_users(self, node_name: str) -> list[Pod]:
        """Return the pods on the node that have a port that this pod needs."""
        pods = filter(holds_a_node, self.scheduling.pods_on(node_name))
        return [pod for pod in pods if any(_clash(port, other) for port in self._ports for other in host_ports(pod))]

    def _taken_ports(self, node_name: str, *, own_only: bool = False) -> Iterator[_Conflict]:
        taken = [port for pod in self.port_users(node_name) if is_own(pod) or not own_only for port in host_ports(pod)]
        for port in self._ports:
            if any(_clash(port, other) for other in taken):
                yield "port", str(port.host_port), ""


def host_ports(pod: Pod) -> tuple[ContainerPort, ...]:
    """Return the ports of the node that the pod takes, its sidecars' included."""
    sidecars = (container for container in pod.spec.init_containers if container.restart_policy == "Always")
    return tuple(port for container in (*pod.spec.containers, *sidecars) for port in container.ports)


def _clash(mine: ContainerPort, other: ContainerPort) -> bool:
    anywhere = {"", "0.0.0.0"}
    same_address = mine.host_ip == other.host_ip or mine.host_ip in anywhere or other.host_ip in anywhere
    return mine.host_port == other.host_port and mine.protocol == other.protocol and same_address
