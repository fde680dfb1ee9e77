"""Disruption budgets know how many pods they need; that evictions obey them, `tests/contract` promises."""

from pathlib import Path
from typing import Any

import pytest

from grid.sandbox.client import DEPLOYMENTS, DISRUPTION_BUDGETS, EVENTS, PODS, Mirrors, Object
from grid.sandbox.controllers.disruption import Needs, NoScale, needs_of, resolve
from grid.sandbox.controllers.manager import ControllerManager
from grid.sandbox.controllers.nodelifecycle import NodeTimeouts
from grid.sandbox.controllers.scheduler import Scheduler
from tests.sandbox.support import (
    FakeKubelet,
    FastClock,
    add_node,
    api_server,
    make_deployment,
    make_node,
    make_pod,
    running,
)
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


async def test_pods_without_controller_are_reported_and_not_expected(tmp_path: Path) -> None:
    clock = FastClock(speed=10)
    async with api_server(tmp_path, clock) as client:
        await add_node(client, make_node("a"))
        seen = Mirrors(client, clock=clock)
        budgets, events = seen.of(DISRUPTION_BUDGETS), seen.of(EVENTS)

        def status() -> Object:
            seen_budget: Object = budgets.get("default/web") or {}
            return seen_budget.get("status") or {}

        manager = ControllerManager(client, clock=clock, patience=NodeTimeouts(grace=1e6))
        async with seen.running(), running(Scheduler(client, clock=clock), manager, FakeKubelet(client, clock)):
            bare = make_pod("bare")
            bare["metadata"]["labels"] = {"app": "web"}
            await client.create(PODS.path("default"), bare)
            await client.create(DEPLOYMENTS.path("default"), make_deployment("web", 2))
            await client.create(DISRUPTION_BUDGETS.path("default"), budget(maxUnavailable=1))
            await eventually(lambda: status().get("currentHealthy") == 3, "all three run")
            assert status().items() >= {"expectedPods": 2, "desiredHealthy": 1, "disruptionsAllowed": 2}.items()
            (unmanaged,) = (event for event in events.values() if event["reason"] == "UnmanagedPods")
            assert "(selector: &LabelSelector{MatchLabels:map[string]string{app: web,}," in unmanaged["message"]
