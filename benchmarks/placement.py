"""What it costs a web process to say why a pod has no node, while many pods wait in a large cluster.

    .venv/bin/python -m benchmarks.placement [NODES [WAITING]]

NODES nodes of two pools and four machine types, every tenth cordoned or not ready, each with three pods; WAITING pods of one pool that
find no room. CPU milliseconds, all on the event loop, of 15 runs: one answer from the scheduler's words alone; one from the objects after
a pod has come to the pool; the same with even spread over zones; and one after the other for all waiting pods, when all are alike, and
when no two request the same.
"""

import gc
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.database import in_database
from grid.core.labels import NODE_POOL
from grid.diagnosis.pods import explain_pod
from grid.kube.objects import (
    Condition,
    ContainerSpec,
    Metadata,
    Node,
    NodeSpec,
    NodeStatus,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from grid.kube.slim import LabelSelector, SpreadConstraint

if TYPE_CHECKING:
    from grid.runtime import Runtime

RUNS = 15
NAMESPACE = "compute-grid"
POOLS = ("general", "general", "general", "gpu")
NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
SAID = "0/5000 nodes are available: 1250 node(s) didn't match Pod's node affinity/selector, 3750 Insufficient cpu."
_UNSCHEDULED = (Condition(type="PodScheduled", status="False", reason="Unschedulable", message=SAID),)


def node_of(number: int) -> Node:
    name, cores = f"n{number}", (8, 16, 32, 64)[number % 4]
    labels = {NODE_POOL: POOLS[number // 4 % 4], "kubernetes.io/hostname": name, "zone": "abc"[number % 3]}
    labels |= {f"example.com/label-{each}": "value" for each in range(8)}
    amounts = {"cpu": f"{cores}", "memory": f"{cores * 4}Gi", "ephemeral-storage": "90Gi", "pods": "110"}
    ready = Condition(type="Ready", status="False" if number % 20 == 10 else "True")
    return Node(
        metadata=Metadata(name=name, labels=labels),
        spec=NodeSpec(unschedulable=number % 20 == 0),
        status=NodeStatus(allocatable=amounts, conditions=(ready,)),
    )


def pod_of(name: str, *, cores: float, memory: int = 1, node: str = "", spread: bool = False) -> Pod:
    requests = {"cpu": f"{int(1000 * cores)}m", "memory": f"{memory}Mi"}
    even = SpreadConstraint(
        max_skew=1, topology_key="zone", when_unsatisfiable="DoNotSchedule",
        label_selector=LabelSelector(match_labels={"app": "a"}),
    )  # fmt: skip
    return Pod(
        metadata=Metadata(
            name=name, uid=name, namespace=NAMESPACE, labels={"app": "a"}, creation_timestamp=NOW - timedelta(hours=1)
        ),
        spec=PodSpec(
            node_name=node,
            containers=(ContainerSpec(name="run", resources=ResourceRequirements(requests=requests)),),
            node_selector={} if node else {NODE_POOL: "general"},
            topology_spread_constraints=(even,) if spread else (),
        ),
        status=PodStatus(phase="Running" if node else "Pending", conditions=() if node else _UNSCHEDULED),
    )


def report(name: str, work: Callable[[], object], before: Callable[[], None], *, runs: int = RUNS) -> None:
    each = []
    for _ in range(runs):
        before()
        began = time.process_time()
        work()
        each.append((time.process_time() - began) * 1000)
    print(f"{name:46} {median(each):8.1f} ({max(each):.1f})")


def measure(runtime: "Runtime", nodes: int, waiting: int) -> None:
    for number in range(nodes):
        runtime.nodes.apply(node_of(number))
        for each in range(3):
            cores = (8, 16, 32, 64)[number % 4] / 3 - number % 97 / 100
            runtime.pods.apply(pod_of(f"n{number}-{each}", cores=cores, node=f"n{number}"))
    alike = [pod_of(f"a{number}", cores=6) for number in range(waiting)]
    various = [pod_of(f"v{number}", cores=6, memory=number + 1) for number in range(waiting)]
    for pod in (*alike, *various):
        runtime.pods.apply(pod)
    for store in (runtime.nodes, runtime.pods):
        store.mark_synced(0.0)
    gc.collect()
    gc.freeze()  # as `grid.runtime.garbage` does
    numbers = count()

    def nothing() -> None: ...

    def change() -> None:
        runtime.pods.apply(pod_of(f"c{next(numbers)}", cores=0.1, node="n1"))

    def explain(pods: list[Pod]) -> None:
        for pod in pods:
            explanation = runtime.explainer.explain(pod, names_others=True, now=NOW)
            assert explanation.table

    print(f"{nodes} nodes, {len(runtime.pods)} pods; CPU milliseconds: median (slowest)")
    report("one, from the scheduler's words", lambda: explain_pod(alike[0], (), now=NOW), nothing)
    report("one, from the objects", lambda: explain(alike[:1]), change)
    spread = [pod_of("s", cores=6, spread=True)]
    report("one that is to be spread over zones", lambda: explain(spread), change)
    report(f"{waiting} alike", lambda: explain(alike), change, runs=5)
    report(f"{waiting} of which no two are alike", lambda: explain(various), change, runs=2)
    print(runtime.explainer.explain(alike[0], names_others=True, now=NOW).sentence)


def main(nodes: int, waiting: int) -> None:
    from grid.models.dataplane import LOCAL
    from grid.runtime import new_runtime
    from tests.support.cluster import FakeCluster

    measure(new_runtime({LOCAL: FakeCluster()}), nodes, waiting)


if __name__ == "__main__":
    given = [int(number) for number in sys.argv[1:3]]
    in_database(lambda: main(*(given + [5_000, 1_000][len(given) :])))
