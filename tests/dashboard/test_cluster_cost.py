"""What a cluster has cost and costs now: the head's time, and the time for which each worker holds a node."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from dashboard.records import read_record
from dashboard.viewmodels.clusters import Worked, price_at_bounds
from dashboard.viewmodels.execution import ExecutionRecord, Facts, cost_so_far, facts
from dashboard.viewmodels.samples import SamplePoint
from grid.models import Execution
from tests.conftest import People
from tests.dashboard import clustering
from tests.dashboard.clustering import make_cluster, make_samples, minutes, waiting_worker
from tests.dashboard.executing import make_project
from tests.dashboard.test_cluster_viewmodel import NOW, OWNER, RECORD
from tests.diagnosis.test_clusters import LEAVING, look, member, ready
from tests.support.builders import MOMENT, stamp


def worked(*samples: tuple[float, int]) -> Worked:
    """By samples of a minute and so many workers."""
    found = Worked()
    for minute, workers in samples:
        found = found.then(minutes(minute), workers)
    return found


def test_workers_have_worked_for_as_long_as_the_samples_show_however_far_apart_they_are() -> None:
    ten_hours = [(float(minute), 10) for minute in range(0, 600, 10)]
    last_hour = [(600 + minute / 4, 1) for minute in range(240)]
    assert worked(*ten_hours, *last_hour).at(minutes(660)) == pytest.approx((600 * 10 + 60) * 60)
    assert worked().at(NOW) == 0
    assert worked((5, 3)).at(minutes(5)) == 0
    assert worked((5, 3)).at(minutes(4)) == 0, "it ended before its last sample"


def test_the_cost_is_the_heads_time_and_the_workers_time() -> None:
    measured = replace(RECORD, cluster=replace(clustering.RECORD, worked=worked((0, 2), (60, 3), (120, 0))))
    assert cost_so_far(measured, MOMENT + timedelta(hours=2)) == Decimal("2.20")


def test_workers_cost_nothing_before_there_was_one() -> None:
    late = replace(RECORD, cluster=replace(clustering.RECORD, worked=worked((50, 4))))
    assert cost_so_far(late, MOMENT + timedelta(hours=1)) == Decimal("0.10") + Decimal("0.40") * 40 / 60
    assert cost_so_far(RECORD, MOMENT + timedelta(hours=1)) == Decimal("0.10")


def test_the_price_now_is_that_of_the_workers_that_hold_a_node() -> None:
    leaving_without_node = member(waiting_worker("c", "left", deletionTimestamp=stamp(NOW)))
    seen = look([*ready(2), member(waiting_worker("c", "waits")), LEAVING, leaving_without_node], desired=3)
    assert seen.on_nodes == 3, "one that leaves holds its node until it is gone"
    assert price(RECORD, workers=seen.on_nodes) == "$1.30 an hour with 3 workers"
    assert price(RECORD, workers=0) == "$0.10 an hour with 0 workers"
    assert price(replace(RECORD, state="queued", started_at=None), workers=0) == "$0.50 an hour with 1 worker"


def price(record: ExecutionRecord, *, workers: int) -> str:
    shown = facts(record, OWNER, pods=[], node="", workers=workers, now=NOW).context
    assert isinstance(shown, Facts)
    return shown.price


def test_prices_are_said_at_the_bounds() -> None:
    assert (
        price_at_bounds(clustering.RECORD, Decimal("0.40"))
        == "$0.50 an hour with 1 worker, $2.10 an hour with 5 workers"
    )


def counted(execution: Execution, before: ExecutionRecord | None) -> tuple[ExecutionRecord, int]:
    """The record, and how many samples the database gave for it."""
    rows = 0

    def count(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal rows
        found = execute(sql, params, many, context)
        if "grid_clustersample" in sql:
            with connection.cursor() as cursor:
                cursor.cursor.execute(f"SELECT COUNT(*) FROM ({sql}) AS found", params)
                rows += cursor.cursor.fetchone()[0]
        return found

    with connection.execute_wrapper(count):
        record = read_record(execution.pk, before=before)
    assert record is not None
    return record, rows


@pytest.mark.django_db
def test_a_page_that_stays_open_reads_only_the_samples_of_the_last_minutes(people: People) -> None:
    now = timezone.now()
    execution = make_cluster(people.owner, make_project(people.owner), started_at=now - timedelta(hours=10))

    def sampled(*before: float) -> None:
        points = [SamplePoint(now - timedelta(minutes=one), 2, 2, 3, None, None, 7) for one in before]
        make_samples(execution, *points)

    sampled(*(600 - minute for minute in range(599)))
    first, rows = counted(execution, None)
    assert rows == 599
    sampled(0.5)
    later, rows = counted(execution, first)
    assert rows <= 21
    fresh, _ = counted(execution, None)
    assert later.cluster is not None
    assert later.cluster == fresh.cluster
    assert later.cluster.worked.at(now) == pytest.approx(2 * 10 * 3600)
    assert (later.cluster.pending_tasks, len(later.cluster.wanted_before)) == (7, rows)
