"""Asking running clusters: what their workers are told, what the autoscaler is told, and that one slow head delays nobody."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import aiohttp
import msgspec
import pytest

from grid.clusters.framework_poller import new_session
from grid.clusters.frameworks.base import ClusterReport, FrameworkSilent, WorkerPod, WorkerReport
from grid.controller.controller import Controller
from grid.core.labels import KEYS, POD_DELETION_COST
from grid.executions.spec import ExecutionSpec
from grid.executions.stopping import request_stop
from grid.kube.objects import RawObject
from grid.kube.resources import AUTOSCALERS, PODS
from grid.metrics.external import read_demand
from grid.models import ClusterSample, Execution
from tests.clusters.test_cluster_life import to_running
from tests.controller.world import World, in_world
from tests.support.shop import Shop
from tests.support.virtual import cancelled, loop_time, passes, repeat


class FakeFramework:
    """Says what a test has told it to, by cluster; a cluster of `slow` is never done with its answer."""

    def __init__(self) -> None:
        self.holds: dict[str, WorkerReport] = {}
        self.pending = 0
        self.wanted = 0
        self.slow: set[str] = set()
        self.silent: set[str] = set()
        self.broken: set[str] = set()
        self.asked: list[tuple[str, float]] = []

    async def ask(
        self, http: aiohttp.ClientSession, head_ip: str, spec: ExecutionSpec, workers: Sequence[WorkerPod]
    ) -> ClusterReport:
        self.asked.append((spec.id, loop_time()))
        if spec.id in self.slow:
            await asyncio.sleep(3600)
        if spec.id in self.silent:
            raise FrameworkSilent("The scheduler does not answer.")
        if spec.id in self.broken:
            raise KeyError("nobody expected this")
        report = {worker.name: self.holds.get(worker.name, WorkerReport(0)) for worker in workers}
        return ClusterReport(report, self.pending, self.wanted)

    def times(self, execution: Execution) -> list[float]:
        return [at for id, at in self.asked if id == execution.pk]


async def running_clusters(world: World, framework: FakeFramework, *executions: Execution) -> Controller:
    chosen: Any = lambda name: framework  # noqa: E731
    controller = world.controller(monotonic=loop_time, framework_of=chosen)
    for execution in executions:
        await to_running(world, controller, execution)
    for number, pod in enumerate(world.pods()):
        pod["status"]["podIP"] = f"127.4.0.{number + 1}"
        world.cluster.put(PODS, pod)
    world.refresh(controller)
    return controller


async def running_cluster(shop: Shop, **changes: Any) -> tuple[World, Execution, FakeFramework, Controller]:
    world, execution, framework = World(), shop.launch_cluster(**changes), FakeFramework()
    return world, execution, framework, await running_clusters(world, framework, execution)


@asynccontextmanager
async def asking(world: World, controller: Controller, *, every: int = 1) -> AsyncIterator[None]:
    """Its loop runs, and the caches follow the cluster, `every` so many seconds."""

    async def refresh() -> None:
        while True:
            world.refresh(controller)
            for _ in range(every):
                world.now += timedelta(seconds=1)
                await asyncio.sleep(1)

    tasks = [asyncio.create_task(repeat(controller.framework_poller.periodic())), asyncio.create_task(refresh())]
    try:
        yield
    finally:
        for task in tasks:
            await cancelled(task)


def copies(world: World, execution: Execution, number: int) -> list[Execution]:
    """More running clusters like this one, as the database and the caches show them."""
    head = world.head_of(execution)
    made = []
    for index in range(number):
        id = f"copy-{index}"
        row = Execution.objects.get(pk=execution.pk)
        row.pk, row.spec = id, {**row.spec, "id": id}
        row.save(force_insert=True)
        labels = {**head["metadata"]["labels"], KEYS.execution: id}
        named = {"name": id, "namespace": head["metadata"]["namespace"], "labels": labels}
        world.cluster.put(PODS, {**head, "metadata": named})
        made.append(row)
    return made


def annotations(pod: RawObject) -> dict[str, str]:
    return dict(pod["metadata"].get("annotations", {}))


def costs_of(world: World, execution: Execution) -> list[int]:
    return [int(annotations(pod).get(POD_DELETION_COST, "0")) for pod in world.workers_of(execution)]


def answered(world: World) -> set[str]:
    """The clusters of which a worker was told what it holds."""
    return {pod["metadata"]["labels"][KEYS.execution] for pod in world.pods() if KEYS.worker_report in annotations(pod)}


def name_of(pod: RawObject) -> str:
    return str(pod["metadata"]["name"])


@in_world
async def test_workers_are_told_their_load_and_busy_one_stays(shop: Shop) -> None:
    world, execution, framework, controller = await running_cluster(shop)
    busy, idle = world.workers_of(execution)
    framework.holds[name_of(busy)] = WorkerReport(tasks=3, bytes_held=5_123_456_789)
    async with asking(world, controller):
        await passes(12)
        first, second = world.workers_of(execution)
        assert msgspec.json.decode(annotations(first)[KEYS.worker_report]) == {"tasks": 3, "bytes": 5_100_000_000}
        assert msgspec.json.decode(annotations(second)[KEYS.worker_report]) == {"tasks": 0, "bytes": 0}
        assert costs_of(world, execution)[0] > costs_of(world, execution)[1] == 0
        written = world.cluster.count("patch", PODS)
        await passes(60)
        assert world.cluster.count("patch", PODS) == written, "nothing has changed"
        framework.holds[name_of(idle)] = WorkerReport(tasks=1)
        await passes(12)
        assert costs_of(world, execution)[1] > 0
    request_stop(execution, by="alice", now=world.now)


@in_world
async def test_restlessness_is_written_four_times_a_minute_at_most(shop: Shop) -> None:
    world, execution, framework, controller = await running_cluster(shop)
    restless = name_of(world.workers_of(execution)[0])
    async with asking(world, controller):
        for number in range(120):
            framework.holds[restless] = WorkerReport(tasks=number % 50 + 1)
            await passes(1)
        assert 4 <= world.cluster.count("patch", PODS) <= 10


@in_world
async def test_slow_or_silent_head_delays_nobody(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    world, framework = World(), FakeFramework()
    slow, silent, broken, well = [shop.launch_cluster(after=n) for n in range(4)]
    controller = await running_clusters(world, framework, slow, silent, broken, well)
    framework.slow, framework.silent, framework.broken = {slow.pk}, {silent.pk}, {broken.pk}
    framework.pending = 1  # with nothing to do they would be asked less often
    async with asking(world, controller):
        await passes(120)
        times = framework.times(well)
        assert all(4 < after - before < 6 for before, after in itertools.pairwise(times))
        assert len(times) > 18
        assert 4 <= len(framework.times(slow)) <= 7, "asked less often"
        assert answered(world) == {well.pk}
        for cluster in (slow, silent, broken):
            lines = [
                record
                for record in caplog.records
                if cluster.pk in record.getMessage() and "cannot be" in record.message
            ]
            assert len(lines) == 1, "told once"
        framework.silent.clear()
        framework.slow.clear()
        framework.broken.clear()
        await passes(40)
        assert answered(world) == {slow.pk, silent.pk, broken.pk, well.pk}


@in_world
async def test_idleness_watcher_is_told_which_heads_answer(shop: Shop) -> None:
    world, framework = World(), FakeFramework()
    well, silent = shop.launch_cluster(), shop.launch_cluster(after=1)
    controller = await running_clusters(world, framework, well, silent)
    reporting = controller.framework_poller.reporting
    async with asking(world, controller):
        assert reporting == set()
        await passes(30)
        assert reporting == {well.pk, silent.pk}
        framework.silent = {silent.pk}
        await passes(30)
        assert reporting == {well.pk}
        framework.silent.clear()
        await passes(60)
        assert reporting == {well.pk, silent.pk}
        Execution.objects.filter(pk=well.pk).update(state="stopping")
        await passes(30)
        assert reporting == {silent.pk}
        asked = len(framework.times(well))
        await passes(30)
        assert len(framework.times(well)) == asked, "what stops is asked no more"


@in_world
async def test_many_silent_heads_delay_nobody(shop: Shop) -> None:
    world, framework = World(), FakeFramework()
    well, first = shop.launch_cluster(), shop.launch_cluster(after=1)
    controller = await running_clusters(world, framework, well, first)
    silent = [first, *copies(world, first, 99)]
    world.refresh(controller)
    framework.slow = {cluster.pk for cluster in silent}
    framework.pending = 1  # with nothing to do it would be asked less often
    async with asking(world, controller, every=20):
        await passes(35)  # the first round asks all
        began = loop_time()
        await passes(130)
        times = [at for at in framework.times(well) if at > began]
        assert all(4 < after - before < 6 for before, after in itertools.pairwise(times))
        assert len(times) > 22
        asked = [len([at for at in framework.times(cluster) if at > began]) for cluster in silent]
        assert min(asked) >= 1, "none is forgotten"
        assert max(asked) <= 5, "none is asked often"
    for cluster in (silent[0], silent[50], silent[-1]):
        assert 8 <= ClusterSample.objects.filter(execution=cluster).count() <= 12, "the chart goes on"


@in_world
async def test_samples_are_written_four_times_a_minute_despite_silence(shop: Shop) -> None:
    world, framework = World(), FakeFramework()
    well, silent = shop.launch_cluster(), shop.launch_cluster(after=1)
    controller = await running_clusters(world, framework, well, silent)
    (autoscaler, *_) = [
        scaler
        for scaler in world.cluster.objects(AUTOSCALERS)
        if scaler["metadata"]["labels"][KEYS.execution] == well.pk
    ]
    current = {"averageUtilization": 93}
    autoscaler["status"] = {
        "desiredReplicas": 4,
        "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": current}}],
    }
    world.cluster.put(AUTOSCALERS, autoscaler)
    world.refresh(controller)
    framework.pending, framework.silent = 7, {silent.pk}
    async with asking(world, controller):
        await passes(121)
    samples = list(ClusterSample.objects.filter(execution=well))
    assert 7 <= len(samples) <= 10
    last = samples[-1]
    assert (last.ready, last.wanted) == (2, 4)
    assert (last.cpu_percent, last.memory_percent, last.pending_tasks) == (93, None, 7)
    other = ClusterSample.objects.filter(execution=silent).latest("at")
    assert (other.ready, other.wanted, other.pending_tasks) == (2, 2, None)


@in_world
async def test_new_leader_takes_no_sample_before_knowing_pods(shop: Shop) -> None:
    world, framework = World(), FakeFramework()
    execution = shop.launch_cluster()
    await running_clusters(world, framework, execution)
    chosen: Any = lambda name: framework  # noqa: E731
    successor = world.controller(monotonic=loop_time, framework_of=chosen)
    task = asyncio.create_task(repeat(successor.framework_poller.periodic()))
    await passes(30)
    assert not ClusterSample.objects.filter(execution=execution).exists()
    world.refresh(successor)
    await passes(10)
    assert ClusterSample.objects.get(execution=execution).ready == 2
    await cancelled(task)


@in_world
async def test_wanted_workers_are_written_onto_the_asking_autoscaler(shop: Shop) -> None:
    world, framework = World(), FakeFramework()
    asked, not_asked = shop.launch_cluster(on_demand=True), shop.launch_cluster(after=1)
    controller = await running_clusters(world, framework, asked, not_asked)
    framework.wanted = 9

    def demand(execution: Execution) -> Any:
        (own,) = [
            scaler
            for scaler in world.cluster.objects(AUTOSCALERS)
            if scaler["metadata"]["labels"][KEYS.execution] == execution.pk
        ]
        return read_demand(own["metadata"].get("annotations", {}).get(KEYS.demand, ""))

    async with asking(world, controller):
        await passes(12)
        assert (demand(asked).wanted, demand(not_asked)) == (9, None)
        await passes(120)
        assert (world.now - demand(asked).at) < timedelta(seconds=60), "never as old as the metrics API refuses"
        assert world.cluster.count("patch", AUTOSCALERS) <= 5
        framework.wanted = 0
        await passes(12)
        assert demand(asked).wanted == 0


@in_world
async def test_unanswered_write_does_not_end_visits_for_good(
    shop: Shop, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, cluster, framework, controller = await running_cluster(shop)
    patch, is_away = world.cluster.patch, True

    async def patched(*args: Any, **kwargs: Any) -> RawObject:
        if is_away:
            await asyncio.sleep(3600)
        return await patch(*args, **kwargs)

    monkeypatch.setattr(world.cluster, "patch", patched)
    async with asking(world, controller):
        await passes(20)
        assert "The cluster took too long to answer." in caplog.text
        assert len(framework.times(cluster)) > 1
        is_away = False
        await passes(30)
    assert answered(world) == {cluster.pk}


async def test_the_session_is_for_heads_only() -> None:
    async with new_session() as http:
        assert (http.timeout.total, http.trust_env) == (3.0, False)
