"""Clusters whose workers are idle and no more than the least: they cost little, and what they begin to do is noticed in time."""

import itertools
import logging
from datetime import timedelta

import pytest
from django.db.models import F

from grid.clusters import samples
from grid.clusters.frameworks.base import WorkerReport
from grid.executions import ledger
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
from tests.support.database import full_database
from tests.support.shop import NOW, Shop
from tests.support.virtual import loop_time, passes

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
    batch = [*taken(twice), *taken(twice, "gone"), *taken(wrong, ready=-1), *taken(well)]
    samples.record(batch)
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
