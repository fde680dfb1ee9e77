"""What the controller's Lease tells: that no controller works, and that the API server hangs. Neither is said too early."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime

import pytest

from grid.controller.leader import LEASE, Election
from grid.core.errors import ClusterUnavailable, TooManyRequests
from grid.kube.objects import RawObject
from grid.kube.resources import LEASES, Resource
from grid.kube.trouble import ClusterTrouble
from grid.runtime.controllerlease import SLOW_SECONDS, ControllerAway, ControllerLease
from tests.support.builders import NAMESPACE
from tests.support.cluster import FakeCluster
from tests.support.virtual import cancelled, loop_time, passes, until, virtual_time


class HangingCluster(FakeCluster):
    """As a server that is stopped: nothing is refused and nothing is closed."""

    hangs = False
    lost = 0  # how many of the next requests get no answer
    seconds = 0.0  # for each answer

    async def get(self, resource: Resource, name: str, *, namespace: str = "") -> RawObject:
        if self.hangs or self.lost:
            self.lost = max(0, self.lost - 1)
            await asyncio.sleep(1e6)
        await asyncio.sleep(self.seconds)
        return await super().get(resource, name, namespace=namespace)


class Watched:
    def __init__(self, cluster: FakeCluster) -> None:
        self.heard: float | None = None
        self.lease = ControllerLease(cluster, NAMESPACE, monotonic=loop_time, heard=lambda: self.heard)

    @property
    def away(self) -> ControllerAway | None:
        return self.lease.away(loop_time())

    @property
    def error(self) -> str:
        return self.lease.freshness(loop_time()).error


@asynccontextmanager
async def watching(cluster: FakeCluster) -> AsyncIterator[Watched]:
    watched = Watched(cluster)
    task = asyncio.create_task(watched.lease.run())
    try:
        yield watched
    finally:
        await cancelled(task)


@asynccontextmanager
async def leading(cluster: FakeCluster) -> AsyncIterator["asyncio.Task[None]"]:
    """A controller that leads, until the block ends or its task is cancelled."""
    election = Election(cluster, name=LEASE, namespace=NAMESPACE, identity="a", monotonic=loop_time)
    task = asyncio.create_task(election.lead(lambda: asyncio.sleep(1e6)))
    try:
        await until(lambda: bool(cluster.objects(LEASES)))
        yield task
    finally:
        await cancelled(task)


async def seconds_until(is_so: Callable[[], bool], *, within: float) -> float:
    began = loop_time()
    await until(is_so, within=within)
    return loop_time() - began


@virtual_time
async def test_killed_controller_is_noticed_within_twenty_seconds_with_time() -> None:
    cluster = FakeCluster()
    async with leading(cluster) as leader, watching(cluster) as watched:
        await passes(30)
        cluster.fail_next(ClusterUnavailable("it is killed, and gives nothing back"), times=1, verb="replace")
        await cancelled(leader)
        took = await seconds_until(lambda: watched.away is not None, within=19)
        assert took > 10, "the next one has time to take over"
        assert watched.away is not None
        assert watched.away.since is not None
        assert watched.away.since == datetime.fromisoformat(cluster.objects(LEASES)[0]["spec"]["renewTime"])
        async with leading(cluster):
            await until(lambda: watched.away is None, within=25)


@virtual_time
async def test_controller_handover_is_unnoticed_and_end_is_noticed() -> None:
    cluster = FakeCluster()
    async with watching(cluster) as watched:
        async with leading(cluster):
            await passes(30)
        async with leading(cluster):
            for _ in range(40):
                await passes(0.5)
                assert watched.away is None
        assert await seconds_until(lambda: watched.away is not None, within=11) > 5


@virtual_time
async def test_controller_never_present_is_reported_without_time() -> None:
    async with watching(FakeCluster()) as watched:
        await passes(1)
        assert watched.away is None
        await until(lambda: watched.away == ControllerAway(None), within=20)


@virtual_time
async def test_unreadable_lease_reports_no_absence(caplog: pytest.LogCaptureFixture) -> None:
    cluster = FakeCluster()
    cluster.forbidden[LEASES] = "leases is forbidden"
    async with watching(cluster) as watched:
        await passes(120)
        assert watched.away is None
        assert watched.error == ""
        assert "leases is forbidden" in watched.lease.unreadable
        cluster.forbidden.clear()
        await until(lambda: watched.lease.unreadable == "", within=4)
    assert caplog.text.count("leases is forbidden") == 1


@virtual_time
async def test_refusals_of_a_server_that_starts_are_its_absence() -> None:
    """A server forbids everything at first; what it goes on forbidding is a missing right, and no trouble of the server's."""
    cluster = FakeCluster()
    async with leading(cluster), watching(cluster) as watched:
        await passes(30)
        cluster.available = False
        await until(lambda: watched.error != "", within=10)
        cluster.forbidden[LEASES] = "leases is forbidden"
        cluster.available = True
        await until(lambda: "starts" in watched.error, within=6)
        assert watched.lease.unreadable == ""
        await until(lambda: watched.error == "", within=30)
        assert "leases is forbidden" in watched.lease.unreadable


