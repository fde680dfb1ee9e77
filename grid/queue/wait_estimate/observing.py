"""Turns pods, events and nodes into what an estimate knows of the cluster, in web processes as in the controller; pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import inf

from grid.core.labels import APP_COMPONENT, WORKER
from grid.diagnosis.nodeimages import has_image, image_on
from grid.diagnosis.requests import holds_a_node
from grid.diagnosis.resources import ResourceAmounts, requested_amounts, resource_amounts
from grid.diagnosis.startupevents import start_events
from grid.kube.objects import Event, Node, Pod, true_condition
from grid.queue.wait_estimate.capacity import Occupant, Rank, RoomFacts, RoomSeeker

MOST_SEEKERS = 500  # pods in line
MOST_NODES = 1_000  # that they wait for
NODES_AT_ONCE = 50  # some 2 ms of the loop


@dataclass(frozen=True, slots=True)
class OnNode:
    """A pod that starts on its node: for how many `seconds` it has been there, of which its image was pulled for `pulling`. `has_image` is
    None when the node does not tell, and `size` is the image's in bytes, None when no node tells."""

    image: str
    seconds: float
    pulling: float = 0.0
    has_image: bool | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Observed:
    """`new_nodes` says of an execution that starts whether it needs a node that is not there yet, or finds one; nothing of those that wait
    for room, and of others. `on_node` has those whose first pod is on a node."""

    new_nodes: Mapping[str, bool] = field(default_factory=dict)
    on_node: Mapping[str, OnNode] = field(default_factory=dict)
    room: RoomFacts = field(default_factory=RoomFacts)


def on_node(
    pod: Pod, events: Iterable[Event], node: Node | None, size_of: Callable[[str], int | None], *, now: datetime
) -> OnNode | None:
    """Return how far a pod has come on its node, None without one; `size_of` tells how large an image is, None when no node tells."""
    scheduled = true_condition(pod, "PodScheduled")
    since = scheduled.last_transition_time if scheduled is not None else None
    if not pod.spec.node_name or since is None or not pod.spec.containers:
        return None
    container = pod.spec.containers[0]
    seen = start_events(events, pod)
    pulled = next((image for image in seen.images if image.container in (container.name, "")), None)
    seconds = max(0.0, (now - since).total_seconds())
    if pulled is not None:
        took = (pulled.there_at - pulled.wanted_at).total_seconds() if pulled.wanted_at is not None else 0.0
        return OnNode(container.image, seconds, min(seconds, max(0.0, took)), has_image=True, size=pulled.size)
    reported = image_on(node, container.image) if node is not None else None
    size = reported.size_bytes if reported is not None else size_of(container.image)
    asked_at = seen.pulls.get(container.name) or seen.pulls.get("")  # nginx's pull is not that of the program
    if asked_at is not None:
        pulling = max(0.0, (now - asked_at).total_seconds())
        return OnNode(container.image, seconds, min(seconds, pulling), has_image=False, size=size)
    is_there = has_image(node, container.image, size) if node is not None else None
    return OnNode(container.image, seconds, has_image=is_there, size=size)


class OccupantTally:
    """Takes in the nodes that pods wait for, one by one, so that a caller can pause; `execution_of` returns "" of a pod of none."""

    def __init__(self, execution_of: Callable[[Pod], str], now: datetime) -> None:
        self._execution_of = execution_of
        self._now = now
        self._free: dict[str, ResourceAmounts] = {}
        self._occupants: list[Occupant] = []

    def count(self, node: Node, requested: ResourceAmounts, pods: Iterable[Pod]) -> None:
        name, size = node.metadata.name, resource_amounts(node.status.allocatable)
        self._free[name] = {resource: amount - requested.get(resource, 0) for resource, amount in size.items()}
        for pod in pods:
            execution, ends_within = self._execution_of(pod), _ends_within(pod, self._now)
            if holds_a_node(pod) and (execution or ends_within < inf):
                self._occupants.append(Occupant(execution, name, requested_amounts(pod), ends_within))

    def room(self, seekers: Sequence[RoomSeeker]) -> RoomFacts:
        return RoomFacts(seekers, self._occupants, self._free)


def seeker(pod: Pod, nodes: frozenset[str], execution: str, *, is_needed: bool) -> RoomSeeker:
    """Return a pod that waits for room on the nodes; `is_needed` when its execution does not start without it."""
    part = WORKER if pod.metadata.labels.get(APP_COMPONENT) == WORKER else "first"
    needs = {name: amount for name, amount in requested_amounts(pod).items() if amount > 0}
    return RoomSeeker(execution, needs, nodes, rank_of(pod), part if execution and is_needed else "")


def rank_of(pod: Pod) -> Rank:
    created = pod.metadata.creation_timestamp
    return -pod.spec.priority, created.timestamp() if created is not None else inf, pod.metadata.key


def _ends_within(pod: Pod, now: datetime) -> float:
    """Return after how many seconds the pod ends at the latest, by its timeout or because it is being deleted; for ever without either."""
    ends = []
    if pod.metadata.deletion_timestamp is not None:
        ends.append(pod.metadata.deletion_timestamp)
    if pod.spec.active_deadline_seconds and pod.status.start_time is not None:
        ends.append(pod.status.start_time + timedelta(seconds=pod.spec.active_deadline_seconds))
    return max(0.0, (min(ends) - now).total_seconds()) if ends else inf
