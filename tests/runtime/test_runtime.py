"""The runtime as a whole: starting without a cluster, following one, and stopping."""

import asyncio
from collections import Counter
from contextlib import ExitStack
from typing import Any

import pytest
from django.http import QueryDict
from django.utils import timezone

from dashboard.executions.pages.executions import ExecutionsPage
from dashboard.nodes.pages.infrastructure import InfrastructurePage
from dashboard.shell.access import Role, Viewer
from dashboard.shell.pages.feed import Feeds
from dashboard.shell.pages.periodic import PeriodicRead
from grid.controller.leader import LEASE
from grid.kube.resources import AUTOSCALERS, CONFIG_MAPS, EVENTS, LEASES, NODES, PODS
from grid.metrics.sources import MetricsApi
from grid.models.dataplane import LOCAL
from grid.nodes.scaledown import ScaleDownRules
from grid.runtime import (
    StartedRuntime,
    get_runtime,
    lives_of,
    new_runtime,
    start_runtime,
    started,
    stop_runtime,
    supervised,
)
from tests.support.builders import config_map, event, node, pod
from tests.support.cluster import FakeCluster
from tests.support.runtime import fill
from tests.support.virtual import cancelled, loop_time, passes, until, virtual_time


@pytest.mark.django_db(transaction=True)
async def test_runtime_starts_without_a_cluster_and_says_so(settings: Any, tmp_path: Any) -> None:
    settings.KUBECONFIG = str(tmp_path / "none")
    runtime = await start_runtime()
    try:
        assert get_runtime() is runtime
        assert await start_runtime() is runtime, "starting twice is starting once"
        assert [task.get_name() for task in asyncio.all_tasks()].count("runtime periodic tasks") == 1
        async with asyncio.timeout(20):
            with runtime.hub.subscribe({"pods", "nodes", "events", "config_maps"}) as subscription:
                while "no kubeconfig" not in runtime.freshness().error:
                    await subscription.changed()
        assert not runtime.freshness().synced
    finally:
        await stop_runtime()
    with pytest.raises(RuntimeError):
        get_runtime()
    await stop_runtime()


@virtual_time
async def test_runtime_follows_only_kinds_that_pages_read() -> None:
    cluster = FakeCluster()
    autoscaler = config_map("cluster-autoscaler-status", {"status": "ok"}, namespace="kube-system")
    a_pod = pod("p", node="n1", labels={"dominodatalab.com/execution-id": "x1"})
    for resource, obj in (
        (PODS, a_pod),
        (NODES, node("n1")),
        (EVENTS, event("e", about=a_pod)),
        (CONFIG_MAPS, autoscaler),
        (CONFIG_MAPS, config_map("somebody-elses", namespace="kube-system")),
    ):
        cluster.put(resource, obj)
    runtime = new_runtime({LOCAL: cluster}, monotonic=loop_time)
    lives = lives_of(runtime, MetricsApi)
    del lives["executions"]  # of the database
    running = StartedRuntime(runtime, started(lives))
    await until(lambda: runtime.freshness().synced)
    assert [pod.metadata.name for pod in runtime.pods.by("node", "n1")] == ["p"]
    assert [pod.metadata.name for pod in runtime.pods.by("execution", "x1")] == ["p"]
    assert len(runtime.events.about(kind="Pod", name="p", namespace="compute-grid")) == 1
    assert set(runtime.config_maps.keys()) == {"kube-system/cluster-autoscaler-status"}
    assert {request.verb for request in cluster.requests if request.resource != LEASES} == {"list", "watch"}
    leases = {(request.verb, request.name) for request in cluster.requests if request.resource == LEASES}
    assert leases == {("get", LEASE)}
    await running.stop()
    assert cluster.closed


@virtual_time
async def test_runtime_opens_a_single_watch_per_kind() -> None:
    cluster = FakeCluster()
    cluster.put(NODES, node("n1"))
    runtime = new_runtime({LOCAL: cluster}, monotonic=loop_time)
    lives = lives_of(runtime, MetricsApi)
    del lives["executions"]  # of the database
    running = StartedRuntime(runtime, started(lives))
    answers, operator = PeriodicRead(standard_rules, clock=timezone.now), Viewer(1, "olga", Role.OPERATOR)
    executions, infrastructure, feeds = ExecutionsPage(), InfrastructurePage(answers), Feeds()
    with ExitStack() as stack:
        opened = [
            stack.enter_context(feeds.joined(page, runtime, operator, page.view(QueryDict(f"text={number}"))))
            for page in (executions, infrastructure)
            for number in range(50)
        ]
        assert len(feeds) == 100
        await until(lambda: runtime.freshness().synced and all(feed.version for feed in opened))
        cluster.put(PODS, pod("p", node="n1"))
        await passes(10)
        kinds = {PODS, NODES, EVENTS, CONFIG_MAPS, AUTOSCALERS}
        assert Counter(watch.resource for watch in cluster.watches) == dict.fromkeys(kinds, 1)
        asked = Counter(request.resource for request in cluster.requests if request.verb == "watch")
        assert asked == dict.fromkeys(kinds, 1)
        assert len(runtime.pods) == 1
    await running.stop()


async def standard_rules() -> ScaleDownRules:
    return ScaleDownRules(threshold_percent=50, unneeded_seconds=600)


@virtual_time
async def test_its_freshness_is_that_of_its_worst_store() -> None:
    cluster = FakeCluster()
    runtime = new_runtime({LOCAL: cluster}, monotonic=loop_time)
    assert not runtime.freshness().synced
    fill(runtime, cluster)
    assert runtime.freshness().synced
    await passes(10)
    runtime.nodes.mark_failed("Nodes cannot be read.")
    freshness = runtime.freshness()
    assert (freshness.synced, freshness.behind_seconds, freshness.error) == (True, 10, "Nodes cannot be read.")


@virtual_time
async def test_crashed_loop_is_restarted(caplog: pytest.LogCaptureFixture) -> None:
    lives = 0

    async def life() -> None:
        nonlocal lives
        lives += 1
        if lives == 1:
            raise LookupError("unforeseen")

    task = asyncio.create_task(supervised("pods", life))
    await passes(11)
    await cancelled(task)
    assert lives == 3
    assert "unforeseen" in caplog.text
