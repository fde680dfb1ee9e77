"""What the tier doctor costs a web process: counting the nodes by shape on the loop, and judging tiers in a thread.

    .venv/bin/python -m benchmarks.tierdoctor [NODES [PODS]]

One pool of NODES nodes of four machine types, each with PODS pods, eight of them of DaemonSets. In the second part every node has some
memory of its own, as real machines of one type do. Reported: milliseconds of five runs; the stretch is the longest without a pause.
"""

import asyncio
import sys
import time
from collections.abc import Mapping

from benchmarks.database import in_database
from grid.core.labels import NODE_POOL
from grid.kube.objects import (
    Condition,
    ContainerSpec,
    Metadata,
    Node,
    NodeStatus,
    OwnerReference,
    Pod,
    PodSpec,
    ResourceRequirements,
)

RUNS = 5
TIERS = 20
OWN_PODS = 8
_READY = (Condition(type="Ready", status="True"),)
_SMALL = ContainerSpec(name="run", resources=ResourceRequirements(requests={"cpu": "100m", "memory": "64Mi"}))


def node_of(number: int, *, varied: bool) -> Node:
    cores = (8, 16, 32, 64)[number % 4]
    memory = cores * 4 * 2**20 - (number * 4 if varied else 0)
    amounts = {"cpu": f"{cores * 1000 - 80}m", "memory": f"{memory}Ki", "ephemeral-storage": "90Gi", "pods": "110"}
    labels = {NODE_POOL: "default"}
    return Node(
        metadata=Metadata(name=f"n{number}", labels=labels), status=NodeStatus(allocatable=amounts, conditions=_READY)
    )


def pod_of(node: str, number: int) -> Pod:
    owner = (OwnerReference(kind="DaemonSet", name="agent", controller=True),) if number < OWN_PODS else ()
    metadata = Metadata(name=f"{node}-{number}", namespace="ns", owner_references=owner)
    return Pod(metadata=metadata, spec=PodSpec(containers=(_SMALL,), node_name=node))


async def measure(nodes: int, pods: int, *, varied: bool) -> None:
    from grid.models.dataplane import LOCAL
    from grid.runtime import new_runtime
    from grid.runtime.caches import pool_shapes
    from tests.support.cluster import FakeCluster

    caches = new_runtime({LOCAL: FakeCluster()}).data_planes[LOCAL]
    for number in range(nodes):
        node = node_of(number, varied=varied)
        caches.nodes.apply(node)
        for place in range(pods):
            caches.pods.apply(pod_of(node.metadata.name, place))
    for _ in range(RUNS):
        began = last = time.perf_counter()
        longest = 0.0
        counting = asyncio.create_task(pool_shapes(caches))
        while not counting.done():
            await asyncio.sleep(0)
            now = time.perf_counter()
            longest, last = max(longest, now - last), now
        pools = await counting
        counted = time.perf_counter()
        judge(pools)
        judged = time.perf_counter()
        took = (1000 * (counted - began), 1000 * longest, 1000 * (judged - counted))
        shapes = len(pools["default"].shapes)
        print(
            "counted {:7.1f}, stretch {:5.1f}, {} tiers judged {:7.1f}".format(*took[:2], TIERS, took[2]),
            f"{shapes} shapes",
        )


def judge(pools: Mapping[str, object]) -> None:
    from dashboard.tiers.viewmodels.tierchecks import tier_check
    from grid.diagnosis.nodeshapes import PoolShapes
    from grid.tiers.tierdoctor import TierRequest, examine

    pool = pools["default"]
    assert isinstance(pool, PoolShapes)
    for cores in range(1, TIERS + 1):
        request = TierRequest("default", {"cpu": cores * 1000, "memory": cores * 4 * 2**30, "pods": 1})
        tier_check(examine(request, pool), None, maximum_nodes=0)


def main(nodes: int, pods: int) -> None:
    print(f"{nodes:,} nodes, {nodes * pods:,} pods; milliseconds")
    for varied in (False, True):
        print("every node with memory of its own" if varied else "four sizes of node")
        asyncio.run(measure(nodes, pods, varied=varied))


if __name__ == "__main__":
    given = [int(number) for number in sys.argv[1:3]]
    in_database(lambda: main(*(given + [5000, 30][len(given) :])))
