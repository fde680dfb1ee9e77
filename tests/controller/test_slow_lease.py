"""Leader election with an API server that answers slowly, late or not at all: who leads goes on leading, and two never do."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar

import pytest
from hypothesis import given, settings, strategies as st

from grid.controller.leader import Election, Terms
from grid.core.errors import ClusterUnavailable
from grid.kube.objects import RawObject
from grid.kube.resources import LEASES, Resource
from tests.support.builders import NAMESPACE
from tests.support.cluster import FakeCluster
from tests.support.virtual import cancelled, loop_time, passes, until, virtual_time

T = TypeVar("T")


class SlowCluster(FakeCluster):
    """Each answer takes `seconds`, of which the share `early` is over when the server does what it was asked, even if nobody waits for it
    any more. Answers to the next `lost` writes never arrive: the connection breaks."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0
        self.early = 0.5
        self.lost = 0
        self.given_up = 0  # requests that were cancelled, which closes their connection
        self._doing: set[asyncio.Task[RawObject]] = set()

    async def get(self, resource: Resource, name: str, *, namespace: str = "") -> RawObject:
        return await self._slowly(lambda: super(SlowCluster, self).get(resource, name, namespace=namespace))

    async def create(
        self, resource: Resource, body: RawObject, *, namespace: str = "", dry_run: bool = False
    ) -> RawObject:
        return await self._write(lambda: super(SlowCluster, self).create(resource, body, namespace=namespace))

    async def replace(self, resource: Resource, name: str, body: RawObject, *, namespace: str = "") -> RawObject:
        return await self._write(lambda: super(SlowCluster, self).replace(resource, name, body, namespace=namespace))

    async def _write(self, do: Callable[[], Awaitable[RawObject]]) -> RawObject:
        answer = await self._slowly(do)
        if self.lost:
            self.lost -= 1
            raise ClusterUnavailable("the connection broke")
        return answer

    async def _slowly(self, do: Callable[[], Awaitable[RawObject]]) -> RawObject:
        seconds, early = self.seconds, self.early

        async def serve() -> RawObject:
            await asyncio.sleep(seconds * early)
            return await do()

        serving = asyncio.create_task(serve())
        self._doing.add(serving)
        serving.add_done_callback(self._doing.discard)
        try:
            answer = await asyncio.shield(serving)
            await asyncio.sleep(seconds * (1 - early))
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        return answer

    async def settle(self) -> None:
        await asyncio.gather(*self._doing, return_exceptions=True)


class Candidate:
    """A process that notes when it worked; `working` are those that work now."""

    def __init__(self, cluster: FakeCluster, identity: str, working: set[str] | None = None) -> None:
        self.election = Election(
            cluster, name="controller", namespace=NAMESPACE, identity=identity, monotonic=loop_time
        )
        self.began: list[float] = []
        self.ended: list[float] = []
        self.working = working if working is not None else set()

    async def work(self) -> None:
        self.began.append(loop_time())
        self.working.add(self.election.identity)
        assert len(self.working) == 1, "two lead"
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.append(loop_time())
            self.working.discard(self.election.identity)

    @asynccontextmanager
    async def living(self) -> AsyncIterator["asyncio.Task[None]"]:
        task = asyncio.create_task(self.election.lead(self.work))
        try:
            yield task
        finally:
            await cancelled(task)


@asynccontextmanager
async def leading(cluster: SlowCluster) -> AsyncIterator[Candidate]:
    candidate = Candidate(cluster, "one")
    async with candidate.living():
        await until(lambda: bool(candidate.began), within=30)
        yield candidate
    await cluster.settle()


def lease_of(cluster: FakeCluster) -> RawObject:
    (lease,) = cluster.objects(LEASES)
    return lease


