"""The promises of a list: by streaming where the server can, in pages elsewhere, and never half a list in the store."""

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest

from grid.core.errors import ClusterUnavailable, Rejected, TooManyRequests
from grid.kube.hub import Subscription
from grid.kube.listing import Timing
from grid.kube.objects import Pod
from grid.kube.resources import PODS
from tests.kube.following import cluster_of, following, lists_again, ways
from tests.support.builders import pod
from tests.support.cluster import FakeCluster, Request
from tests.support.virtual import passes, until, virtual_time


@virtual_time
async def test_streaming_list_is_one_request_that_the_watch_continues() -> None:
    cluster = cluster_of(*(f"p{number}" for number in range(25)))
    async with following(cluster, timing=Timing(page_size=10)) as it:
        await until(lambda: cluster.open_watches == 1)
        assert it.is_equal()
        assert it.freshness().synced
        version = cluster.server.store.version
        assert [(request.verb, request.detail) for request in cluster.requests] == [
            ("list", "stream"),
            ("watch", str(version)),
        ]
        assert await lists_again(it) == ["stream"]


@virtual_time
async def test_streaming_list_is_invisible_before_it_is_complete() -> None:
    cluster = cluster_of("a", "b", "c")
    cluster.list_seconds = 4
    async with following(cluster) as it:
        await passes(11)
        assert (len(it.store), it.freshness().synced) == (0, False)
        assert it.freshness().error == "The first list is being read from the cluster."
        await until(lambda: it.freshness().synced, within=2)
        assert it.is_equal()
        cluster.put(PODS, pod("d"))
        await until(it.is_equal)
        before = it.names()
        cluster.lose_events(2)
        cluster.remove(PODS, "a", namespace="compute-grid")
        cluster.put(PODS, pod("e"))
        cluster.compact()
        cluster.drop_watch()
        await passes(15)
        assert it.names() == before, "a list in the making changes nothing"
        await until(it.is_equal, within=5)


@virtual_time
async def test_broken_streaming_list_leaves_store_alone_and_is_repeated() -> None:
    cluster = cluster_of("a", "b", "c")
    cluster.list_seconds = 1
    async with following(cluster) as it:
        await passes(2.5)
        cluster.break_watch()
        await passes(1)
        assert len(it.store) == 0
        assert it.freshness().error == "The connection to the API server broke."
        await until(it.is_equal, within=10)
        assert ways(cluster) == ["stream", "stream"]


@virtual_time
async def test_lists_are_paged_where_long_answers_are_cut() -> None:
    cluster = cluster_of("a", "b", "c")
    cluster.list_seconds = 1
    async with following(cluster) as it:
        for _ in range(3):
            await until(lambda: cluster.open_watches == 1)
            await passes(0.5)
            cluster.drop_watch()
        await until(it.is_equal, within=20)
        assert ways(cluster) == ["stream", "stream", "stream", "page"]
        assert await lists_again(it) == ["page"]


@virtual_time
@pytest.mark.parametrize("how", ["refused", "ignored"])
async def test_server_without_streaming_lists_is_asked_again_hours_later(how: Any) -> None:
    cluster = cluster_of("a", "b")
    cluster.streaming_lists = how
    async with following(cluster) as it:
        await until(lambda: cluster.open_watches == 1 and it.is_equal() and it.freshness().synced, within=15)
        assert ways(cluster) == ["stream", "page"]
        assert await lists_again(it) == ["page"]
        assert await lists_again(it) == ["page"]
        await passes(3600)
        assert await lists_again(it) == ["stream", "page"], "an hour later it may be able to"


@virtual_time
@pytest.mark.parametrize(("how", "expected"), [("refused", ["page"]), ("ignored", ["stream", "page"])])
async def test_silent_server_is_asked_for_streaming_again_sooner(how: Any, expected: list[str]) -> None:
    cluster = cluster_of("a")
    cluster.streaming_lists = how
    async with following(cluster) as it:
        await until(lambda: cluster.open_watches == 1 and it.freshness().synced, within=15)
        await passes(400)
        assert await lists_again(it) == expected


