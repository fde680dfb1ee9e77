"""What is kept of a cluster's samples, what a worker costs, and what is asked of a cluster whose workers are idle."""

import itertools
import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from django.db.models import F
from hypothesis import given, strategies as st

from grid.clusters import samples
from grid.clusters.costs import ABSENT, changed, deletion_cost, notes_on
from grid.clusters.frameworks.base import ClusterReport, WorkerReport
from grid.clusters.progress import ObservedCluster
from grid.clusters.samples import sample_of, superfluous
from grid.core.labels import KEYS, POD_DELETION_COST
from grid.executions import ledger
from grid.kube.objects import Pod
from grid.models import ClusterSample, Execution
from grid.models.dataplane import LOCAL
from grid.runtime import demand
from tests.clusters.test_framework_poller import (
    FakeFramework,
    asking,
    copies,
    name_of,
    running_cluster,
    running_clusters,
)
from tests.controller.world import World, in_world
from tests.support.builders import decode, pod
from tests.support.database import full_database
from tests.support.shop import NOW, Shop
from tests.support.virtual import loop_time, passes

SAMPLED_AT = datetime(2026, 3, 9, 12, 0, tzinfo=UTC)


def sample(number: int, at: datetime, workers: int = 2) -> ClusterSample:
    return ClusterSample(pk=number, at=at, ready=workers, wanted=workers)


def kept(samples: list[ClusterSample]) -> list[ClusterSample]:
    gone = set(superfluous(samples, now=SAMPLED_AT))
    return [sample for sample in samples if sample.pk not in gone]


def test_samples_thin_out_by_age() -> None:
    left = kept([sample(n, SAMPLED_AT - timedelta(seconds=15 * (7 * 24 * 240 - n))) for n in range(7 * 24 * 240)])

    def count(older: timedelta, younger: timedelta) -> int:
        return sum(older >= SAMPLED_AT - sample.at > younger for sample in left)

    assert count(timedelta(hours=1), timedelta(0)) == 240
    assert abs(count(timedelta(days=1), timedelta(hours=1)) - 23 * 60) <= 1
    assert abs(count(timedelta(days=7), timedelta(days=1)) - 6 * 144) <= 1
    assert len(left) < 2600


@given(st.lists(st.tuples(st.integers(1, 400), st.integers(0, 3)), max_size=200))
def test_thinning_is_idempotent_and_keeps_changes_of_size(steps: list[tuple[int, int]]) -> None:
    samples: list[ClusterSample] = []
    at = SAMPLED_AT - timedelta(days=3)
    for number, (gap, workers) in enumerate(steps):
        at += timedelta(seconds=15 * gap)
        samples.append(sample(number, at, workers))
    left = kept(samples)
    assert kept(left) == left

    def sizes(some: list[ClusterSample]) -> list[tuple[datetime, int]]:
        return [(after.at, after.ready) for before, after in itertools.pairwise(some) if before.ready != after.ready]

    assert sizes(left) == sizes(samples)


@given(st.integers(0, 10**7), st.integers(0, 2**50), st.integers(0, 10**7), st.integers(0, 2**50))
def test_tasks_cost_more_than_bytes_and_costs_fit(a: int, x: int, b: int, y: int) -> None:
    cost, other = deletion_cost(a, x), deletion_cost(b, y)
    assert 0 <= cost < 2**31
    if min(a, 2000) > min(b, 2000):
        assert cost > other
    elif a == b and x <= y:
        assert cost <= other


def test_unknown_workers_go_first_and_idle_ones_next() -> None:
    order = [None, WorkerReport(0), WorkerReport(0, 1), WorkerReport(0, 10**9), WorkerReport(1), WorkerReport(2, 5)]
    costs = [int(notes_on(report)[POD_DELETION_COST]) for report in order]
    assert costs == sorted(costs)
    assert len(set(costs)) == len(costs)
    assert costs[0] == ABSENT


@given(st.integers(), st.integers(), st.integers())
def test_any_number_of_a_head_can_be_stored(tasks: int, held: int, pending: int) -> None:
    notes = notes_on(WorkerReport(tasks, held))
    assert -(2**31) <= int(notes[POD_DELETION_COST]) < 2**31
    assert set(msgspec.json.decode(notes[KEYS.worker_report])) == {"tasks", "bytes"}
    taken = sample_of(ObservedCluster(), None, minimum=1, pending_tasks=pending)
    assert taken.pending_tasks is not None
    assert 0 <= taken.pending_tasks < 2**31


def worker(notes: Mapping[str, str] | None = None) -> Pod:
    return decode(pod("w", node="n", annotations=dict(notes) if notes else None), Pod)


