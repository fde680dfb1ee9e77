"""Tells whoever shows a pod that waits for a node that the pool it waits for has changed: its nodes, or the room on them.

In a busy pool some pod starts or ends all the time, so a change after a quiet moment is told at once, and those that follow together, once
in `REST_SECONDS` or more. `version` grows when a change is told, so that an answer which was computed for a version holds until then.
"""

import asyncio
from collections import defaultdict

from grid.core.labels import NODE_POOL
from grid.diagnosis.requests import holds_a_node
from grid.kube.hub import Hub, Topic
from grid.kube.objects import Node, Pod, is_ready
from grid.kube.store import Store

KIND = "room"
REST_SECONDS = 1.0
NODES_A_SECOND = 1_000  # an answer looks at every node, so a large cluster is looked at less often


def room_topic(pool: str) -> Topic:
    """Return the topic of a pool's nodes and their room; that of all nodes for ""."""
    return KIND, "pool", pool


class RoomChanges:
    """Versions of pools by name; "" is the version of all nodes together. Its listeners come after those of the `NodeRoom`."""

    def __init__(self, nodes: Store[Node], hub: Hub) -> None:
        self._nodes, self._hub = nodes, hub
        self.nodes_version = 0  # grows at once when a node changes in what matters to a pod
        self._versions: defaultdict[str, int] = defaultdict(int)
        self._changed: set[str] = set()
        self._loop: asyncio.AbstractEventLoop | None = None  # on which a timer runs

    def version(self, pool: str) -> int:
        return self._versions[pool]

    def node_changed(self, old: Node | None, new: Node | None) -> None:
        """Note a node that came, went, or differs in what matters to a pod; a node reports its health far more often."""
        if old is not None and new is not None and _as_pods_see(old) == _as_pods_see(new):
            return
        self.nodes_version += 1
        self._changed |= {node.metadata.labels.get(NODE_POOL, "") for node in (old, new) if node is not None}
        self._tell()

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Note a pod that takes or leaves room on a node."""
        before = old if old is not None and holds_a_node(old) else None
        after = new if new is not None and holds_a_node(new) else None
        if before is after or (before is not None and after is not None and before.spec == after.spec):
            return
        for pod in (before, after):
            if pod is not None:
                node = self._nodes.get(pod.spec.node_name)
                self._changed.add(node.metadata.labels.get(NODE_POOL, "") if node is not None else "")
        self._tell()

    def _tell(self) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._tell_now()
            return
        if self._loop is not loop:  # the former one has ended with its timer, or none runs
            self._tell_now()
            self._loop = loop
            loop.call_later(self._rest(), self._rested, loop)

    def _rested(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._changed:
            self._tell_now()
            loop.call_later(self._rest(), self._rested, loop)
        else:
            self._loop = None

    def _rest(self) -> float:
        return max(REST_SECONDS, len(self._nodes) / NODES_A_SECOND)

    def _tell_now(self) -> None:
        changed, self._changed = {*self._changed, ""}, set()
        for pool in changed:
            self._versions[pool] += 1
            self._hub.publish(room_topic(pool))


def _as_pods_see(node: Node) -> tuple[object, ...]:
    return is_ready(node), node.spec, node.metadata.labels, node.status.allocatable
