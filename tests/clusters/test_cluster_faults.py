"""Clusters under faults, with the controller's own loops: lost events, an API server that is gone while a cluster grows, and any order of
anything: slots are freed exactly once, and nothing is left."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grid.clusters.changes import resize, restart_head
from grid.core.errors import ClusterUnavailable, Rejected
from grid.executions.stopping import request_stop
from grid.kube.resources import AUTOSCALERS, CONFIG_MAPS, DEPLOYMENTS, PODS, SERVICES
from grid.models import Execution, UsageInterval
from tests.clusters.test_cluster_life import left
from tests.controller.world import World, fresh, in_world, states_of
from tests.platformhealth.test_running import in_state, running
from tests.support.builders import NAMESPACE
from tests.support.shop import Shop
from tests.support.virtual import cancelled, loop_time, passes, until


@asynccontextmanager
async def living(world: World) -> AsyncIterator[None]:
    """Kubernetes does its work every second, however it is with its API server."""

    async def live() -> None:
        while True:
            world.behave()
            world.passes(1)
            await asyncio.sleep(1)

    task = asyncio.create_task(live())
    try:
        yield
    finally:
        await cancelled(task)


@in_world
async def test_workspace_and_its_cluster_start_and_end_unaided(shop: Shop) -> None:
    world = World()
    async with running(world), living(world):
        workspace, cluster = shop.launch_with_cluster()
        await until(lambda: in_state(workspace, "running") and in_state(cluster, "running"), within=20)
        request_stop(workspace, by="alice", now=world.now)
        await until(lambda: in_state(workspace, "stopped") and in_state(cluster, "stopped"), within=30)
        assert left(world) == []


@in_world
async def test_lost_events_cost_time_but_nothing_else(shop: Shop) -> None:
    world = World()
    async with running(world), living(world):
        execution = shop.launch_cluster()
        await until(lambda: in_state(execution, "running"), within=20)
        world.cluster.lose_events(100)
        for pod in world.pods():
            world.cluster.remove(PODS, pod["metadata"]["name"], namespace=NAMESPACE)
        world.cluster.remove(AUTOSCALERS, f"cluster-{execution.pk}-worker", namespace=NAMESPACE)
        world.cluster.remove(SERVICES, f"cluster-{execution.pk}-head", namespace=NAMESPACE)
        await passes(200)
        assert in_state(execution, "running")
        assert len(world.cluster.objects(AUTOSCALERS)) == len(world.cluster.objects(SERVICES)) == 1
        request_stop(execution, by="alice", now=world.now)
        await until(lambda: in_state(execution, "stopped"), within=60)
        assert execution.slots_freed_at is not None
        assert left(world) == []


@in_world
async def test_the_api_server_is_gone_while_the_cluster_grows(shop: Shop) -> None:
    world = World()
    async with running(world), living(world):
        execution = shop.launch_cluster()
        await until(lambda: in_state(execution, "running"), within=20)
        world.wanted[f"cluster-{execution.pk}-worker"] = 5
        world.cluster.available = False
        resize(execution, minimum=2, maximum=8, by="alice", now=world.now)
        before = world.cluster.count()
        await passes(150)
        assert world.cluster.count() - before < 150, "no hot loop"
        assert in_state(execution, "running")
        world.cluster.available = True
        await until(lambda: world.cluster.objects(AUTOSCALERS)[0]["spec"]["maxReplicas"] == 8, within=90)
        assert len(world.workers_of(execution)) == 5
        await until(lambda: execution.lifecycle.filter(reason="cluster_away").count() == 1, within=30)
        world.cluster.available = False
        request_stop(execution, by="alice", now=world.now)
        await passes(120)
        assert execution.slots_freed_at is None
        world.cluster.available = True
        await until(lambda: in_state(execution, "stopped"), within=90)
        assert left(world) == []


class Life:
    """One workspace with a cluster, to which anything may happen."""

    def __init__(self, world: World, pair: tuple[Execution, Execution]) -> None:
        self.world = world
        self.workspace, self.cluster = pair
        self.controller = world.controller(monotonic=loop_time)
        self.freed: dict[str, Any] = {}

    async def do(self, what: str) -> None:
        world, cluster = self.world, self.cluster
        simple: dict[str, Callable[[], object]] = {
            "behave": world.behave,
            "stop workspace": lambda: request_stop(self.workspace, by="alice", now=world.now),
            "stop cluster": lambda: request_stop(cluster, by="bob", now=world.now),
            "new head": lambda: restart_head(fresh(cluster), by="alice", now=world.now),
            "small": lambda: resize(fresh(cluster), minimum=1, maximum=1, by="alice", now=world.now),
            "large": lambda: resize(fresh(cluster), minimum=3, maximum=6, by="alice", now=world.now),
            "new controller": self._replace,
            "fail": lambda: world.cluster.fail_next(ClusterUnavailable("gone")),
            "lose pods": lambda: self._lose(PODS),
            "lose deployments": lambda: self._lose(DEPLOYMENTS),
            "lose service": lambda: self._lose(SERVICES),
            "lose anchors": lambda: self._lose(CONFIG_MAPS),
            "lose scaler": lambda: self._lose(AUTOSCALERS),
        }
        try:
            if what == "step":
                await self.world.step(self.controller)
            elif what == "stale step":
                await self.world.step(self.controller, fresh=False)
            elif what == "audit":
                await self.controller.audit()
            elif what == "wait":
                await passes(40)
            else:
                simple[what]()
        except (Rejected, ClusterUnavailable):
            pass  # refused, and nothing has happened
        self.check()

    def _replace(self) -> None:
        self.controller = self.world.controller(monotonic=loop_time)

    def _lose(self, kind: Any) -> None:
        for item in self.world.cluster.objects(kind)[:1]:
            self.world.cluster.remove(kind, item["metadata"]["name"], namespace=NAMESPACE)

    def check(self) -> None:
        for execution in (self.workspace, self.cluster):
            fresh(execution)
            known = self.freed.setdefault(execution.pk, execution.slots_freed_at)
            assert known in (None, execution.slots_freed_at), "freed once"
            self.freed[execution.pk] = execution.slots_freed_at
            pods = [
                pod
                for pod in self.world.pods()
                if pod["metadata"]["labels"].get("app.kubernetes.io/instance") == execution.object_name
            ]
            if execution.slots_freed_at is not None:
                assert pods == [], "slots are free only when the pods are gone"
            alive = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
            assert len(alive) <= execution.slots

    async def end(self) -> None:
        request_stop(self.workspace, by="alice", now=self.world.now)
        self.world.cluster.heal()
        for _ in range(14):
            for what in ("step", "behave", "wait"):
                await self.do(what)
        for execution in (self.workspace, self.cluster):
            assert execution.is_final, states_of(execution)
            assert bool(execution.slots_reserved_at) == bool(execution.slots_freed_at)
            assert len(states_of(execution)) == len(set(states_of(execution)))
        assert left(self.world) == []


WHAT = [
    *("step", "step", "step", "behave", "behave", "behave", "stale step", "audit", "wait", "fail", "new controller"),
    *("stop workspace", "stop cluster", "new head", "small", "large"),
    *("lose pods", "lose deployments", "lose service", "lose anchors", "lose scaler"),
]


@pytest.mark.parametrize("examples", [4, pytest.param(12, marks=pytest.mark.slow)])
def test_slots_are_freed_exactly_once_after_any_sequence(shop: Shop, examples: int) -> None:
    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.sampled_from(WHAT), min_size=5, max_size=30))
    def any_sequence(sequence: list[str]) -> None:
        @in_world
        async def run() -> None:
            world = World()
            life = Life(world, shop.launch_with_cluster())
            for what in ["step", "behave", "step", "behave", *sequence]:
                await life.do(what)
            await life.end()

        run()
        UsageInterval.objects.all().delete()
        Execution.objects.all().delete()

    any_sequence()
