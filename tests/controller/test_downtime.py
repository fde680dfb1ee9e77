"""Times in which nobody could look after executions: noticed, told once in the history of each that lives, and said on the pages."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from dashboard.starts.expected_waits import EXPECTED, ExpectedWaits, WaitsRead
from dashboard.starts.viewmodels.expected_wait import STANDS_STILL
from grid.controller.downtime import Downtime, DowntimeLog, history_entry
from grid.controller.leader import Election
from grid.executions.ledger import EventRecord
from grid.kube.store import Freshness
from grid.models import Execution, LifecycleEntry, State
from grid.queue.wait_estimate.inputs import WaitEstimate
from grid.runtime import Runtime
from tests.clusters.test_cluster_faults import living
from tests.conftest import People
from tests.controller.world import World, in_world
from tests.executions.executing import make_execution, make_project, read_executions
from tests.platformhealth.test_running import in_state, running
from tests.shell.live import Clock
from tests.support.cluster import FakeCluster
from tests.support.runtime import ask_for_lease, renew_lease
from tests.support.shop import NOW, Shop
from tests.support.virtual import cancelled, loop_time, passes, until, virtual_time
from tests.workspaces.workspaces import page

SECOND = timedelta(seconds=1)
SINCE = datetime(2026, 3, 4, 12, 0, 3, 400_000, tzinfo=UTC)
FINE, CUT_OFF = Freshness(True, 0.0, ""), Freshness(True, 4.0, "Connection refused.")
SENTENCE = "Nothing is started, stopped or scaled since 09:00:00 UTC; running programs continue."


def entries_of(execution: Execution) -> list[tuple[str, str]]:
    rows = LifecycleEntry.objects.filter(execution=execution, reason__endswith="_away")
    return list(rows.values_list("reason", "message"))


def test_line_says_duration_cause_and_fate_of_programs() -> None:
    entry = history_entry(Downtime("controller", SINCE, SINCE + 17 * SECOND))
    assert (entry.at, entry.reason, entry.level) == (SINCE, "controller_away", "Warning")
    assert entry.message == (
        "Until 12:00:20 UTC executions were not managed, because the controller was not running. "
        "Running programs continued; unfinished steps are resumed."
    )
    assert history_entry(Downtime("cluster", SINCE, SINCE + timedelta(days=1))).message.startswith(
        "Until 12:00:03 on 5 March UTC the cluster did not answer the controller."
    )


@pytest.mark.parametrize(
    ("seen", "ends"),
    [
        ([FINE, CUT_OFF, Freshness(True, 9.0, "Too many requests."), FINE, FINE], ["Until 12:00:18"]),
        ([FINE, CUT_OFF, FINE], ["Until 12:00:13"]),
        ([Freshness(False, 0.0, "Not yet read."), FINE], []),
    ],
    ids=["changing causes", "one cause, for the shortest time that counts", "never filled"],
)
async def test_outage_of_a_filled_cache_is_counted_once(seen: list[Freshness], ends: list[str]) -> None:
    log, entries = DowntimeLog(None), list[EventRecord]()

    async def write(entry: EventRecord) -> None:
        entries.append(entry)

    for number, freshness in enumerate(seen):
        log.notice(freshness, SINCE + number * 5 * SECOND)
    await log.record(write)
    expected = [("cluster_away", SINCE + 5 * SECOND, end) for end in ends]
    assert [(entry.reason, entry.at, entry.message[:14]) for entry in entries] == expected


@in_world
async def test_long_cluster_outage_is_told_once_over(shop: Shop) -> None:
    world = World()
    async with running(world), living(world):
        execution = shop.launch()
        await until(lambda: in_state(execution, "running"), within=20)
        world.cluster.available = False
        await passes(1)
        world.cluster.available = True
        await passes(10)
        assert entries_of(execution) == []
        world.cluster.available = False
        await passes(20)
        assert entries_of(execution) == []
        world.cluster.available = True
        await until(lambda: bool(entries_of(execution)), within=30)
        await passes(10)
        ((reason, message),) = entries_of(execution)
        assert reason == "cluster_away"
        assert message.endswith("Running programs continued; unfinished steps are resumed.")


@in_world
async def test_term_begins_by_telling_executions_of_missing_leader(shop: Shop) -> None:
    world = World()
    ended, waiting = shop.launch(), shop.launch()
    Execution.objects.filter(pk=ended.pk).update(state="stopped", settled_at=NOW)
    away = Downtime("controller", NOW - timedelta(seconds=30), NOW)
    for _ in range(2):  # a second controller that tells the same changes nothing
        await world.step(world.controller(away=away))
    assert entries_of(ended) == []
    ((reason, message),) = entries_of(waiting)
    assert reason == "controller_away"
    assert "the controller was not running" in message
    assert LifecycleEntry.objects.get(execution=waiting, reason=reason).at == waiting.requested_at, (
        "not before it was there"
    )
    await world.step(world.controller(away=Downtime("controller", NOW, NOW + timedelta(seconds=4))))
    assert len(entries_of(waiting)) == 1, "a short handover is no news"


def candidate(cluster: FakeCluster, identity: str) -> Election:
    return Election(
        cluster,
        name="controller",
        namespace="compute-grid",
        identity=identity,
        monotonic=loop_time,
        clock=lambda: NOW + timedelta(seconds=loop_time()),
    )


class Terms:
    """What each term of a candidate was told."""

    def __init__(self, election: Election) -> None:
        self.election = election
        self.away: list[Downtime | None] = []

    async def work(self) -> None:
        self.away.append(self.election.away)
        await asyncio.Event().wait()


@virtual_time
async def test_the_next_leader_knows_since_when_nobody_led() -> None:
    cluster = FakeCluster()
    assert await candidate(cluster, "killed").attempt()
    await passes(3)
    next_one = Terms(candidate(cluster, "next"))
    leading = asyncio.create_task(next_one.election.lead(next_one.work))
    await until(lambda: bool(next_one.away), within=30)
    (away,) = next_one.away
    assert away is not None
    assert (away.of, away.since) == ("controller", NOW)
    assert 18 <= (away.until - away.since).total_seconds() < 22
    await cancelled(leading)


@virtual_time
async def test_leader_that_lost_the_cluster_blames_the_cluster() -> None:
    cluster = FakeCluster()
    terms = Terms(candidate(cluster, "one"))
    leading = asyncio.create_task(terms.election.lead(terms.work))
    await passes(60)
    assert terms.away == [None], "nobody led before, and a renewal is no downtime"
    cluster.available = False
    await passes(40)
    cluster.available = True
    await until(lambda: len(terms.away) == 2, within=30)
    away = terms.away[1]
    assert away is not None
    assert away.of == "cluster"
    assert 40 <= (away.until - away.since).total_seconds() < 50
    await cancelled(leading)


@pytest.fixture
def renewed(cluster: FakeCluster, runtime: Runtime) -> None:
    renew_lease(runtime, cluster)


@pytest.fixture
def queued(people: People, runtime: Runtime) -> Execution:
    execution = make_execution(people.owner, make_project(people.owner), state=State.QUEUED)
    read_executions(runtime)
    return execution


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("renewed")
@pytest.mark.parametrize("path", ["/", "/executions/", "/executions/{}/"])
def test_the_pages_say_so_when_they_are_opened(
    people: People, queued: Execution, runtime: Runtime, clock: Clock, path: str
) -> None:
    assert "No controller is running" not in page(people.owner, path.format(queued.pk))
    clock.seconds += 16
    ask_for_lease(runtime)
    shown = page(people.owner, path.format(queued.pk))
    assert "No controller is running" in shown
    assert SENTENCE in shown


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("renewed")
def test_no_start_is_expected_without_a_controller(
    people: People, queued: Execution, runtime: Runtime, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """List, home, page and queue say a time while one leads, and none beside "No controller is running"."""
    known = WaitsRead(runtime.clock(), {queued.pk: WaitEstimate(250.0, 200.0, 300.0)})

    async def value(self: ExpectedWaits, runtime: Runtime, *, patience: float = 0.0) -> WaitsRead:
        return known

    monkeypatch.setattr(ExpectedWaits, "begin", lambda self, runtime: None)
    monkeypatch.setattr(ExpectedWaits, "value", value)
    monkeypatch.setattr(EXPECTED, "latest", known)
    paths = ("/", "/executions/", f"/executions/{queued.pk}/", "/queue/")
    for path in paths:
        assert "bout 4 min" in page(people.owner, path), path
    clock.seconds += 16
    ask_for_lease(runtime)
    for path in paths:
        shown = page(people.owner, path)
        assert "No controller is running" in shown, path
        assert "bout 4 min" not in shown, path
        assert (STANDS_STILL.sentence in shown) == (path not in ("/", "/executions/")), path