@pytest.mark.parametrize("seconds", [0.0, 1.0, 2.0, 4.0])
@virtual_time
async def test_slow_answers_lose_neither_leadership_nor_connection(seconds: float) -> None:
    cluster = SlowCluster()
    cluster.seconds = seconds
    other = Candidate(cluster, "two")
    async with leading(cluster) as leader:
        assert leader.began[0] <= 2 * seconds, "read and written once"
        async with other.living():
            await passes(600)
            assert (len(leader.began), leader.ended, other.began) == (1, [], [])
            assert cluster.given_up == 0


@pytest.mark.parametrize("seconds", [0.0, 1.0, 2.0, 4.0])
@virtual_time
async def test_next_leader_follows_a_killed_one_behind_slow_answers(seconds: float) -> None:
    cluster = SlowCluster()
    cluster.seconds = seconds
    assert await Candidate(cluster, "killed").election.attempt()
    killed_at, follower = loop_time(), Candidate(cluster, "two")
    async with follower.living():
        await until(lambda: bool(follower.began), within=60)
        terms = Terms()
        # The first look, the lease's duration, one pause too many, and another look with the write.
        assert terms.lease < follower.began[0] - killed_at <= terms.lease + 1.2 * terms.retry + 4 * seconds
    await cluster.settle()


@virtual_time
async def test_renewal_is_one_write_each_two_seconds() -> None:
    cluster = SlowCluster()
    async with leading(cluster):
        cluster.requests.clear()
        await passes(61)
        assert (cluster.count("get"), cluster.count("replace")) == (0, 30)


def cut_off(cluster: SlowCluster) -> None:
    cluster.available = False


def lose_writes(cluster: SlowCluster) -> None:
    """None of them happens, so reading the lease as one's own is not enough."""
    cluster.fail_next(ClusterUnavailable("the connection broke"), times=100, verb="replace")


def edit_by_hand(cluster: SlowCluster) -> None:
    lease = lease_of(cluster)
    cluster.put(LEASES, {**lease, "metadata": {**lease["metadata"], "annotations": {"by": "hand"}}})
    lose_writes(cluster)


@pytest.mark.parametrize("trouble", [cut_off, lose_writes, edit_by_hand])
@virtual_time
async def test_leader_stops_ten_seconds_after_its_last_renewal(trouble: Callable[[SlowCluster], None]) -> None:
    cluster = SlowCluster()
    async with leading(cluster) as leader:
        await passes(61)
        renewed_at = loop_time() - 1
        trouble(cluster)
        await until(lambda: bool(leader.ended), within=20)
        assert leader.ended[0] - renewed_at == pytest.approx(Terms().renew, abs=0.1)


@virtual_time
async def test_leader_outlives_an_outage_that_is_shorter() -> None:
    cluster = SlowCluster()
    async with leading(cluster) as leader:
        await passes(61)
        cluster.available = False
        await passes(6.5)
        cluster.available = True
        await passes(60)
        assert (len(leader.began), leader.ended) == (1, [])


@pytest.mark.parametrize("seconds", [0.0, 1.0, 2.0])
@virtual_time
async def test_renewal_with_lost_answer_counts_as_own(seconds: float) -> None:
    """Each answer to a renewal is lost for a minute: that the server did them is seen by reading the lease."""
    cluster = SlowCluster()
    cluster.seconds = seconds
    async with leading(cluster) as leader:
        cluster.lost = 15
        await until(lambda: cluster.lost == 0, within=120)
        assert (len(leader.began), leader.ended) == (1, [])
        assert lease_of(cluster)["spec"]["leaseTransitions"] == 0


@virtual_time
async def test_leader_survives_a_changed_or_deleted_lease() -> None:
    cluster = SlowCluster()
    async with leading(cluster) as leader:
        lease = lease_of(cluster)
        cluster.put(LEASES, {**lease, "metadata": {**lease["metadata"], "annotations": {"by": "hand"}}})
        await passes(20)
        cluster.remove(LEASES, "controller", namespace=NAMESPACE)
        await passes(20)
        assert (len(leader.began), leader.ended) == (1, [])
        assert lease_of(cluster)["spec"]["holderIdentity"] == "one"