@virtual_time
async def test_server_that_was_away_is_asked_for_streaming_again() -> None:
    cluster = cluster_of("a")
    cluster.streaming_lists = "refused"
    async with following(cluster) as it:
        await until(lambda: cluster.open_watches == 1)
        cluster.available = False
        await passes(60)
        cluster.available = True
        cluster.streaming_lists = "served"
        await until(lambda: cluster.open_watches == 1)
        assert await lists_again(it) == ["stream"]


@virtual_time
async def test_early_ordinary_bookmark_reveals_missing_streaming_lists() -> None:
    cluster = cluster_of("a", bookmark_seconds=2)
    cluster.streaming_lists = "ignored"
    async with following(cluster) as it:
        await until(it.is_equal, within=3)
        assert ways(cluster) == ["stream", "page"]


@virtual_time
async def test_slow_streaming_list_is_waited_for_unlike_silent_one() -> None:
    slow, silent = cluster_of("a", "b", "c"), cluster_of("a", "b", "c")
    slow.list_seconds, silent.list_seconds = 9, 11
    async with following(slow) as it, following(silent) as other:
        await until(it.is_equal, within=30)
        await until(other.is_equal, within=30)
    assert ways(slow) == ["stream"]
    assert ways(silent) == ["stream", "page"]


@virtual_time
@pytest.mark.parametrize("lines", [1000, 61], ids=["no end", "ended by the server"])
async def test_endless_streaming_list_is_given_up_for_pages(lines: int) -> None:
    cluster = _Endless(lines)
    cluster.put(PODS, pod("a"))
    async with following(cluster) as it:
        await passes(300)
        assert ways(cluster) == []
        await until(it.is_equal, within=30)
        assert ways(cluster) == ["page"]


class _Endless(FakeCluster):
    """Streaming lists send an object every five seconds, and never say that these were all; after so many lines they end."""

    def __init__(self, lines: int) -> None:
        super().__init__()
        self.lines = lines

    async def watch(self, *args: Any, initial_events: bool = False, **kwargs: Any) -> AsyncIterator[bytes]:
        for _ in range(self.lines if initial_events else 0):
            await passes(5)
            yield b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}'
        if initial_events:
            return
        async for line in super().watch(*args, **kwargs):
            yield line


@virtual_time
async def test_a_busy_server_is_not_asked_for_pages_instead() -> None:
    cluster = cluster_of("a")
    cluster.fail_next(TooManyRequests("busy"), times=5, verb="list")
    async with following(cluster) as it:
        await until(it.is_equal, within=60)
        assert ways(cluster) == ["stream"] * 6


class _Queueing(FakeCluster):
    """Lets a streaming list wait for 15 seconds, as priority and fairness do, and then says that it is too busy."""

    async def watch(self, *args: Any, initial_events: bool = False, **kwargs: Any) -> AsyncIterator[bytes]:
        if initial_events and len(self.requests) < 2:
            self.requests.append(Request("list", PODS, detail="stream"))
            await passes(15)
            raise TooManyRequests("busy")
        async for line in super().watch(*args, initial_events=initial_events, **kwargs):
            yield line


@virtual_time
async def test_busy_server_is_not_asked_for_pages_instead() -> None:
    cluster = _Queueing()
    cluster.put(PODS, pod("a"))
    async with following(cluster) as it:
        await until(it.is_equal, within=60)
        assert ways(cluster) == ["stream"] * 3


@virtual_time
async def test_server_away_at_start_is_asked_again_within_minutes() -> None:
    for away in (1.5, 4):
        cluster = cluster_of("a")
        cluster.available = False
        async with following(cluster) as it:
            await passes(away)
            cluster.available = True
            await until(it.is_equal, within=60)
            await passes(300)
            assert await lists_again(it) == ["stream"]


@virtual_time
async def test_server_failing_at_streaming_lists_is_asked_for_pages() -> None:
    """As one whose storage has no watch cache: it answers 500."""
    cluster = _Failing()
    cluster.put(PODS, pod("a"))
    async with following(cluster) as it:
        await until(it.is_equal, within=30)
        assert await lists_again(it) == ["page"]


class _Failing(FakeCluster):
    async def watch(self, *args: Any, initial_events: bool = False, **kwargs: Any) -> AsyncIterator[bytes]:
        if initial_events:
            raise ClusterUnavailable("The cluster is failing: sendInitialEvents is not supported")
        async for line in super().watch(*args, **kwargs):
            yield line


