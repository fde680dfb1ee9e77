"""The placement of the population's pods on nodes. Pure bookkeeping, without Kubernetes' objects."""

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from grid.core.quantity import millicores, whole
from grid.sandbox.kubelet.capacity import allocatable_of
from grid.sandbox.pools import NodePool

_TRIES = 12
_MEBIBYTE = 2**20


@dataclass(slots=True)
class NodeSpace:
    """The free capacity of one node."""

    name: str
    pool: str
    millicores: int
    mebibytes: int
    gpus: int
    pods: int
    is_open: bool = True

    @classmethod
    def of(cls, name: str, pool: NodePool) -> "NodeSpace":
        offered = allocatable_of(pool.capacity)
        return cls(
            name,
            pool.name,
            millicores(offered["cpu"]),
            whole(offered["memory"]) // _MEBIBYTE,
            int(offered.get("nvidia.com/gpu", 0)),
            int(offered["pods"]),
        )

    def take(self, need: "PodRequest", sign: int = 1) -> None:
        self.millicores -= sign * need.millicores
        self.mebibytes -= sign * need.mebibytes
        self.gpus -= sign * need.gpus
        self.pods -= sign

    def fits(self, need: "PodRequest") -> bool:
        is_enough = self.millicores >= need.millicores and self.mebibytes >= need.mebibytes
        return self.is_open and is_enough and self.gpus >= need.gpus and self.pods > 0


@dataclass(frozen=True, slots=True)
class PodRequest:
    """The pool and the amounts that a pod requests."""

    pool: str
    millicores: int
    mebibytes: int
    gpus: int


@dataclass(slots=True)
class _Place:
    index: int
    need: PodRequest
    node: str = ""


class Rooms:
    """All nodes and pods of the population by name."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeSpace] = {}
        self._pools: dict[str, list[NodeSpace]] = defaultdict(list)
        self._cursor: dict[str, int] = defaultdict(int)
        self._pods: dict[str, _Place] = {}
        self._keys: list[str] = []

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._pods

    @property
    def pools(self) -> Collection[str]:
        return [name for name, rooms in self._pools.items() if rooms]

    def add_node(self, room: NodeSpace) -> None:
        self.nodes[room.name] = room
        self._pools[room.pool].append(room)

    def remove_node(self, name: str) -> None:
        room = self.nodes.pop(name)
        self._pools[room.pool].remove(room)

    def add_pod(self, key: str, need: PodRequest) -> None:
        self._pods[key] = _Place(len(self._keys), need)
        self._keys.append(key)

    def remove_pod(self, key: str) -> None:
        place = self._pods.pop(key)
        last = self._keys.pop()
        if last != key:
            self._keys[place.index] = last
            self._pods[last].index = place.index
        self._release(place)

    def finish_pod(self, key: str) -> None:
        """Free the capacity of a pod that has ended but still exists."""
        place = self._pods.get(key)
        if place is not None:
            self._release(place)
            place.node = ""

    def place(self, key: str) -> NodeSpace | None:
        """Place the pod and return its node, or None when no node of its pool has room."""
        place = self._pods[key]
        rooms = self._pools[place.need.pool]
        for _ in range(min(_TRIES, len(rooms))):
            self._cursor[place.need.pool] += 1
            room = rooms[self._cursor[place.need.pool] % len(rooms)]
            if room.fits(place.need):
                room.take(place.need)
                place.node = room.name
                return room
        return None

    def need_of(self, key: str) -> PodRequest:
        return self._pods[key].need

    def pods_on(self, node: str) -> Sequence[str]:
        return [key for key, place in self._pods.items() if place.node == node]

    def lacking(self, wanted: Counter[str]) -> Sequence[str]:
        """Return the pool of each missing node, given the wanted number of each pool."""
        there = Counter(room.pool for room in self.nodes.values())
        return tuple(islice((wanted - there).elements(), max(0, wanted.total() - there.total())))

    def spare(self, wanted: Counter[str]) -> Sequence[str]:
        """Return empty surplus nodes of pools that have more than the wanted number."""
        surplus = Counter(room.pool for room in self.nodes.values()) - wanted
        used = {place.node for place in self._pods.values()} if surplus else ()
        names: list[str] = []
        for name, room in self.nodes.items():
            if surplus[room.pool] > 0 and name not in used and len(names) < len(self.nodes) - wanted.total():
                surplus[room.pool] -= 1
                names.append(name)
        return names

    def draw(self, rng: random.Random, count: int, *, part: str = "", pool: str = "") -> Iterator[str]:
        """Yield up to `count` different pods that are on a node, with `part` in their name and of that pool."""
        drawn: set[str] = set()
        for _ in range(count * 50 if self._keys else 0):
            if len(drawn) == count:
                return
            key = self._keys[rng.randrange(len(self._keys))]
            place = self._pods[key]
            if key not in drawn and place.node and part in key and pool in ("", place.need.pool):
                drawn.add(key)
                yield key

    def draw_any(self, rng: random.Random) -> str:
        """Return a random pod, on a node or not; there must be one."""
        return self._keys[rng.randrange(len(self._keys))]

    def _release(self, place: _Place) -> None:
        room = self.nodes.get(place.node)
        if room is not None:
            room.take(place.need, -1)
