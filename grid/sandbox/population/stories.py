"""Stories of the population: generators that make one change of the cluster at each step.

A story yields the least seconds before its next step, see `telling`. Each step reads the present state, so a pod that a client
has deleted meanwhile ends its story.
"""

import itertools
import random
from collections.abc import Callable
from typing import Protocol

from grid.core.labels import PREFIX
from grid.sandbox.client import Object
from grid.sandbox.population import happenings
from grid.sandbox.population.plan import PopulationPlan
from grid.sandbox.population.rooms import Rooms
from grid.sandbox.population.telling import Story

PODS, NODES, EVENTS = "pods", "nodes", "events"
STOCK_OUT_SECONDS = TROUBLE_SECONDS = 120.0
_RETRY_SECONDS = 15.0
NODE_SECONDS = 5.0  # until a removed node is replaced
_LOST_SECONDS = 40.0  # real clusters wait five minutes before they take pods from a silent node
_MAINTENANCE = {"key": f"{PREFIX}/maintenance", "value": "demo", "effect": "NoExecute"}
_BACK_OFFS = ("10s", "20s", "40s", "1m20s", "2m40s", "5m0s")


class World(Protocol):
    """The state that a story may read and change."""

    plan: PopulationPlan
    rooms: Rooms

    def now(self) -> str:
        """Return the time as Kubernetes writes it."""
        ...

    def read(self, resource: str, key: str) -> Object | None:
        """Return a copy of an object, or None."""
        ...

    def write(self, resource: str, key: str, obj: Object) -> None: ...

    def remove(self, resource: str, key: str) -> None:
        """Remove an object, if it still exists."""
        ...

    def add_pod(self, obj: Object) -> str:
        """Create a pod and return its key."""
        ...

    def add_node(self, pool: str) -> None:
        """Create a node, unless there are as many as are asked for."""
        ...

    def has_stock(self, pool: str) -> bool: ...

    def tell(self, about: Object, kind: str, reason: str, message: str, source: str) -> None:
        """Write an event."""
        ...


def comes_up(world: World, key: str, image: str = "") -> Story:
    """Place a new pod on a node and make it ready; while no node has room, let it wait with the reason."""
    while True:
        pod = world.read(PODS, key)
        if pod is None or key not in world.rooms:
            return
        pool = world.rooms.need_of(key).pool
        room = world.rooms.place(key) if world.has_stock(pool) else None
        if room is not None:
            break
        message = f"0/{len(world.rooms.nodes)} nodes are available: no node of pool {pool} has room for it."
        if "conditions" not in pod["status"]:
            happenings.unschedulable(pod, message, world.now())
            world.write(PODS, key, pod)
            world.tell(pod, "Warning", "FailedScheduling", message, "default-scheduler")
        if not world.has_stock(pool):
            why = f"1 in backoff after failed scale-up: pool {pool} is out of stock"
            world.tell(pod, "Normal", "NotTriggerScaleUp", f"pod didn't trigger scale-up: {why}", "cluster-autoscaler")
        yield _RETRY_SECONDS
    happenings.scheduled(pod, room.name, world.now())
    world.write(PODS, key, pod)
    yield 0.0
    if image:
        yield from _cannot_pull(world, key, image)
        return
    yield from _starts(world, key)


def _starts(world: World, key: str) -> Story:
    place = address(world.plan.rng)
    if _change(world, key, lambda pod: happenings.running(pod, place, world.now())):
        yield 0.0
    if _change(world, key, lambda pod: happenings.ready(pod, world.now())):
        yield 0.0


def _cannot_pull(world: World, key: str, image: str) -> Story:
    problem = f'failed to pull and unpack image "{image}": not found'
    for reason, message in (("ErrImagePull", problem), ("ImagePullBackOff", f'Back-off pulling image "{image}"')):
        if pod := _change(world, key, lambda pod, r=reason, m=message: happenings.waiting(pod, r, m, world.now())):  # type: ignore[misc]
            world.tell(pod, "Warning", "Failed", f'Failed to pull image "{image}": {problem}', "kubelet")
            yield 2.0
    yield TROUBLE_SECONDS
    if world.read(PODS, key) is not None:
        yield from is_replaced(world, key)


def address(rng: random.Random) -> str:
    """Return a random pod address."""
    return f"10.{rng.randrange(64, 128)}.{rng.randrange(256)}.{rng.randrange(1, 255)}"


def is_replaced(world: World, key: str, *, image: str = "") -> Story:
    """Delete a pod and create another of the same execution, with `image` if given. An execution of one pod ends instead."""
    pod = world.read(PODS, key)
    if pod is None:
        return
    if "generateName" not in pod["metadata"]:
        yield from ends(world, key)
        return
    going = goes(world, key)
    yield from itertools.islice(going, 1)
    successor = world.add_pod(_successor(world, pod, image))
    yield 0.0
    yield from going
    yield from comes_up(world, successor, image)


