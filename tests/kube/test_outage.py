"""The promises of a reflector while the cluster is away, or its answers are of no use."""

import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from grid.core.errors import ClusterUnavailable, Expired, NotAllowed, TooManyRequests
from grid.kube.resources import PODS
from grid.kube.trouble import ClusterTrouble
from tests.kube.following import cluster_of, following
from tests.support.builders import pod
from tests.support.cluster import FakeCluster, Request
from tests.support.virtual import loop_time, passes, until, virtual_time

pytestmark = pytest.mark.usefixtures("both_ways")


@virtual_time
async def test_minute_without_the_cluster_is_survived_with_known_staleness() -> None:
    cluster = cluster_of("a")
    async with following(cluster) as it:
        await passes(30)
        cluster.available = False
        went = loop_time()
        await passes(60)
        stale = it.freshness()
        assert stale.synced
        assert 60 <= stale.behind_seconds <= 91
        assert "does not answer" in stale.error
        assert it.names() == {"a"}, "what was known is still shown"

        cluster.put(PODS, pod("b"))
        cluster.remove(PODS, "a", namespace="compute-grid")
        cluster.available = True
        await until(it.is_equal, within=16)
        assert (it.freshness().behind_seconds, it.freshness().error) == (0, "")
        assert loop_time() - went < 80


@virtual_time
async def test_recovery_is_known_at_once_and_not_asked_again() -> None:
    cluster = cluster_of("a", bookmark_seconds=10_000)
    async with following(cluster) as it:
        await passes(30)
        cluster.available = False
        await passes(20)
        cluster.available = True
        await until(lambda: it.freshness().error == "", within=16)
        assert it.freshness().behind_seconds == 0
        cluster.requests.clear()
        await passes(3600)
        assert cluster.count("list") == 0


@virtual_time
async def test_an_hour_without_the_cluster_costs_few_requests() -> None:
    cluster = cluster_of("a")
    async with following(cluster) as it:
        await until(lambda: cluster.open_watches == 1)
        cluster.requests.clear()
        cluster.available = False
        await passes(3600)
        assert 240 <= cluster.count() <= 500, "one each 7 to 15 seconds"
        assert it.freshness().behind_seconds >= 3600


@virtual_time
async def test_absent_cluster_costs_few_requests_and_is_found_later() -> None:
    cluster = cluster_of("a")
    cluster.available = False
    async with following(cluster) as it:
        await passes(3600)
        assert cluster.count() <= 500
        assert not it.freshness().synced
        cluster.available = True
        await until(it.is_equal, within=16)


@virtual_time
async def test_watch_that_always_closes_makes_no_hot_loop() -> None:
    cluster = _Hasty()
    cluster.put(PODS, pod("a"))
    async with following(cluster) as it:
        await passes(3600)
        assert cluster.count() <= 700
        cluster.put(PODS, pod("b"))
        await until(it.is_equal, within=120)


class _Hasty(FakeCluster):
    """As behind a proxy that cuts every long answer: watches end before they have sent anything."""

    async def watch(self, *args: object, **kwargs: object) -> AsyncIterator[bytes]:
        self.requests.append(Request("watch", PODS))
        nothing: tuple[bytes, ...] = ()
        for line in nothing:
            yield line


@virtual_time
async def test_silent_watch_is_replaced_and_then_listed_again() -> None:
    cluster = _Mute()
    cluster.put(PODS, pod("a"))
    async with following(cluster) as it:
        await until(it.is_equal)
        cluster.put(PODS, pod("b"))
        await until(lambda: cluster.count("watch") == 2, within=75)
        assert cluster.count("list") == 3, "after two ways to list it was asked before another watch was trusted"
        assert it.freshness().error == "", "asked, the cluster answered"
        await until(it.is_equal, within=300)
        assert cluster.count() <= 10


class _Mute(FakeCluster):
    """As behind a proxy that collects long answers before it passes them on."""

    async def watch(self, *args: object, **kwargs: object) -> AsyncIterator[bytes]:
        self.requests.append(Request("list" if kwargs.get("initial_events") else "watch", PODS))
        await passes(10_000)
        yield b""


@virtual_time
async def test_dead_connection_is_noticed_as_staleness() -> None:
    """Nothing is refused and nothing is closed: packets just go nowhere."""
    cluster = _Gone()
    cluster.put(PODS, pod("a"))
    async with following(cluster) as it:
        await until(it.is_equal)
        cluster.gone = True
        await passes(200)
        assert it.freshness().behind_seconds >= 180
        assert it.freshness().error


