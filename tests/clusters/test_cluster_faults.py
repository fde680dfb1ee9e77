"""Clusters under faults, with the controller's own loops: lost events, an API server that is gone while a cluster grows, and any order of
anything: slots are freed exactly once, and nothing is left."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from grid.clusters.changes import resize, restart_head
from grid.core.errors import ClusterUnavailable, Rejected
from grid.executions.stopping import request_stop
from grid.kube.resources import AUTOSCALERS, CONFIG_MAPS, DEPLOYMENTS, PODS, SERVICES, VOLUME_CLAIMS
from grid.models import Execution, LifecycleEntry, UsageInterval
from tests.clusters.test_cluster_life import UP, left
from tests.controller.world import Fault, Killed, World, fresh, in_world, states_of
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
        await passes(130)  # two audits
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
        await passes(60)
        assert world.cluster.count() - before < 100, "no hot loop"
        assert in_state(execution, "running")
        world.cluster.available = True
        await until(lambda: world.cluster.objects(AUTOSCALERS)[0]["spec"]["maxReplicas"] == 8, within=90)
        assert len(world.workers_of(execution)) == 5
        await until(lambda: execution.lifecycle.filter(reason="cluster_away").count() == 1, within=30)
        world.cluster.available = False
        request_stop(execution, by="alice", now=world.now)
        await passes(45)
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
            assert len([pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]) <= execution.slots

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
            life = Life(World(), shop.launch_with_cluster())
            for what in ["step", "behave", "step", "behave", *sequence]:
                await life.do(what)
            await life.end()

        run()
        UsageInterval.objects.all().delete()
        Execution.objects.all().delete()

    any_sequence()


# --- Killed at any call, and two at once: the same end, nothing twice, nothing left ---

STOPPED = [*UP, "stopping", "stopped"]


async def live(world: World, pair: list[Execution], fault: Fault) -> int:
    """A whole life with a resize and a new head on the way, and a new controller whenever one was killed."""
    cluster, first = pair[-1], pair[0]
    controller = world.controller(fault, monotonic=loop_time)
    wishes = [
        lambda: resize(cluster, minimum=2, maximum=3, by="alice", now=world.now),
        lambda: restart_head(cluster, by="alice", now=world.now),
        lambda: request_stop(first, by="alice", now=world.now),
    ]
    is_granted = [lambda _: True, lambda execution: execution.slots == 4, has_new_head]
    for _ in range(40):
        try:
            await world.step(controller)
        except Killed:
            controller = world.controller(monotonic=loop_time)
            continue
        states = [fresh(execution).state for execution in pair]
        if all(execution.is_final and execution.slots_freed_at for execution in pair):
            return fault.calls
        if set(states) == {"running"} and is_granted[0](cluster):
            is_granted.pop(0)
            wishes.pop(0)()
        world.behave()
        world.passes(1)
        await passes(11)
    raise AssertionError(f"not ended: {[states_of(execution) for execution in pair]}")


def has_new_head(cluster: Execution) -> bool:
    return LifecycleEntry.objects.filter(execution=cluster, reason="head_replaced").exists()


def check(world: World, pair: list[Execution]) -> None:
    for execution in pair:
        assert states_of(execution) == STOPPED, "each state once, in order"
        assert execution.slots_reserved_at is not None
        assert execution.slots_freed_at is not None
    cluster = pair[-1]
    assert world.most_pods <= len(pair) + 3
    assert cluster.slots == 4, "given back after the resize"
    assert LifecycleEntry.objects.filter(execution=cluster, reason="head_replaced").count() == 1
    assert LifecycleEntry.objects.filter(execution=cluster, reason="made_again").count() == 0
    assert left(world) == []
    assert len(world.cluster.objects(VOLUME_CLAIMS)) == len(pair), "the project's, and that of the workspace's owner"
    for kind, most in ((DEPLOYMENTS, 2), (AUTOSCALERS, 1), (SERVICES, 1)):
        assert world.cluster.count("create", kind) <= 2 * most, "only a lost answer makes it ask twice"
    assert world.cluster.count("create", PODS) <= 2 * (len(pair) - 1)


def launched(shop: Shop, is_attached: bool) -> list[Execution]:
    if is_attached:
        return list(shop.launch_with_cluster())
    return [shop.launch_cluster()]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("is_attached", "after", "first", "every"),
    [
        (True, False, 1, 31),
        # Every third, at other places in each of the four, for each takes a whole life of a cluster.
        *(
            pytest.param(is_attached, after, 1 + is_attached + after, 3, marks=pytest.mark.slow)
            for is_attached in (False, True)
            for after in (False, True)
        ),
    ],
)
@in_world
async def test_next_controller_completes_after_kills_at_many_calls(
    shop: Shop, is_attached: bool, after: bool, first: int, every: int
) -> None:
    """Killed before a call's effect or after it."""
    world, pair = World(), launched(shop, is_attached)
    calls = await live(world, pair, Fault())
    check(world, pair)
    assert calls > 80
    for at in range(first, calls + 1, every):
        world, pair = World(), launched(shop, is_attached)
        await live(world, pair, Fault(at=at, after=after))
        check(world, pair)


@in_world
async def test_two_controllers_at_once_do_nothing_twice(shop: Shop) -> None:
    """Leadership should prevent it; if it ever fails to, conditional writes do."""
    world, pair = World(), launched(shop, True)
    both = [world.controller(monotonic=loop_time), world.controller(monotonic=loop_time)]
    for step in range(20):
        for controller in both:
            await world.step(controller)
        if step == 6:
            restart_head(pair[1], by="alice", now=world.now)
        if step == 10:
            request_stop(pair[0], by="alice", now=world.now)
        world.behave()
        await passes(6)
    assert [fresh(execution).state for execution in pair] == ["stopped", "stopped"]
    assert [states_of(execution) for execution in pair] == [STOPPED, STOPPED]
    assert LifecycleEntry.objects.filter(execution=pair[1], reason="head_replaced").count() == 1
    assert left(world) == []
