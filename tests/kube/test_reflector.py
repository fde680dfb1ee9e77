"""The promises of a reflector while the cluster is well, or briefly is not."""

import asyncio
import logging
from contextlib import AsyncExitStack
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from grid.core.errors import ClusterUnavailable, Expired
from grid.kube.objects import Pod
from grid.kube.reflector import ListWatch
from grid.kube.resources import PODS
from grid.observability.telemetry import REGISTRY
from tests.kube.following import cluster_of, following
from tests.support.builders import pod
from tests.support.cluster import FakeCluster
from tests.support.virtual import passes, until, virtual_time

pytestmark = pytest.mark.usefixtures("both_ways")


@virtual_time
async def test_the_store_is_not_synced_before_the_last_page() -> None:
    cluster = cluster_of("a", "b", "c")
    cluster.fail_next(ClusterUnavailable("down"), verb="list")
    async with following(cluster) as it:
        assert not it.freshness().synced
        await until(lambda: it.freshness().error == "down")
        assert not it.freshness().synced
        await until(lambda: it.freshness().synced)
        assert it.is_equal()
        assert it.freshness().error == ""


@virtual_time
async def test_dropped_watch_resumes_without_loss_or_repetition() -> None:
    cluster = cluster_of("a")
    async with following(cluster) as it:
        await until(lambda: cluster.open_watches == 1)
        cluster.put(PODS, pod("b"))
        await until(lambda: it.names() == {"a", "b"})
        cluster.drop_watch()
        cluster.put(PODS, pod("c"))
        cluster.remove(PODS, "a", namespace="compute-grid")
        await until(lambda: it.names() == {"b", "c"})
        await until(lambda: cluster.open_watches == 1)
        assert it.store.version == 4, "three pods came and one went, each exactly once"
        assert cluster.count("list") == 1
        first, second = (int(request.detail) for request in cluster.requests if request.verb == "watch")
        assert second == first + 1, "it resumed after the one change that had come, so nothing was sent twice"


@virtual_time
async def test_watch_ended_by_the_server_is_reopened_at_once() -> None:
    cluster = cluster_of("a")
    async with following(cluster) as it:
        await passes(3600)
        assert 3600 / 55 <= cluster.count("watch") <= 3600 / 40 + 1
        assert cluster.count("list") == 1
        assert it.freshness().behind_seconds == 0


