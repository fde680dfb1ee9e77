"""Thousands of nodes and pods to look at: as many as are asked for, as the product makes them, changing at the rate that is asked for."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from grid.core.labels import SIMULATED
from grid.core.quantity import parse_quantity
from grid.executions.manifests import build
from grid.executions.spec import EnvironmentSpec, ExecutionSpec, HomeSpec, ProjectSpec, TierSpec
from grid.sandbox.apiserver.defaults import apply_defaults
from grid.sandbox.apiserver.furnishing import furnish
from grid.sandbox.apiserver.kinds import Object, stored_kinds
from grid.sandbox.apiserver.registry import Registry
from grid.sandbox.apiserver.store import ObjectStore
from grid.sandbox.population import Population, Size, objects
from grid.sandbox.population.plan import TIERS, SimulatedEnvironment, SimulatedExecution
from tests.support.virtual import loop_time, passes, virtual_time

NAMESPACE = "compute-grid"


class LoopClock:
    """The loop's own time, from a fixed start."""

    def now(self) -> datetime:
        return datetime(2026, 11, 1, tzinfo=UTC) + timedelta(seconds=loop_time())

    def monotonic(self) -> float:
        return loop_time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@asynccontextmanager
async def populated(size: Size) -> AsyncIterator[Population]:
    """One that stands, and goes on inside the block."""
    clock = LoopClock()
    registry = Registry(ObjectStore(), clock=clock.now, rng=random.Random(1))
    furnish(registry)
    population = Population(registry, size, namespace=NAMESPACE, clock=clock)
    task = asyncio.create_task(population.run())
    try:
        await population.stands()
        yield population
        assert not task.done(), task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def store_of(population: Population) -> ObjectStore:
    return population._store


def pods(population: Population) -> list[Object]:
    return [record.obj for record in store_of(population).records("pods")]


def nodes(population: Population) -> list[Object]:
    return [record.obj for record in store_of(population).records("nodes")]


def states(population: Population) -> Counter[str]:
    """The reasons for which containers wait, and the phases of the rest."""
    counts: Counter[str] = Counter()
    for pod in pods(population):
        statuses = pod["status"].get("containerStatuses") or [{}]
        counts[statuses[0].get("state", {}).get("waiting", {}).get("reason") or pod["status"]["phase"]] += 1
    return counts


@virtual_time
async def test_nodes_are_not_overcommitted_and_the_rest_waits() -> None:
    async with populated(Size(4, 400)) as population:
        free = {node["metadata"]["name"]: dict(node["status"]["allocatable"]) for node in nodes(population)}
        left = {name: {key: parse_quantity(value) for key, value in each.items()} for name, each in free.items()}
        waiting = 0
        for pod in pods(population):
            if "nodeName" not in pod["spec"]:
                waiting += 1
                continue
            for key, value in pod["spec"]["containers"][0]["resources"]["requests"].items():
                if key != "ephemeral-storage":
                    left[pod["spec"]["nodeName"]][key] -= parse_quantity(value)
        assert waiting > 0
        assert min(amount for each in left.values() for amount in each.values()) >= Decimal(0)
        await passes(20)
        reasons = {
            pod["status"]["conditions"][0]["reason"] for pod in pods(population) if "nodeName" not in pod["spec"]
        }
        assert reasons == {"Unschedulable"}


def test_a_pod_is_as_the_product_makes_it() -> None:
    tier = TIERS[0]
    execution = SimulatedExecution(
        id="abcdefghij", uid="u", kind="workspace", title="Explore churn 7", owner="amara-0", project="churn-0",
        tier=tier, environment=SimulatedEnvironment("jupyterlab", "compute-grid/jupyterlab:4.6"),
    )  # fmt: skip
    cores, memory = tier.requests["cpu"], tier.requests["memory"]
    spec = ExecutionSpec(
        id=execution.id, kind=execution.kind, owner=execution.owner, title=execution.title, port=8888, address="http://x/",
        project=ProjectSpec(id=execution.project, volume_name="project-churn-0", volume_size="1Gi"),
        home=HomeSpec(volume_name="home-churn-0-amara-0", volume_size="1Gi"),
        tier=TierSpec(
            id=tier.id, name=tier.id, node_pool=tier.pool, cores=cores, cores_limit=cores, memory=memory,
            memory_limit=memory, ephemeral_storage="20Gi",
        ),
        environment=EnvironmentSpec(
            id="jupyterlab", name="J", image="compute-grid/jupyterlab:4.6",
            command=("jupyter", "lab", "--no-browser", "--ip=$(POD_IP)", "--port={port}", "--ServerApp.root_dir={project}"),
        ),
    )  # fmt: skip
    theirs: Any = build(spec, namespace=NAMESPACE, token="t", anchor_uid="u")[-1].body
    apply_defaults(stored_kinds()["pods"], theirs)
    # As admission does without a PriorityClass.
    theirs["spec"] |= {"priority": 0, "preemptionPolicy": "PreemptLowerPriority"}
    ours = objects.pod(execution, execution.name, "v", NAMESPACE, "2026-01-01T00:00:00Z")
    assert ours["spec"] == theirs["spec"]
    assert ours["metadata"]["labels"] == {**theirs["metadata"]["labels"], SIMULATED: "true"}
    for key in ("name", "annotations", "ownerReferences"):
        assert ours["metadata"][key] == theirs["metadata"][key]


@virtual_time
async def test_churn_has_its_rate_and_keeps_pod_count() -> None:
    async with populated(Size(40, 1000, churn=20)) as population:
        before = store_of(population).version
        events = store_of(population).count("events")
        await passes(60)
        changes = store_of(population).version - before - (store_of(population).count("events") - events)
        assert changes == pytest.approx(60 * 20, rel=0.15)
        assert len(pods(population)) == pytest.approx(1000, abs=60)
        assert {"CrashLoopBackOff", "Running", "Succeeded"} <= set(states(population))


@virtual_time
async def test_removed_pods_leave_nothing_and_empty_nodes_go() -> None:
    async with populated(Size(2, 20)) as population:
        store = store_of(population)
        others = {record.key for record in store.records("configmaps") if SIMULATED not in record.labels}
        for _ in range(2):
            population.resize(pods=900)
            await passes(5)
            assert len(nodes(population)) == 30
            population.resize(pods=0)
            await passes(5)
        assert (store.count("pods"), store.count("nodes"), store.count("replicasets.apps")) == (0, 2, 0)
        assert {record.key for record in store.records("configmaps")} == others


@virtual_time
async def test_pods_fail_on_demand_in_the_words_of_kubernetes() -> None:
    async with populated(Size(20, 300, churn=0)) as population:
        population.bad_image(4)
        population.out_of_memory(3)
        population.crash_loop(2)
        await passes(8)
        seen = states(population)
        assert (seen["ImagePullBackOff"], seen["CrashLoopBackOff"]) == (4, 5)


@virtual_time
async def test_lost_node_becomes_unreachable_and_its_pods_move() -> None:
    async with populated(Size(20, 300, churn=0)) as population:
        name = population.lose_node()
        assert population.rooms.pods_on(name)
        await passes(5)
        lost = next(node for node in nodes(population) if node["metadata"]["name"] == name)
        assert {each["status"] for each in lost["status"]["conditions"]} == {"Unknown"}
        assert {taint["effect"] for taint in lost["spec"]["taints"]} >= {"NoSchedule", "NoExecute"}
        await passes(120)
        assert name not in {node["metadata"]["name"] for node in nodes(population)}
        assert not population.rooms.pods_on(name)
        assert len(nodes(population)) == 20