class _Gone(_Mute):
    gone = False

    async def list_page(self, *args: object, **kwargs: object) -> bytes:
        if self.gone:
            await passes(30)
            raise ClusterUnavailable("The cluster does not answer in time.")
        return await super().list_page(*args, **kwargs)  # type: ignore[arg-type]


@virtual_time
async def test_broken_connection_is_no_outage_when_the_next_works() -> None:
    cluster = cluster_of("a")
    async with following(cluster) as it:
        await until(lambda: cluster.open_watches == 1)
        await passes(20)
        cluster.requests.clear()
        with it.hub.subscribe({"pods"}) as subscription:
            cluster.break_watch()
            cluster.put(PODS, pod("b"))
            await subscription.changed()
            assert it.is_equal()
            assert it.freshness().error == ""
        assert [request.verb for request in cluster.requests] == ["list", "watch"], "it was asked before"


@virtual_time
async def test_connection_that_breaks_at_once_is_an_outage() -> None:
    cluster = cluster_of("a")
    async with following(cluster) as it:
        await until(lambda: cluster.open_watches == 1)
        await passes(20)
        cluster.break_watch()
        await until(lambda: cluster.open_watches == 1)
        cluster.break_watch()
        await passes(0.1)
        assert it.freshness().error == "The connection to the API server broke."
        await until(lambda: it.freshness().error == "", within=5)


@virtual_time
async def test_server_that_asks_to_wait_gets_its_time() -> None:
    cluster = cluster_of("a")
    cluster.fail_next(TooManyRequests("busy", retry_after=40), verb="list")
    async with following(cluster) as it:
        await passes(39)
        assert cluster.count("list") == 1
        await until(it.is_equal, within=5)


@virtual_time
async def test_missing_rights_are_told_and_tried_again() -> None:
    cluster = cluster_of("a")
    cluster.fail_next(NotAllowed("pods is forbidden"), times=3, verb="list")
    async with following(cluster) as it:
        await passes(0.1)
        assert it.freshness().trouble is ClusterTrouble.REFUSED
        assert "pods is forbidden. An admin of the cluster has to apply deploy/access.yaml" in it.freshness().error
        await until(it.is_equal, within=30)


@virtual_time
@pytest.mark.parametrize("away_seconds", [0, 40])
async def test_server_that_starts_again_is_not_accused_of_missing_rights(away_seconds: int) -> None:
    """It forbids everything at first; and it is asked again at once, however long it was away."""
    cluster = cluster_of("a")
    async with following(cluster) as it:
        await passes(30)
        cluster.available = False
        await passes(away_seconds)
        cluster.fail_next(NotAllowed("pods is forbidden"), times=3, verb="list")
        cluster.available = True
        await until(lambda: "starts" in it.freshness().error, within=16)
        assert it.freshness().trouble is ClusterTrouble.SILENT
        await until(lambda: it.freshness().error == "", within=5)


@virtual_time
async def test_rights_that_stay_missing_after_an_outage_are_told() -> None:
    cluster = cluster_of("a")
    async with following(cluster) as it:
        await passes(30)
        cluster.available = False
        await passes(5)
        cluster.fail_next(NotAllowed("pods is forbidden"), times=100, verb="list")
        cluster.available = True
        await until(lambda: it.freshness().trouble is ClusterTrouble.REFUSED, within=60)
        assert "deploy/access.yaml" in it.freshness().error


@virtual_time
async def test_first_failure_is_a_warning_and_recovery_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    cluster = cluster_of("a")
    async with following(cluster) as it:
        await until(lambda: cluster.open_watches == 1)
        with caplog.at_level(logging.INFO):
            cluster.available = False
            await passes(300)
            cluster.available = True
            await until(lambda: it.freshness().error == "")
    records = [(record.levelname, record.message) for record in caplog.records]
    assert [level for level, _ in records] == ["WARNING", "INFO"]


@virtual_time
async def test_own_fault_is_logged_with_traceback_and_survived(caplog: pytest.LogCaptureFixture) -> None:
    cluster = _Surprising()
    cluster.put(PODS, pod("a"))
    async with following(cluster) as it:
        await until(lambda: it.freshness().error != "" and cluster.surprises == 0)
        assert it.freshness().error == "Its answer was not understood; the log says more."
        await until(it.is_equal)
    assert "Traceback" in caplog.text
    assert "WARNING" not in {record.levelname for record in caplog.records}, "nothing is said twice"


class _Surprising(FakeCluster):
    surprises = 2
    streaming_lists = "refused"

    async def list_page(self, *args: object, **kwargs: object) -> bytes:
        if self.surprises:
            self.surprises -= 1
            raise LookupError("nobody foresaw this")
        return await super().list_page(*args, **kwargs)  # type: ignore[arg-type]


