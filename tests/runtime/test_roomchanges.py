"""Who waits for a node is told that its pool has changed: at once after a quiet moment, else once a second, and of nothing else."""

from typing import Any

import pytest

from grid.kube.hub import Hub
from grid.kube.objects import Node, Pod
from grid.kube.store import Store
from grid.runtime.roomchanges import RoomChanges, room_topic
from tests.support import builders
from tests.support.builders import decode
from tests.support.virtual import passes, virtual_time

FAST, SLOW, ALL = room_topic("fast"), room_topic("slow"), room_topic("")


class Scene:
    def __init__(self) -> None:
        self.hub, self.nodes, self.pods = Hub(), Store[Node]("nodes"), Store[Pod]("pods")
        self.changes = RoomChanges(self.nodes, self.hub)
        for name, pool in (("f1", "fast"), ("f2", "fast"), ("s1", "slow")):
            self.node(name, pool=pool)
        self.pods.subscribe(self.changes.pod_changed)
        self.nodes.subscribe(self.changes.node_changed)

    def node(self, name: str, **more: Any) -> None:
        self.nodes.apply(decode(builders.node(name, **more), Node))

    def pod(self, name: str, **more: Any) -> None:
        self.pods.apply(decode(builders.pod(name, **more), Pod))

    def changed(self) -> "set[Any]":
        """The topics of the versions that have grown since the last call."""
        now = {pool: self.changes.version(pool) for pool in ("fast", "slow", "")}
        before, self._seen = getattr(self, "_seen", dict.fromkeys(now, 0)), now
        return {room_topic(pool) for pool in now if now[pool] != before[pool]}


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_pod_placement_changes_the_pool_of_its_node(scene: Scene) -> None:
    scene.pod("p", phase="Pending")
    assert scene.changed() == set(), "a pod that waits takes no room"
    scene.pod("p", node="f1", phase="Pending")
    assert scene.changed() == {FAST, ALL}
    scene.pod("p", node="f1", phase="Running", ready=True)
    assert scene.changed() == set(), "it holds what it held"
    scene.pod("p", node="f1", phase="Succeeded")
    assert scene.changed() == {FAST, ALL}
    scene.pods.discard("compute-grid/p")
    assert scene.changed() == set()
    scene.pod("q", node="s1", phase="Running")
    scene.pods.discard("compute-grid/q")
    assert scene.changed() == {SLOW, ALL}


@pytest.mark.parametrize(
    "change",
    [
        {"unschedulable": True},
        {"ready": False},
        {"taints": [{"key": "k", "effect": "NoSchedule"}]},
        {"labels": {"zone": "b"}},
        {"cpu": "3"},
    ],
)
def test_node_changes_its_pool_by_relevant_fields(scene: Scene, change: dict[str, Any]) -> None:
    scene.node("f1", pool="fast", **change)
    assert scene.changed() == {FAST, ALL}


def test_a_nodes_reports_of_its_health_change_nothing(scene: Scene) -> None:
    beat = builders.condition("Ready", "True") | {"lastHeartbeatTime": "2026-03-04T10:00:00Z"}
    scene.node("f1", pool="fast", conditions=[beat], annotations={"beat": "1"})
    assert scene.changed() == set()


def test_node_added_removed_or_moved_changes_its_pools(scene: Scene) -> None:
    scene.node("f3", pool="fast")
    assert scene.changed() == {FAST, ALL}
    scene.node("f3", pool="slow")
    assert scene.changed() == {FAST, SLOW, ALL}
    scene.nodes.discard("f3")
    assert scene.changed() == {SLOW, ALL}


@virtual_time
async def test_first_room_change_is_immediate_and_floods_are_throttled() -> None:
    scene = Scene()
    with scene.hub.subscribe({FAST}) as fast, scene.hub.subscribe({SLOW}) as slow:
        scene.pod("first", node="f1", phase="Running")
        assert fast.taken() == {FAST}
        count = 0
        for number in range(350):
            scene.pod(f"p{number}", node="f1", phase="Running")
            await passes(0.01)
            count += len(fast.taken())
        assert 2 <= count <= 4
        await passes(2)
        assert fast.taken() == {FAST}, "nor is the last change lost"
        scene.pod("after a quiet moment", node="f2", phase="Running")
        assert fast.taken() == {FAST}
        assert slow.taken() == set(), "another pool's pages sleep on"