def test_start_and_end_of_work_are_written_at_once() -> None:
    busy, idle = notes_on(WorkerReport(5)), notes_on(WorkerReport(0))
    just_written = {"uid-of-w": 100.0}

    def writes(before: Mapping[str, str] | None, now_holds: WorkerReport | None, now: float) -> bool:
        report = ClusterReport({"w": now_holds} if now_holds else {}, 0, 0)
        return bool(changed(report, [worker(before)], just_written, now=now))

    assert writes(None, WorkerReport(0), 200.0)
    assert writes(idle, WorkerReport(1), 101.0)
    assert writes(busy, WorkerReport(0), 101.0)
    assert not writes(busy, WorkerReport(6), 101.0)
    assert writes(busy, WorkerReport(6), 116.0)
    assert not writes(busy, WorkerReport(5), 500.0)
    assert writes(busy, None, 101.0), "the head has lost it"


EVERY_SECONDS = 15.0


def gaps(framework: FakeFramework, execution: Execution, *, since: float) -> list[float]:
    times = [at for at in framework.times(execution) if at >= since]
    return [after - before for before, after in itertools.pairwise(times)]


@in_world
async def test_resting_cluster_is_asked_four_times_a_minute(shop: Shop) -> None:
    world, execution, framework, controller = await running_cluster(shop)
    async with asking(world, controller):
        await passes(60)
        began = loop_time()
        await passes(200)
        resting = gaps(framework, execution, since=began)
        assert all(13 < gap <= EVERY_SECONDS for gap in resting), resting
        framework.holds[name_of(world.workers_of(execution)[0])] = WorkerReport(tasks=1)
        since = loop_time()
        await passes(60)
        assert framework.times(execution)[-1] > since
        assert all(gap < 6 for gap in gaps(framework, execution, since=since))


@pytest.mark.parametrize("what", ["pending", "wanted"])
@in_world
async def test_a_demand_is_no_rest(shop: Shop, what: str) -> None:
    world, execution, framework, controller = await running_cluster(shop)
    setattr(framework, what, 3)
    async with asking(world, controller):
        await passes(120)
    assert all(gap < 6 for gap in gaps(framework, execution, since=0))


@in_world
async def test_metrics_api_always_knows_number_of_resting_cluster(shop: Shop) -> None:
    world, execution, framework, controller = await running_cluster(shop, on_demand=True)
    async with asking(world, controller):
        await passes(30)
        began = loop_time()
        for _ in range(150):
            await passes(1)
            (known,) = demand.values(controller.autoscalers.values(), now=world.now + timedelta(minutes=1.5))
            assert known["value"] == "0", "known, and would be without a leader for a minute and a half"
        assert all(gap > 13 for gap in gaps(framework, execution, since=began)), "it was at rest"
        framework.wanted = 4
        await passes(EVERY_SECONDS + 3)  # the caches follow each second
        (known,) = demand.values(controller.autoscalers.values(), now=world.now)
        assert known["value"] == "4"


@in_world
async def test_only_the_specs_of_changed_clusters_are_read(shop: Shop) -> None:
    world, framework = World(), FakeFramework()
    changes, stays = shop.launch_cluster(), shop.launch_cluster(after=1)
    await running_clusters(world, framework, changes, stays)
    running, changed = ledger.running_clusters(LOCAL, {})
    known = {each.id: each.revision for each in changed}
    assert running == known.keys() == {changes.pk, stays.pk}
    assert ledger.running_clusters(LOCAL, known) == (running, [])
    Execution.objects.filter(pk=changes.pk).update(revision=F("revision") + 1)
    running, changed = ledger.running_clusters(LOCAL, known)
    assert running == {changes.pk, stays.pk}
    assert [each.id for each in changed] == [changes.pk]


def taken(*ids: str, ready: int = 2) -> list[ClusterSample]:
    return [ClusterSample(execution_id=id, at=NOW, ready=ready, wanted=2) for id in ids]


@pytest.mark.django_db(transaction=True)
def test_unstorable_sample_is_dropped_alone(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    well, twice, wrong = [shop.launch_cluster(after=number).pk for number in range(3)]
    samples.record([*taken(twice), *taken(twice, "gone"), *taken(wrong, ready=-1), *taken(well)])
    assert set(ClusterSample.objects.values_list("execution", flat=True)) == {well, twice}
    lines = [record.getMessage() for record in caplog.records]
    assert [line.partition(" reason=")[0] for line in lines] == [
        f"a sample cannot be stored, it is dropped execution={id}" for id in (twice, "gone", wrong)
    ]


@pytest.mark.django_db(transaction=True)
@in_world
async def test_samples_lost_to_full_disk_are_reported_and_retaken(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    world, execution, _, controller = await running_cluster(shop)
    copies(world, execution, 80)  # so many samples need another page
    world.refresh(controller)
    async with asking(world, controller):
        await passes(30)
        with full_database():
            await passes(35)
        ends = world.now
        await passes(15)
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(lines) == 1
    assert lines[0].startswith("The disk of the database is full")
    after = ClusterSample.objects.filter(at__gt=ends - timedelta(seconds=6), at__lte=ends + timedelta(seconds=6))
    assert set(after.values_list("execution", flat=True)) == set(Execution.objects.values_list("pk", flat=True))
