"""When pods that no node has room for get it: what holds the nodes ends, one after the other, and the scheduler gives what becomes free to
the first in line that it is enough for; pure. As in Kubernetes, nothing is kept free for who waits longest: a smaller pod behind it takes
room that is not enough for it. Of several nodes the scheduler takes the one with most left, here by cores and then memory."""

import heapq
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from grid.diagnosis.resources import ResourceAmounts

Rank = tuple[int, float, str]
"""The place in the scheduler's line: the priority, negated; when the pod was created; its name."""


@dataclass(frozen=True, slots=True)
class Occupant:
    """A pod that holds room of a node. `execution` is "" for a pod of no execution, whose end is not known; `ends_within` are the seconds
    after which a deadline ends it at the latest."""

    execution: str
    node: str
    requests: ResourceAmounts
    ends_within: float = inf


@dataclass(frozen=True, slots=True)
class RoomSeeker:
    """A pod that starts when a node has room for it. Its execution needs one pod of each `part`; one with the part "" only takes room."""

    execution: str
    requests: ResourceAmounts
    nodes: frozenset[str]
    rank: Rank
    part: str = ""


@dataclass(frozen=True, slots=True)
class RoomFacts:
    """Pods that wait for room, what is free on the nodes that these may use, and all pods there that may end."""

    seekers: Sequence[RoomSeeker] = ()
    occupants: Sequence[Occupant] = ()
    free: Mapping[str, ResourceAmounts] = field(default_factory=dict)

    def when_ended(self) -> Mapping[str, ResourceAmounts]:
        """Return what is free on each node once all that may end has ended."""
        free = {node: dict(amounts) for node, amounts in self.free.items()}
        for occupant in self.occupants:
            if occupant.execution or occupant.ends_within < inf:
                _change(free[occupant.node], occupant.requests, 1)
        return free


def fits(requests: ResourceAmounts, free: ResourceAmounts) -> bool:
    return all(amount <= free.get(name, 0) for name, amount in requests.items())


def room_waits(facts: RoomFacts, rest: Mapping[str, float], holds: Mapping[str, float]) -> dict[str, float]:
    """Return by execution the seconds until its pods have room; without those that never do. `rest` are the seconds after which each
    execution on the nodes ends, `holds` those for which one that gets room keeps it; for ever by default."""
    return _Run(facts, rest, holds).waits()


class _Run:
    def __init__(self, facts: RoomFacts, rest: Mapping[str, float], holds: Mapping[str, float]) -> None:
        self._holds = holds
        self._free = {node: dict(free) for node, free in facts.free.items()}
        self._ends: list[tuple[float, int, str, ResourceAmounts]] = []
        for number, occupant in enumerate(facts.occupants):
            seconds = min(rest.get(occupant.execution, inf) if occupant.execution else inf, occupant.ends_within)
            if seconds < inf:
                self._ends.append((max(0.0, seconds), number, occupant.node, occupant.requests))
        heapq.heapify(self._ends)
        self._number = len(facts.occupants)
        # Pods that ask for the same of the same nodes are one line: if its first finds no room, nobody in it does.
        lines: dict[object, deque[RoomSeeker]] = {}
        for seeker in sorted(facts.seekers, key=lambda seeker: seeker.rank):
            lines.setdefault((tuple(sorted(seeker.requests.items())), seeker.nodes), deque()).append(seeker)
        self._lines = list(lines.values())
        self._parts: dict[str, dict[str, float]] = {}
        for seeker in facts.seekers:
            if seeker.part:
                self._parts.setdefault(seeker.execution, {})[seeker.part] = inf

    def waits(self) -> dict[str, float]:
        self._end(0.0)
        self._place(0.0, self._free)
        while self._ends and any(self._lines):
            now = self._ends[0][0]
            self._place(now, self._end(now))
        last = {id: max(parts.values()) for id, parts in self._parts.items()}
        return {id: seconds for id, seconds in last.items() if seconds < inf}

    def _end(self, now: float) -> Collection[str]:
        freed = set[str]()
        while self._ends and self._ends[0][0] <= now:
            _, _, node, requests = heapq.heappop(self._ends)
            _change(self._free[node], requests, 1)
            freed.add(node)
        return freed

    def _place(self, now: float, freed: Collection[str]) -> None:
        """Give what is free on these nodes to who is first in line; elsewhere nothing has changed since the last time."""
        heads = [(line[0].rank, number) for number, line in enumerate(self._lines) if line]
        heapq.heapify(heads)
        while heads:
            _, number = heapq.heappop(heads)
            line = self._lines[number]
            nodes = [node for node in freed if node in line[0].nodes and fits(line[0].requests, self._free[node])]
            if not nodes:
                continue
            self._start(line.popleft(), max(nodes, key=lambda node: roomiest(node, self._free[node])), now)
            if line:
                heapq.heappush(heads, (line[0].rank, number))

    def _start(self, seeker: RoomSeeker, node: str, now: float) -> None:
        _change(self._free[node], seeker.requests, -1)
        if seeker.part:
            parts = self._parts[seeker.execution]
            parts[seeker.part] = min(parts[seeker.part], now)
        end = now + self._holds.get(seeker.execution, inf)
        if end < inf:
            self._number += 1
            heapq.heappush(self._ends, (end, self._number, node, seeker.requests))


def roomiest(node: str, free: ResourceAmounts) -> tuple[int, int, str]:
    return free.get("cpu", 0), free.get("memory", 0), node


def _change(free: dict[str, int], requests: ResourceAmounts, sign: int) -> None:
    for name, amount in requests.items():
        free[name] = free.get(name, 0) + sign * amount