@virtual_time
async def test_forgotten_version_leads_to_list_and_noticed_deletions(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    cluster = cluster_of("a", "b")
    relists = partial(REGISTRY.get_sample_value, "compute_grid_watch_relists_total")
    counted = {"cache": "pods", "reason": "expired"}
    before = relists(counted) or 0
    async with following(cluster) as it:
        await until(lambda: cluster.open_watches == 1)
        assert (relists(counted) or 0) == before, "the first list is none"
        assert (REGISTRY.get_sample_value("compute_grid_watches_open", {"cache": "pods"}) or 0) >= 1
        cluster.lose_events(2)
        cluster.remove(PODS, "a", namespace="compute-grid")
        cluster.put(PODS, pod("c"))
        await passes(1)
        assert it.names() == {"a", "b"}, "lost is lost for a watch"
        cluster.compact()
        cluster.drop_watch()
        await until(lambda: it.names() == {"b", "c"}, within=5)
        assert cluster.count("list") == 2
    assert relists(counted) == before + 1
    assert "listing again store=pods reason=too old resource version" in caplog.text


@virtual_time
async def test_forgotten_version_after_an_outage_costs_two_seconds() -> None:
    """As when an API server was restarted: its fresh cache knows no version from before."""
    cluster = cluster_of("a")
    async with following(cluster) as it:
        await until(lambda: cluster.open_watches == 1)
        cluster.available = False
        await passes(120)
        cluster.compact()
        cluster.put(PODS, pod("b"))
        cluster.available = True
        await until(lambda: it.freshness().error == "", within=16)
        await until(it.is_equal, within=2.5)


@virtual_time
async def test_many_forgotten_versions_do_not_list_at_once() -> None:
    cluster = cluster_of("a")
    async with AsyncExitStack() as stack:
        replicas = [await stack.enter_async_context(following(cluster, seed=seed)) for seed in range(10)]
        await passes(10)
        cluster.lose_events(10)
        cluster.put(PODS, pod("b"))
        cluster.compact()
        cluster.drop_watch()
        before = cluster.count("list")
        lists: list[int] = []
        for _ in range(30):
            await passes(0.1)
            lists.append(cluster.count("list") - before - sum(lists))
        assert sum(lists) == 10
        assert max(lists) <= 3
        assert all(it.is_equal() for it in replicas)


@virtual_time
async def test_always_forgotten_versions_make_no_hot_loop() -> None:
    cluster = cluster_of("a")
    cluster.fail_next(Expired("too old"), times=10_000, verb="watch")
    async with following(cluster) as it:
        await passes(900)
        assert cluster.count() <= 250
        assert it.is_equal()


@virtual_time
async def test_a_malformed_event_is_logged_and_skipped(caplog: pytest.LogCaptureFixture) -> None:
    cluster = cluster_of("a")
    async with following(cluster) as it:
        await until(lambda: cluster.open_watches == 1)
        broken = (
            b'{"type":"MODIFIED","object":{"metadata":{"name":"a","resourceVersion":"1002","labels":{"s3cret":7}}}}'
        )
        with caplog.at_level(logging.WARNING):
            cluster.inject(PODS, broken)
            cluster.put(PODS, pod("b"))
            await until(it.is_equal)
        assert "unreadable event skipped" in caplog.text
        assert "s3cret" not in caplog.text
        assert cluster.count("list") == cluster.count("watch") == 1, (
            "one bad object is no reason to list again or to reopen the watch"
        )


@virtual_time
async def test_garbage_reopens_the_watch_from_the_last_version() -> None:
    cluster = cluster_of("a")
    async with following(cluster) as it:
        await until(lambda: cluster.open_watches == 1)
        cluster.inject(PODS, b'{"type":"ADDED","object":{"meta')
        cluster.inject(PODS, b"<html>gateway</html>")
        cluster.put(PODS, pod("b"))
        await until(it.is_equal, within=5)
        assert cluster.count("list") == 1
        assert cluster.count("watch") == 2


@virtual_time
async def test_stream_that_stays_garbled_leads_to_a_list() -> None:
    cluster = cluster_of("a")
    async with following(cluster) as it:
        for _ in range(3):
            await until(lambda: cluster.open_watches == 1)
            cluster.inject(PODS, b"\xff\xfe garbage")
            await until(lambda: cluster.open_watches == 0)
        await until(lambda: cluster.count("list") == 2)
        assert it.is_equal()


@virtual_time
async def test_cluster_set_up_anew_is_noticed_by_versions(caplog: pytest.LogCaptureFixture) -> None:
    """Its versions start again from a low number; a watch from the old, high one would wait for years."""
    old = cluster_of(*(f"old{number}" for number in range(50)))
    new = cluster_of("new")
    async with following(old) as it:
        await until(lambda: old.open_watches == 1)
        old.become(new)
        with caplog.at_level(logging.DEBUG):
            await until(lambda: it.names() == {"new"}, within=60)
    assert "the cluster's versions have gone back, as after restoring a backup" in caplog.text


@virtual_time
@pytest.mark.parametrize(
    ("feed", "foreign"),
    [
        (ListWatch(PODS, Pod, namespace="compute-grid"), {"namespace": "elsewhere"}),
        (ListWatch(PODS, Pod, label_selector="team=blue"), {"labels": {"team": "red"}}),
        (ListWatch(PODS, Pod, field_selector="spec.nodeName=n1"), {"node": "n2"}),
    ],
    ids=["namespace", "labels", "fields"],
)
async def test_only_the_requested_part_is_listed_and_watched(feed: ListWatch[Pod], foreign: dict[str, Any]) -> None:
    cluster = FakeCluster()
    cluster.put(PODS, pod("before", **foreign))
    async with following(cluster, feed=feed) as it:
        await until(lambda: cluster.open_watches == 1)
        assert it.names() == set()
        cluster.put(PODS, pod("foreign", **foreign))
        cluster.put(PODS, pod("mine", labels={"team": "blue"}, node="n1"))
        await until(lambda: it.names() == {"mine"})
        await passes(100)
        assert it.names() == {"mine"}


@virtual_time
async def test_watch_ended_by_an_error_resumes_where_it_was() -> None:
    cluster = cluster_of("a")
    async with following(cluster) as it:
        await until(lambda: cluster.open_watches == 1)
        cluster.inject(PODS, b'{"type":"ERROR","object":{"kind":"Status","code":500,"message":"no"}}')
        await until(lambda: cluster.count("watch") == 2, within=5)
        cluster.put(PODS, pod("b"))
        await until(it.is_equal, within=5)
        assert cluster.count("list") == 1
        assert it.freshness().error == ""


@virtual_time
async def test_flood_of_events_is_applied_in_yielding_portions() -> None:
    cluster = cluster_of()
    async with following(cluster) as it:
        await until(lambda: cluster.open_watches == 1)
        for number in range(1000):
            cluster.put(PODS, pod(f"p{number}"))
        sizes = [0]
        while sizes[-1] < 1000:
            await asyncio.sleep(0)
            sizes.append(len(it.store))
        assert {after - before for before, after in pairwise(sizes)} - {0} == {100}
