"""Disruption budgets know how many of their pods are healthy, and evictions obey them."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from grid.core.errors import TooManyRequests
from grid.sandbox.client import DEPLOYMENTS, DISRUPTION_BUDGETS, EVENTS, PODS, Client, Mirrors, Object, name_of
from grid.sandbox.controllers.disruption import Needs, NoScale, needs_of, resolve
from grid.sandbox.controllers.manager import ControllerManager
from grid.sandbox.controllers.nodelifecycle import NodeTimeouts
from grid.sandbox.controllers.scheduler import Scheduler
from tests.sandbox.support import FakeKubelet, FastClock, add_node, api_server, make_deployment, make_node, running
from tests.support.waiting import eventually


def budget(**spec: Any) -> Object:
    return {
        "apiVersion": DISRUPTION_BUDGETS.api_version,
        "kind": DISRUPTION_BUDGETS.kind,
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
    }


@pytest.mark.parametrize(
    ("spec", "needs"),
    [
        ({"minAvailable": 2}, Needs(3, 2)),
        ({"minAvailable": "50%"}, Needs(4, 2)),
        ({"minAvailable": "51%"}, Needs(4, 3)),
        ({"maxUnavailable": 1}, Needs(4, 3)),
        ({"maxUnavailable": "30%"}, Needs(4, 2)),
        ({"maxUnavailable": 9}, Needs(4, 0)),
    ],
)
def test_how_many_must_be_healthy(spec: Object, needs: Needs) -> None:
    """Three pods are there, and four should be."""
    assert needs_of(budget(**spec), [{}, {}, {}], 4) == needs


def test_a_percentage_needs_to_know_of_what() -> None:
    with pytest.raises(NoScale):
        needs_of(budget(maxUnavailable=1), [{}], None)
    assert resolve("10%", 1) == 1


@dataclass(frozen=True, slots=True)
class Bench:
    client: Client
    seen: Mirrors

    def status(self) -> Object:
        """That of the budget."""
        return dict((self.seen.of(DISRUPTION_BUDGETS).get("default/web") or {}).get("status") or {})


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    clock = FastClock(speed=10)
    async with api_server(tmp_path, clock) as client:
        await add_node(client, make_node("a"))
        seen = Mirrors(client, clock=clock)
        for resource in (PODS, DISRUPTION_BUDGETS, EVENTS):
            seen.of(resource)
        manager = ControllerManager(client, clock=clock, patience=NodeTimeouts(grace=1e6))
        async with seen.running(), running(Scheduler(client, clock=clock), manager, FakeKubelet(client, clock)):
            yield Bench(client, seen)


async def test_evictions_are_granted_up_to_the_budget(bench: Bench) -> None:
    await bench.client.create(DISRUPTION_BUDGETS.path("default"), budget(minAvailable=2))
    await bench.client.create(DEPLOYMENTS.path("default"), make_deployment("web", 3))
    await eventually(lambda: bench.status().get("disruptionsAllowed") == 1, "one may go")
    counts = {"currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 3}
    assert bench.status().items() >= counts.items()
    assert [item["reason"] for item in bench.status()["conditions"]] == ["SufficientPods"]
    pods = bench.seen.of(PODS)
    first, second = sorted(name_of(pod) for pod in pods.values())[:2]
    await evict(bench.client, first)
    with pytest.raises(TooManyRequests):
        await evict(bench.client, second)
    await eventually(lambda: pods.get(f"default/{first}") is None, "the evicted pod is gone")
    await eventually(lambda: bench.status().get("disruptionsAllowed") == 1, "its successor is ready")


async def test_pods_without_controller_are_reported_and_not_expected(bench: Bench) -> None:
    bare = {"containers": [{"name": "run", "image": "i"}]}
    meta = {"name": "bare", "namespace": "default", "labels": {"app": "web"}}
    await bench.client.create(PODS.path("default"), {"metadata": meta, "spec": bare})
    await bench.client.create(DEPLOYMENTS.path("default"), make_deployment("web", 2))
    await bench.client.create(DISRUPTION_BUDGETS.path("default"), budget(maxUnavailable=1))
    await eventually(lambda: bench.status().get("currentHealthy") == 3, "all three run")
    assert bench.status().items() >= {"expectedPods": 2, "desiredHealthy": 1, "disruptionsAllowed": 2}.items()
    (unmanaged,) = (event for event in bench.seen.of(EVENTS).values() if event["reason"] == "UnmanagedPods")
    assert "(selector: &LabelSelector{MatchLabels:map[string]string{app: web,}," in unmanaged["message"]


async def evict(client: Client, pod: str) -> None:
    body: Object = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": "default"}}
    await client.create(PODS.path("default", pod, "eviction"), body)