@virtual_time
async def test_hanging_server_is_reported_within_ten_seconds_until_recovery() -> None:
    cluster = HangingCluster()
    async with leading(cluster), watching(cluster) as watched:
        await passes(31)
        watched.heard = loop_time()
        cluster.hangs = True
        assert await seconds_until(lambda: watched.error != "", within=10) >= 5
        assert watched.error == "The API server does not answer in time."
        assert watched.lease.freshness(loop_time()).behind_seconds == pytest.approx(
            loop_time() - watched.heard, abs=3.1
        )
        await passes(60)
        assert watched.away is None, "nobody can tell"
        cluster.hangs = False
        await until(lambda: watched.error == "", within=6)
        await passes(1)
        assert watched.away is None, "it could not renew its lease meanwhile"


@virtual_time
async def test_single_lost_answer_is_no_outage() -> None:
    cluster = HangingCluster()
    async with leading(cluster), watching(cluster) as watched:
        await passes(30)
        cluster.lost = 1
        for _ in range(20):
            await passes(0.5)
            assert watched.error == ""


@virtual_time
async def test_hanging_request_with_working_watches_is_no_outage() -> None:
    cluster = HangingCluster()
    async with leading(cluster), watching(cluster) as watched:
        await passes(30)
        cluster.hangs = True
        for _ in range(60):
            watched.heard = loop_time()
            await passes(1)
            assert watched.error == ""


@pytest.mark.parametrize("seconds", [1.0, 2.0, 4.0])
@virtual_time
async def test_slow_answers_are_neither_outage_nor_absence(seconds: float) -> None:
    cluster = HangingCluster()
    async with leading(cluster), watching(cluster) as watched:
        await passes(30)
        cluster.seconds = seconds
        for _ in range(600):
            await passes(0.5)
            freshness = watched.lease.freshness(loop_time())
            assert (freshness.trouble in (None, ClusterTrouble.SLOW), watched.away) == (True, None)
            assert freshness.behind_seconds == 0
        is_slow = seconds >= SLOW_SECONDS
        assert freshness.trouble is (ClusterTrouble.SLOW if is_slow else None)
        assert freshness.error == (f"Its last answers took {seconds:.1f} s and more." if is_slow else "")


@virtual_time
async def test_hanging_server_counts_from_the_first_unanswered_question() -> None:
    cluster = HangingCluster()
    async with leading(cluster), watching(cluster) as watched:
        await passes(29.5)
        cluster.hangs = True
        await passes(40)
        assert watched.lease.freshness(loop_time()).behind_seconds == pytest.approx(39.5, abs=0.1), "asked at 30"


@virtual_time
async def test_throttled_question_is_told_with_its_wait() -> None:
    cluster = FakeCluster()
    async with leading(cluster), watching(cluster) as watched:
        await passes(30)
        cluster.requests.clear()
        cluster.fail_next(TooManyRequests("too many requests", retry_after=20), times=3, verb="get")
        await passes(5)
        freshness = watched.lease.freshness(loop_time())
        assert freshness.trouble is ClusterTrouble.THROTTLED
        assert "asks us to wait 20 s" in freshness.error
        assert (freshness.behind_seconds, watched.away) == (0, None)
        assert not watched.lease.is_known
        await passes(50)
        assert cluster.count("get") <= 4, "it waits as long as it was asked to"
        await until(lambda: watched.error == "", within=30)
        assert watched.away is None


@virtual_time
async def test_unreadable_lease_names_the_missing_right() -> None:
    cluster = FakeCluster()
    cluster.forbidden[LEASES] = (
        'cannot get resource "leases" in API group "coordination.k8s.io" in the namespace "compute-grid"'
    )
    async with watching(cluster) as watched:
        await passes(10)
        assert "The right to get leases.coordination.k8s.io in compute-grid is missing" in watched.lease.unreadable