@virtual_time
async def test_readers_are_told_of_outage_and_recovery() -> None:
    cluster = cluster_of("a")
    async with following(cluster) as it:
        await until(lambda: cluster.open_watches == 1)
        with it.hub.subscribe({"pods"}) as subscription:
            cluster.fail_next(ClusterUnavailable("gone"), verb="watch")
            cluster.drop_watch()
            assert await subscription.changed() == {"pods"}
            assert it.freshness().error == "gone"
            assert await subscription.changed() == {"pods"}
            assert it.freshness().error == ""


@virtual_time
async def test_three_early_watch_ends_lead_to_a_list() -> None:
    cluster = cluster_of("a")
    async with following(cluster):
        for drops in (3, 4):  # the first of the four is of a watch that lasted
            await until(lambda: cluster.open_watches == 1)
            cluster.requests.clear()
            for _ in range(drops):
                await until(lambda: cluster.open_watches == 1)
                cluster.drop_watch()
                await passes(0.1)
            await until(lambda: cluster.open_watches == 1)
            assert [request.verb for request in cluster.requests] == [*["watch"] * (drops - 1), "list", "watch"]
            await passes(62)


@pytest.mark.parametrize("breaks", [True, False], ids=["broken watch", "refused requests"])
@virtual_time
async def test_outage_of_a_quiet_cache_counts_from_its_start(breaks: bool) -> None:
    cluster = cluster_of("a", bookmark_seconds=10_000)
    async with following(cluster) as it:
        await until(lambda: cluster.open_watches == 1)
        await passes(38)
        assert it.freshness().behind_seconds == 0
        if breaks:
            cluster.available = False
        else:
            cluster.fail_next(ClusterUnavailable("gone"), times=100)
            await until(lambda: it.freshness().error != "", within=20)
        await passes(0.1)
        assert it.freshness().error
        assert it.freshness().behind_seconds <= 0.3
        await passes(20)
        assert it.freshness().behind_seconds == pytest.approx(20.1, abs=0.3)


@virtual_time
async def test_silence_counts_from_its_own_first_failure() -> None:
    cluster = cluster_of("a")
    cluster.bookmark_seconds = 10_000
    async with following(cluster) as it:
        await passes(44)  # without a word of a quiet cluster
        cluster.fail_next(TooManyRequests("too many requests", retry_after=3), times=4)
        cluster.drop_watch()
        await passes(4)
        assert it.freshness().trouble is ClusterTrouble.THROTTLED
        assert "(HTTP 429) and asks us to wait 3 s" in it.freshness().error
        cluster.available = False
        await passes(20)
        freshness = it.freshness()
        assert freshness.trouble is ClusterTrouble.SILENT
        assert freshness.trouble_seconds < 20.1, "since it does not answer"
        assert freshness.behind_seconds == pytest.approx(24, abs=0.5), "what is shown is as old as the first failure"


@virtual_time
async def test_killed_server_is_silent_from_that_moment() -> None:
    cluster = cluster_of("a", bookmark_seconds=10_000)
    async with following(cluster) as it:
        await passes(44)
        cluster.available = False
        await passes(0.1)
        freshness = it.freshness()
        assert (freshness.trouble, freshness.error != "") == (ClusterTrouble.SILENT, True)
        assert max(freshness.trouble_seconds, freshness.behind_seconds) < 0.2


@virtual_time
async def test_history_that_expires_again_and_again_is_told() -> None:
    cluster = _Forgetful()
    cluster.put(PODS, pod("a"))
    async with following(cluster) as it:
        await until(lambda: it.freshness().trouble is ClusterTrouble.EXPIRED, within=60)
        assert "forgets each version at once (HTTP 410)" in it.freshness().error
        cluster.put(PODS, pod("b"))
        await until(lambda: it.names() == {"a", "b"}, within=40)
        await passes(1)
        assert it.freshness().trouble is ClusterTrouble.EXPIRED, "a list alone does not end it"
        assert it.freshness().behind_seconds < 40, "but what is shown is as old as the list"
        cluster.forgets = False
        await passes(40)
        cluster.put(PODS, pod("c"))
        await until(lambda: it.freshness().error == "", within=40)


class _Forgetful(FakeCluster):
    forgets = True

    async def watch(self, *args: Any, initial_events: bool = False, **kwargs: Any) -> AsyncIterator[bytes]:
        if self.forgets and not initial_events:
            raise Expired("too old resource version")
        async for line in super().watch(*args, initial_events=initial_events, **kwargs):
            yield line
