"""The samples of node pools: what one says, that a minute has one writer, what is kept, and that a lost one ends nothing."""

from typing import Any

import pytest
from asgiref.sync import async_to_sync

from grid.core.labels import NODE_POOL, PLATFORM_NODE
from grid.diagnosis.requests import Amounts
from grid.kube.resources import CONFIG_MAPS, NODES, PODS
from grid.metrics.usage import Measured, Usage
from grid.models import PoolSample, State
from grid.models.dataplane import LOCAL
from grid.models.pool import ALL_POOLS
from grid.runtime import Runtime
from grid.runtime.poolsamples import DELETED_AT_ONCE, KEPT_MINUTES, PoolSampler, PoolTally, sample_of, store
from tests.conftest import People
from tests.executions.executing import make_execution, make_project
from tests.support import builders
from tests.support.cluster import FakeCluster
from tests.support.runtime import runtime_of

MINUTE = 29_000_000
STATUS = "nodeGroups: [{name: default-gpu, health: {cloudProviderTarget: 0, minSize: 0, maxSize: 2}}]"


@pytest.fixture
def cluster() -> FakeCluster:
    """Two nodes of the pool default, one of them not ready; a pod that has ended; one that waits; a pool that may grow."""
    cluster = FakeCluster()
    cluster.put(NODES, builders.node("n1", cpu="8", memory="32Gi"))
    cluster.put(NODES, builders.node("n2", cpu="8", memory="32Gi", ready=False))
    asked = {"cpu": "1500m", "memory": "2Gi"}
    cluster.put(PODS, builders.pod("works", node="n1", phase="Running", ready=True, requests=asked))
    cluster.put(PODS, builders.pod("has-ended", node="n1", phase="Succeeded", requests=asked))
    cluster.put(PODS, builders.pod("waits", requests=asked, spec={"nodeSelector": {NODE_POOL: "default"}}))
    data = {"status": STATUS}
    cluster.put(CONFIG_MAPS, builders.config_map("cluster-autoscaler-status", data, namespace="kube-system"))
    return cluster


def sampler(cluster: FakeCluster, minute: int = MINUTE, *, runtime: Runtime | None = None, **more: Any) -> PoolSampler:
    runtime = runtime or runtime_of(cluster)
    more.setdefault("monotonic", runtime.monotonic)
    return PoolSampler(runtime.data_planes[LOCAL], clock=lambda: minute * 60.0 + 12, **more)


def take(*samplers: PoolSampler) -> None:
    for sampler in samplers:
        async_to_sync(sampler.run_once)()


@pytest.mark.django_db
def test_a_sample_says_what_the_pages_say(cluster: FakeCluster, people: People) -> None:
    project = make_project(people.owner)
    for state in (State.RUNNING, State.RUNNING, State.QUEUED, State.PREPARING, State.STOPPING):
        make_execution(people.owner, project, state=state)
    runtime = runtime_of(cluster)
    runtime.usage.replace(Measured({"n1": Usage(500, 2**30), "n2": Usage(200, 2 * 2**30)}, {}))
    take(sampler(cluster, runtime=runtime))
    whole, default, gpu = PoolSample.objects.order_by("pool")
    assert (default.pool, default.minute, default.nodes, default.nodes_ready) == ("default", MINUTE, 2, 1)
    assert (default.requested_millicores, default.allocatable_millicores, default.used_millicores) == (1500, 16000, 700)
    assert (default.requested_mebibytes, default.allocatable_mebibytes, default.used_mebibytes) == (2048, 65536, 3072)
    assert (default.pods_waiting, default.executions_running, default.executions_waiting) == (1, 2, 2)
    assert (gpu.pool, gpu.nodes, gpu.used_millicores, gpu.executions_running) == ("default-gpu", 0, None, 0)
    assert (whole.pool, whole.nodes, whole.used_millicores, whole.executions_running) == (ALL_POOLS, 2, 700, 2)


@pytest.mark.django_db
def test_sample_of_all_pools_leaves_out_platform_nodes(cluster: FakeCluster) -> None:
    cluster.put(NODES, builders.node("p1", pool="platform", cpu="8", memory="32Gi"))
    cluster.put(NODES, builders.node("p2", labels={PLATFORM_NODE: "true"}, cpu="8", memory="32Gi"))
    take(sampler(cluster))
    samples = {sample.pool: sample for sample in PoolSample.objects.all()}
    assert samples["platform"].allocatable_millicores == 8000
    whole = samples[ALL_POOLS]
    assert (whole.nodes, whole.allocatable_millicores, whole.pods_waiting) == (2, 16000, 1)


@pytest.mark.parametrize(("measured", "used"), [(0, None), (2, None), (3, 900)])
def test_use_is_unknown_unless_most_nodes_are_measured(measured: int, used: int | None) -> None:
    tally = PoolTally(nodes=4, used=Amounts(900, 2**30), measured=measured)
    assert sample_of("default", MINUTE, tally, {}).used_millicores == used


@pytest.mark.django_db
def test_two_that_write_at_once_leave_one_sample() -> None:
    store(MINUTE, {"default": PoolTally(nodes=2)})
    store(MINUTE, {"default": PoolTally(nodes=3), "new": PoolTally()})
    assert dict(PoolSample.objects.values_list("pool", "nodes")) == {"default": 2, "new": 0}


@pytest.mark.django_db
def test_samples_are_kept_a_day_and_purged_in_pieces() -> None:
    for age in range(KEPT_MINUTES + 3):
        PoolSample.objects.bulk_create([_empty(MINUTE - 1 - age)])
    PoolSample.objects.bulk_create([_empty(minute) for minute in range(200)])
    store(MINUTE, {"default": PoolTally()})
    assert PoolSample.objects.filter(minute__lt=200).count() == 200 - DELETED_AT_ONCE
    for later in range(1, 6):
        store(MINUTE + later, {"default": PoolTally()})
    kept = PoolSample.objects.filter(pool="default").values_list("minute", flat=True)
    assert (min(kept), len(kept)) == (MINUTE + 5 - KEPT_MINUTES + 1, KEPT_MINUTES)


def _empty(minute: int) -> PoolSample:
    units = ("millicores", "mebibytes", "gpus")
    amounts = [f"{word}_{unit}" for word in ("requested", "allocatable") for unit in units]
    counts = ("nodes", "nodes_ready", "pods_waiting", "executions_running", "executions_waiting")
    return PoolSample(pool="default", minute=minute, **dict.fromkeys((*amounts, *counts), 0))


@pytest.mark.django_db
@pytest.mark.parametrize("late", [0, 3600])
def test_lagging_process_writes_no_sample(cluster: FakeCluster, late: float) -> None:
    runtime = runtime_of(cluster)
    take(sampler(cluster, runtime=runtime, monotonic=lambda: runtime.monotonic() + late))
    assert PoolSample.objects.exists() is (late == 0)