@virtual_time
async def test_leader_that_reads_another_holder_stops_at_once() -> None:
    cluster = SlowCluster()
    async with leading(cluster) as leader:
        await passes(20.5)
        lease = lease_of(cluster)
        cluster.put(LEASES, {**lease, "spec": {**lease["spec"], "holderIdentity": "by hand"}})
        cluster.requests.clear()
        await passes(2)
        assert len(leader.ended) == 1
        assert lease_of(cluster)["spec"]["holderIdentity"] == "by hand"


@virtual_time
async def test_late_answer_keeps_its_connection_until_the_term_ends() -> None:
    cluster = SlowCluster()
    async with leading(cluster) as leader:
        await passes(60.5)
        cluster.seconds = 6.0
        await passes(2)
        cluster.seconds = 0.0
        await passes(30)
        assert (cluster.given_up, leader.ended) == (0, [])
        cluster.seconds = 1000.0
        await until(lambda: bool(leader.ended), within=20)
        await passes(0.1)
        assert cluster.given_up >= 1, "whoever does not lead writes nothing"
        cluster.seconds = 0.0


@virtual_time
async def test_leader_leaves_in_time_without_answers() -> None:
    cluster = SlowCluster()
    candidate = Candidate(cluster, "one")
    async with candidate.living():
        await until(lambda: bool(candidate.began))
        cluster.seconds, left_at = 60.0, loop_time()
    assert loop_time() - left_at <= 2 * Terms().patience
    await cluster.settle()


_PHASES = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.5, 2.0, 4.0, 4.9, 7.0, 12.0, 30.0]),  # for an answer
        st.floats(0, 1),  # when in it the server does its work
        st.integers(0, 3),  # lost answers
        st.floats(0.5, 25),  # how long this lasts
        st.sampled_from(["", "", "", "a", "b", "c"]),  # who is killed
    ),
    max_size=12,
)


@settings(deadline=None)
@given(_PHASES)
@virtual_time
async def test_two_never_work_however_answers_come(phases: list[tuple[float, float, int, float, str]]) -> None:
    cluster, working = SlowCluster(), set[str]()
    async with AsyncExitStack() as stack:
        candidates = [Candidate(cluster, name, working) for name in "abc"]
        tasks = {
            candidate.election.identity: await stack.enter_async_context(candidate.living()) for candidate in candidates
        }
        for number, (seconds, early, lost, lasting, killed) in enumerate(phases):
            cluster.seconds, cluster.early, cluster.lost = seconds, early, lost
            if killed:
                await cancelled(tasks[killed])
                heir = Candidate(cluster, f"{killed}{number}", working)
                candidates.append(heir)
                tasks[killed] = await stack.enter_async_context(heir.living())
            for _ in range(int(lasting * 2)):
                await passes(0.5)
                assert len(working) <= 1
        cluster.seconds, cluster.lost = 0.0, 0
        await until(lambda: len(working) == 1, within=60)
    await cluster.settle()
    assert all(len(candidate.began) == len(candidate.ended) for candidate in candidates)


@virtual_time
async def test_candidate_lacks_an_api_server_that_starts_and_then_rights() -> None:
    """A server that starts forbids everything; what it goes on forbidding is missing."""
    cluster = FakeCluster()
    election = Election(cluster, name="controller", namespace=NAMESPACE, identity="a", monotonic=loop_time)
    cluster.available = False
    task = asyncio.create_task(election.lead(lambda: asyncio.sleep(1e6)))
    await passes(30)
    assert "does not answer" in election.failure
    cluster.forbidden[LEASES] = "leases is forbidden"
    cluster.available = True
    await until(lambda: "starts" in election.failure, within=5)
    await until(lambda: "leases is forbidden" in election.failure, within=30)
    cluster.forbidden.clear()
    await until(lambda: election.failure == "", within=5)
    await cancelled(task)