def goes(world: World, key: str) -> Story:
    """Delete a pod as Kubernetes does: first mark it, then remove it."""
    pod = world.read(PODS, key)
    if pod is None:
        return
    if "deletionTimestamp" not in pod["metadata"]:
        happenings.terminating(pod, world.now())
        world.write(PODS, key, pod)
        yield 0.0
    world.remove(PODS, key)
    yield 0.0


def crashes(world: World, key: str, code: int, reason: str, *, times: int = 1) -> Story:
    """Let a pod's container fail and start again, `times` times."""
    for number in range(times):
        back_off = _BACK_OFFS[min(number, len(_BACK_OFFS) - 1)]
        pod = _change(world, key, lambda pod, wait=back_off: happenings.crashed(pod, code, reason, wait, world.now()))  # type: ignore[misc]
        if pod is None:
            return
        world.tell(pod, "Warning", "BackOff", "Back-off restarting failed container run", "kubelet")
        yield min(10.0 * 2**number, 40.0)
        yield from _starts(world, key)
        yield 5.0


def finishes(world: World, key: str, code: int = 0) -> Story:
    """Finish a job's pod; its objects are removed a while later, unless a client does that before."""
    reason = "Completed" if code == 0 else "Error"
    if not _change(world, key, lambda pod: happenings.finished(pod, code, reason, world.now())):
        return
    world.rooms.finish_pod(key)
    yield 20.0
    yield from ends(world, key)


def ends(world: World, key: str) -> Story:
    """Remove an execution of one pod with all its objects."""
    yield from goes(world, key)
    world.remove("configmaps", key)


def node_is_lost(world: World, name: str) -> Story:
    """Let a node fall silent; replace its pods elsewhere, and then remove the node."""
    node = world.read(NODES, name)
    if node is None or name not in world.rooms.nodes:
        return
    room = world.rooms.nodes[name]
    room.is_open = False
    happenings.lost(node, world.now())
    world.write(NODES, name, node)
    world.tell(node, "Normal", "NodeNotReady", f"Node {name} status is now: NodeNotReady", "node-controller")
    yield 0.0
    pods = world.rooms.pods_on(name)
    for key in pods:
        if _change(world, key, lambda pod: happenings.unready(pod, world.now())):
            yield 0.0
    yield _LOST_SECONDS
    for key in pods:
        yield from is_replaced(world, key)
    world.remove(NODES, name)
    yield 0.0


def node_comes(world: World, pool: str) -> Story:
    world.add_node(pool)
    yield 0.0


def node_is_tainted(world: World, name: str) -> Story:
    """Taint a node for maintenance and replace its pods elsewhere; after a while restore the node."""
    node = world.read(NODES, name)
    if node is None:
        return
    room = world.rooms.nodes[name]
    room.is_open = False
    before = node["spec"].get("taints", [])
    node["spec"]["taints"] = [*before, {**_MAINTENANCE, "timeAdded": world.now()}]
    world.write(NODES, name, node)
    yield 2.0
    for key in world.rooms.pods_on(name):
        yield from is_replaced(world, key)
    yield TROUBLE_SECONDS
    node = world.read(NODES, name)
    if node is not None:
        node["spec"]["taints"] = before
        world.write(NODES, name, node)
        room.is_open = True


def _change(world: World, key: str, change: Callable[[Object], None]) -> Object | None:
    """Change a pod and return it; None when it is gone, terminating or finished."""
    pod = world.read(PODS, key)
    if pod is None or "deletionTimestamp" in pod["metadata"] or pod["status"]["phase"] in ("Succeeded", "Failed"):
        return None
    change(pod)
    world.write(PODS, key, pod)
    return pod


def _successor(world: World, before: Object, image: str) -> Object:
    """Return a newly created pod of the same execution; one of a ReplicaSet gets another name."""
    pod, uid = before, world.plan.uid()
    metadata = pod["metadata"]
    for gone in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        metadata.pop(gone, None)
    if "generateName" in metadata:
        metadata["name"] = metadata["generateName"] + world.plan.suffix(5)
    metadata["uid"], metadata["creationTimestamp"] = uid, world.now()
    pod["spec"].pop("nodeName", None)
    pod["status"] = {"phase": "Pending", "qosClass": pod["status"].get("qosClass", "Burstable")}
    container = pod["spec"]["containers"][0]
    if image:
        metadata.setdefault("annotations", {}).setdefault(_USUAL_IMAGE, container["image"])
        container["image"] = image
    elif _USUAL_IMAGE in metadata.get("annotations", {}):
        container["image"] = metadata["annotations"].pop(_USUAL_IMAGE)
    return pod


_USUAL_IMAGE = f"{PREFIX}/usual-image"
