"""What a process's caches show of executions that start, for the estimates of how long that takes. Call it on the event loop, which it
gives a pause again and again."""

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from itertools import islice

from django.conf import settings

from grid.core.labels import APP_COMPONENT, WORKER
from grid.core.workqueue import in_slices
from grid.diagnosis.nodeimages import size_of
from grid.kube.objects import Node, Pod, is_refused
from grid.queue.wait_estimate import observing
from grid.queue.wait_estimate.capacity import RoomFacts, RoomSeeker
from grid.queue.wait_estimate.observing import Observed, OnNode
from grid.runtime import Runtime
from grid.runtime.caches import id_of

STARTING = frozenset({"queued", "deploying", "preparing"})
_SEARCHED = 100  # nodes that are asked for an image's size: the history knows most
_PODS_AT_ONCE = 25  # some 2 ms of the loop


async def observed_starts(runtime: Runtime) -> Observed:
    now, nodes = runtime.clock(), list(islice(runtime.nodes.values(), _SEARCHED))
    new_nodes, on_node = dict[str, bool](), dict[str, OnNode]()

    @cache
    def known_size(image: str) -> int | None:
        return size_of(image, nodes)

    starting = [row.id for row in runtime.executions.values() if row.state in STARTING]
    async for id in in_slices(starting, _PODS_AT_ONCE):
        pods = _pods(runtime, id)
        if not pods:
            continue
        # The one that it waits for first: of a cluster, its head's.
        pod = next((pod for pod in pods if pod.metadata.labels.get(APP_COMPONENT) != WORKER), pods[0])
        node = runtime.nodes.get(pod.spec.node_name)
        if (needs := _needs_node(runtime, pod, node, now)) is not None:
            new_nodes[id] = needs
        seen = observing.on_node(pod, runtime.events.about_pod(pod), node, known_size, now=now)
        if seen is not None:
            on_node[id] = seen
    seekers = await waiting_for_room(runtime, now)
    return Observed(new_nodes, on_node, await room_beside(runtime, seekers, now))


async def waiting_for_room(runtime: Runtime, now: datetime) -> list[RoomSeeker]:
    """Return the first in line of the pods for which nothing but room is missing on nodes."""
    pools = list(runtime.pods.values_of("awaited_pool"))
    pods = [pod for pool in pools for pod in runtime.pods.by("awaited_pool", pool) if is_refused(pod)]
    seekers = []
    async for pod in in_slices(sorted(pods, key=observing.rank_of)[: observing.MOST_SEEKERS], _PODS_AT_ONCE):
        outlook = runtime.explainer.outlook(pod, now=now)
        if outlook is not None and outlook.nodes:
            id, is_worker = id_of(pod), pod.metadata.labels.get(APP_COMPONENT) == WORKER
            workers = [other for other in _pods(runtime, id) if other.metadata.labels.get(APP_COMPONENT) == WORKER]
            # Once a worker of a cluster has a node, the start needs no further one.
            is_needed = not is_worker or not any(other.spec.node_name for other in workers)
            seekers.append(observing.seeker(pod, outlook.nodes, id, is_needed=is_needed))
    return seekers


async def room_beside(runtime: Runtime, seekers: Sequence[RoomSeeker], now: datetime) -> RoomFacts:
    """Return what the seekers find on the nodes that they may use, of which the first are looked at."""
    facts = observing.OccupantTally(id_of, now)
    names = sorted(frozenset[str]().union(*(seeker.nodes for seeker in seekers)))
    async for name in in_slices(names[: observing.MOST_NODES], observing.NODES_AT_ONCE):
        if (node := runtime.nodes.get(name)) is not None:
            facts.count(node, runtime.room.requested(name), runtime.pods.by("node", name))
    return facts.room(seekers)


def _pods(runtime: Runtime, execution_id: str) -> list[Pod]:
    pods = runtime.pods.by("execution", execution_id) if execution_id else ()
    return [pod for pod in pods if pod.metadata.namespace == settings.GRID_NAMESPACE]


def _needs_node(runtime: Runtime, pod: Pod, node: Node | None, now: datetime) -> bool | None:
    """Return whether the pod's node is younger than the pod, or yet to start; None when unknown, or when it waits for room on others."""
    if not pod.spec.node_name:
        outlook = runtime.explainer.outlook(pod, now=now) if is_refused(pod) else None
        return True if outlook is not None and outlook.needs_node else None
    created = pod.metadata.creation_timestamp
    if node is None or node.metadata.creation_timestamp is None or created is None:
        return None
    return node.metadata.creation_timestamp > created
