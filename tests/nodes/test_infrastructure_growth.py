"""The Infrastructure page while a cluster of somebody's grows: workers wait for their pool, a node comes, and they move there."""

import re
from typing import Any

import pytest

from grid.core.labels import NODE_POOL
from grid.kube.resources import CONFIG_MAPS, EVENTS, NODES, PODS
from grid.models import User
from grid.runtime import Runtime
from tests.clusters.clustering import head_pod, waiting_worker, worker_pod
from tests.conftest import People
from tests.shell.browsing import client_of
from tests.support import builders
from tests.support.cluster import FakeCluster
from tests.support.runtime import fill

POOL: dict[str, Any] = {"nodeSelector": {NODE_POOL: "default"}}
SIZE = {"cpu": "2", "memory": "8Gi"}  # of a worker: two of them fill a node


class Pool:
    """What the autoscaler and the scheduler do to the pool `default`, step by step."""

    def __init__(self, cluster: FakeCluster, runtime: Runtime) -> None:
        self._cluster, self._runtime = cluster, runtime

    def starts(self) -> None:
        """One node, with the head and one worker on it."""
        self._wants(1)
        self._cluster.put(NODES, builders.node("node-a"))
        self._cluster.put(PODS, head_pod("c", requests={"cpu": "500m", "memory": "1Gi"}))
        self._cluster.put(PODS, worker_pod("c", "aaaaa", requests=SIZE, spec=POOL))
        self._seen()

    def is_asked_for_two_more(self) -> None:
        for name in ("bbbbb", "ccccc"):
            self._cluster.put(PODS, waiting_worker("c", name, requests=SIZE, spec=POOL))
        self._seen()

    def starts_a_node(self) -> None:
        self._wants(2)
        message = "pod triggered scale-up: [{default 1->2 (max: 3)}]"
        about = waiting_worker("c", "bbbbb")
        event = builders.event(
            "e1", about=about, reason="TriggeredScaleUp", message=message, component="cluster-autoscaler"
        )
        self._cluster.put(EVENTS, event)
        self._seen()

    def node_joins(self) -> None:
        self._cluster.put(NODES, builders.node("node-b", ready=False))
        self._seen()

    def node_is_ready(self) -> None:
        self._cluster.put(NODES, builders.node("node-b"))
        for name in ("bbbbb", "ccccc"):
            self._cluster.put(PODS, worker_pod("c", name, node="node-b", requests=SIZE, spec=POOL))
        self._seen()

    def _wants(self, target: int) -> None:
        health = f"{{cloudProviderTarget: {target}, minSize: 1, maxSize: 3}}"
        status = f"nodeGroups: [{{name: default, health: {health}}}]"
        config_map = builders.config_map("cluster-autoscaler-status", {"status": status}, namespace="kube-system")
        self._cluster.put(CONFIG_MAPS, config_map)

    def _seen(self) -> None:
        fill(self._runtime, self._cluster)


@pytest.fixture
def pool(cluster: FakeCluster, runtime: Runtime) -> Pool:
    made = Pool(cluster, runtime)
    made.starts()
    return made


def shown(user: User) -> tuple[str, list[str], dict[str, str]]:
    """The pool's card, what its tiles say, and each node's row, as text."""
    page = client_of(user).get("/infrastructure/").content.decode()
    card = page.partition('<article id="pool-default"')[2].partition("</article>")[0]
    tiles = re.findall(r'class="tile [^"]*"[^>]*title="([^"]*)"', card)
    rows = dict(re.findall(r'<tr id="node-([^"]*)">(.*?)</tr>', page, re.DOTALL))
    return words(card), tiles, {name: words(row) for name, row in rows.items()}


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


@pytest.mark.django_db
def test_the_pool_tells_of_each_step_of_a_growth(people: People, pool: Pool) -> None:
    card, tiles, rows = shown(people.operator)
    assert "1 node; 1 to 3 allowed" in card
    assert tiles == ["node-a: Ready, 62 % requested", "may still come", "may still come"]

    pool.is_asked_for_two_more()
    card, tiles, _ = shown(people.operator)
    assert "2 pods waiting for a node" in card
    assert "on the way" not in card, "the autoscaler has not said so yet"

    pool.starts_a_node()
    card, tiles, rows = shown(people.operator)
    assert "1 node on the way 2 pods waiting for a node" in card
    assert tiles[1:] == ["on its way", "may still come"]
    assert list(rows) == ["node-a"]

    pool.node_joins()
    card, tiles, rows = shown(people.operator)
    assert "2 nodes, 1 ready; 1 to 3 allowed" in card
    assert "2 pods waiting for a node" in card
    assert "on the way" not in card, "it has come, and is not ready"
    assert tiles[1:] == ["node-b: Not ready, 0 % requested", "may still come"]
    assert "Not ready" in rows["node-b"]

    pool.node_is_ready()
    card, tiles, rows = shown(people.operator)
    assert "2 nodes; 1 to 3 allowed" in card
    assert "waiting" not in card
    assert tiles[1:] == ["node-b: Ready, 100 % requested", "may still come"]
    assert "Ready" in rows["node-b"]
    assert "Not ready" not in rows["node-b"]
