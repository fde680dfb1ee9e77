"""The autoscaler's node groups as all pages know them: by the pool whose nodes, of now or of before, name them."""

from typing import Any

import pytest

from grid.core.labels import NODE_POOL
from grid.diagnosis.nodeshapes import NodeTemplate
from grid.kube.objects import Node
from grid.kube.resources import CONFIG_MAPS, NODES, PODS
from grid.models.dataplane import LOCAL
from grid.runtime.caches import pool_shapes
from tests.support import builders
from tests.support.builders import MOMENT, decode
from tests.support.cluster import FakeCluster
from tests.support.runtime import fill, runtime_of

GROUP = "eks-gpu-0cc1a2b3-4c5d-6e7f-8a9b-0c1d2e3f4a5b"


@pytest.fixture
def cluster() -> FakeCluster:
    cluster = FakeCluster()
    status = f"nodeGroups: [{{name: {GROUP}, health: {{minSize: 0, maxSize: 3, cloudProviderTarget: 1}}}}]"
    cluster.put(
        CONFIG_MAPS, builders.config_map("cluster-autoscaler-status", {"status": status}, namespace="kube-system")
    )
    return cluster


def node(**more: Any) -> dict[str, Any]:
    return builders.node("n1", pool="fast", labels={"eks.amazonaws.com/nodegroup": "gpu"}, **more)


async def test_group_belongs_to_the_pool_of_its_nodes(cluster: FakeCluster) -> None:
    runtime = runtime_of(cluster)
    assert runtime.groups.by_pool().keys() == {GROUP}
    cluster.put(NODES, node())
    fill(runtime, cluster)
    assert runtime.groups.by_pool().keys() == {"fast"}
    shapes = await pool_shapes(runtime.data_planes[LOCAL])
    assert {name: pool.maximum for name, pool in shapes.items()} == {"fast": 3}


def test_group_without_nodes_is_known_by_remembered_ones(cluster: FakeCluster) -> None:
    runtime = runtime_of(cluster)
    assert runtime.groups.by_pool().keys() == {GROUP}
    runtime.data_planes[LOCAL].templates.take({"fast": NodeTemplate(decode(node(), Node), {}, MOMENT)})
    assert runtime.groups.by_pool().keys() == {"fast"}


def test_group_never_seen_is_of_the_awaited_pool(cluster: FakeCluster) -> None:
    runtime = runtime_of(cluster)
    assert runtime.groups.by_pool().keys() == {GROUP}
    cluster.put(PODS, builders.pod("w", spec={"nodeSelector": {NODE_POOL: "gpu"}}))
    fill(runtime, cluster)
    assert runtime.groups.by_pool().keys() == {"gpu"}


def test_heartbeat_of_a_node_matches_no_groups_again(cluster: FakeCluster) -> None:
    cluster.put(NODES, node())
    runtime = runtime_of(cluster)
    before = runtime.groups.by_pool()
    cluster.put(NODES, node(annotations={"seen": "now"}))
    fill(runtime, cluster)
    assert runtime.groups.by_pool() is before