@virtual_time
async def test_complete_streaming_list_is_applied_in_yielding_portions() -> None:
    async with following(cluster_of(*(f"p{number}" for number in range(1000)))) as it:
        sizes = [0]
        while sizes[-1] < 1000:
            await asyncio.sleep(0)
            sizes.append(len(it.store))
        assert {after - before for before, after in pairwise(sizes)} - {0} == {100}


@virtual_time
async def test_vanished_objects_are_sought_in_yielding_slices() -> None:
    names = [f"p{number}" for number in range(1000)]
    cluster = cluster_of(*names)
    async with following(cluster, timing=Timing(keys_at_once=300)) as it:
        await until(lambda: len(it.store) == 1000 and cluster.open_watches == 1, within=5)
        cluster.lose_events(1000)
        for name in names:
            cluster.remove(PODS, name, namespace="compute-grid")
        cluster.compact()
        cluster.drop_watch()
        loop, slices, is_begun = asyncio.get_running_loop(), list[int](), False

        def end() -> None:
            nonlocal is_begun
            is_begun = False

        def note(old: Pod | None, new: Pod | None) -> None:
            nonlocal is_begun
            if not is_begun:
                slices.append(0)
                loop.call_soon(end)
            is_begun = True
            slices[-1] += 1

        it.store.subscribe(note)
        await until(lambda: not it.names(), within=60)
        assert slices == [300, 300, 300, 100]


@virtual_time
async def test_a_selector_that_the_server_refuses_is_told() -> None:
    cluster = cluster_of("a")
    cluster.fail_next(Rejected([]), times=2, verb="list")
    async with following(cluster) as it:
        await until(it.is_equal, within=5)
        assert ways(cluster) == ["stream", "page", "stream"], "that pages were refused too says nothing about streaming"


@virtual_time
async def test_long_list_is_read_in_pages_and_then_watched() -> None:
    cluster = cluster_of(*(f"p{number}" for number in range(25)))
    cluster.streaming_lists = "refused"
    async with following(cluster, timing=Timing(page_size=10)) as it:
        await until(it.is_equal)
        cluster.put(PODS, pod("new"))
        cluster.remove(PODS, "p7", namespace="compute-grid")
        cluster.put(PODS, pod("p8", phase="Running", node="n1"))
        await until(it.is_equal)
    assert [request.verb for request in cluster.requests] == ["refused list", "list", "list", "list", "watch"]


@virtual_time
async def test_list_that_expires_between_pages_is_read_whole() -> None:
    cluster = cluster_of(*(f"p{number:02}" for number in range(25)))
    cluster.list_seconds, cluster.streaming_lists = 1, "refused"
    async with following(cluster, timing=Timing(page_size=10)) as it:
        await until(lambda: len(it.store) == 10)
        cluster.compact()
        await until(it.is_equal)
        assert it.freshness().synced
        continued = [bool(request.detail) for request in cluster.requests if request.verb == "list"]
        assert continued == [False, True, False], "a page, one that has expired, and all at once"


@virtual_time
async def test_readers_are_told_of_changes_and_missing_objects() -> None:
    cluster = cluster_of("a", "b")
    cluster.streaming_lists = "refused"  # in pages the end of a list comes after its objects
    async with following(cluster) as it:
        with it.hub.subscribe({"pods"}) as subscription:
            await subscription.changed()
            await until(lambda: cluster.open_watches == 1)
            assert await _is_told(subscription), "of the list's end"
            cluster.remove(PODS, "a", namespace="compute-grid")
            assert await _is_told(subscription)
            cluster.bookmark()
            assert not await _is_told(subscription), "a bookmark is no change"
            cluster.lose_events(1)
            cluster.remove(PODS, "b", namespace="compute-grid")
            cluster.compact()
            cluster.drop_watch()
            assert await _is_told(subscription)
            assert it.names() == set()


async def _is_told(subscription: Subscription) -> bool:
    try:
        async with asyncio.timeout(10):
            return await subscription.changed() == {"pods"}
    except TimeoutError:
        return False
