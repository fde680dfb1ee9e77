"""The shapes of the pools as the watch caches hold them."""

from grid.kube.resources import CONFIG_MAPS, NODES, PODS
from grid.models.dataplane import LOCAL
from grid.runtime.caches import NODES_AT_ONCE, pool_shapes
from tests.runtime.test_poolsamples import STATUS
from tests.support import builders
from tests.support.cluster import FakeCluster
from tests.support.runtime import runtime_of

DAEMON = {"kind": "DaemonSet", "apiVersion": "apps/v1", "metadata": {"name": "agent", "uid": "1"}}


async def test_pools_with_possible_nodes_are_listed_and_counted_lazily() -> None:
    cluster = FakeCluster()
    for number in range(NODES_AT_ONCE + 1):
        cluster.put(NODES, builders.node(f"n{number}", cpu="8"))
    cluster.put(NODES, builders.node("big", pool="big", cpu="64"))
    cluster.put(NODES, builders.node("platform", pool=""))
    cluster.put(PODS, builders.pod("agent", node="big", phase="Running", requests={"cpu": "2"}, owner=DAEMON))
    cluster.put(
        CONFIG_MAPS,
        {"metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"}, "data": {"status": STATUS}},
    )
    caches = runtime_of(cluster).data_planes[LOCAL]
    shapes = await pool_shapes(caches)
    assert list(shapes) == ["big", "default", "default-gpu"]
    assert [(shape.nodes, shape.free["cpu"]) for shape in shapes["default"].shapes] == [(NODES_AT_ONCE + 1, 8000)]
    assert [shape.free["cpu"] for shape in shapes["big"].shapes] == [62000]
    assert (shapes["default-gpu"].shapes, shapes["default-gpu"].maximum) == ((), 2)
    only = await pool_shapes(caches, only="big")
    assert (list(only), only["default"].shapes) == (list(shapes), ())
    assert only["big"] == shapes["big"]
