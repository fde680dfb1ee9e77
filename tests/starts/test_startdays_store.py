"""Starts are added up by day with their records: once each, in all five groups, completed later, and kept for good."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import transaction

from grid.configuration import EXECUTION_RETENTION
from grid.controller import retention
from grid.executions.stopping import request_stop
from grid.models import Execution, StartDay, StartUp
from grid.starts import startdays_store as startdays
from grid.starts.startdays import StartSums, percentile, read_sums
from tests.controller.world import World
from tests.starts.test_startups import starts
from tests.support.shop import NOW, Shop

IMAGE = "compute-grid/jupyterlab:4.6"
GROUPS = {("all", ""), ("tier", "small"), ("environment", "jupyterlab"), ("pool", "default"), ("image", IMAGE)}


def sums(grouping: str = "all") -> StartSums:
    return read_sums(StartDay.objects.get(grouping=grouping).sums)


def ran(shop: Shop, total: float, **changes: Any) -> StartUp:
    values: dict[str, Any] = {
        "execution_id": f"e{total}",
        "ran": True,
        "kind": "job",
        "tier": shop.tier,
        "environment": shop.workspace,
        "node_pool": "default",
        "image": IMAGE,
        "at": NOW,
        "total": total,
    }
    return StartUp(**values | changes)


def record(start: StartUp) -> None:
    with transaction.atomic():
        startdays.record(start)


def test_running_start_is_counted_in_each_of_its_groups(shop: Shop) -> None:
    execution = shop.launch()
    starts(World(), execution)
    assert set(StartDay.objects.values_list("grouping", "group")) == GROUPS
    for grouping, _ in GROUPS:
        of_group = sums(grouping)
        assert (
            of_group.starts,
            of_group.image_pulled,
            of_group.image_known,
            of_group.new_node,
            of_group.node_known,
        ) == (1, 1, 1, 0, 1)
        assert of_group.slowest == [(12.0, execution.pk)]
        assert 11.7 <= (percentile(of_group.times["total"], 50) or 0) <= 12.3
        assert 6.3 <= (percentile(of_group.times["pulling"], 50) or 0) <= 6.7
    assert set(StartDay.objects.values_list("day", "starts")) == {(NOW.date(), 1)}


def test_late_events_replace_what_was_counted(shop: Shop) -> None:
    starts(World(), shop.launch(), events_late=True)
    at_once, late = StartUp.objects.get(), sums()
    assert at_once.image_cached is False
    assert (late.starts, late.image_pulled, late.image_known) == (1, 1, 1)
    assert late.times.keys() >= {"total", "pulling"}
    assert "merged" not in late.times
    assert late.slowest == [(at_once.total, at_once.pk)]


def test_start_that_never_ran_is_not_counted(shop: Shop) -> None:
    request_stop(shop.launch(), by="alice", now=NOW + timedelta(seconds=30))
    assert StartUp.objects.exists()
    assert not StartDay.objects.exists()


def test_days_and_groups_are_separate_and_summed_per_day(shop: Shop) -> None:
    record(ran(shop, 1))
    record(ran(shop, 2, image="other:1"))
    record(ran(shop, 3, at=NOW - timedelta(days=1)))
    counts = {(row.grouping, row.group, row.day): row.starts for row in StartDay.objects.all()}
    day, before = NOW.date(), NOW.date() - timedelta(days=1)
    assert (counts["tier", "small", day], counts["tier", "small", before]) == (2, 1)
    assert (counts["image", IMAGE, day], counts["image", "other:1", day]) == (1, 1)


def test_an_execution_is_counted_once(shop: Shop) -> None:
    record(ran(shop, 5))
    record(ran(shop, 50, execution_id="e5"))
    assert (StartUp.objects.get().total, sums().starts) == (5, 1)


def test_both_stay_when_their_execution_is_deleted(shop: Shop, configure: Callable[..., None]) -> None:
    configure(EXECUTION_RETENTION, 30)
    execution = shop.launch()
    record(ran(shop, 12, execution_id=execution.pk))
    long_ago = NOW - timedelta(days=31)
    Execution.objects.update(state="stopped", ended_at=long_ago, slots_freed_at=long_ago, settled_at=long_ago)
    while retention.drop_executions(NOW, 100):
        pass
    assert not Execution.objects.exists()
    assert StartUp.objects.get().execution_id == execution.pk
    assert sums().slowest == [(12.0, execution.pk)]
