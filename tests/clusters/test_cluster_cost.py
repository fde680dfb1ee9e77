"""What a cluster has cost and costs now: the times for which its head and each worker hold a node."""

from dataclasses import replace
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from dashboard.executions.records import read_record
from dashboard.executions.viewmodels.execution import ExecutionRecord, Facts, facts
from tests.clusters.clustering import make_cluster, make_interval, minutes, waiting_worker
from tests.clusters.test_cluster_viewmodel import NOW, OWNER, RECORD
from tests.conftest import People
from tests.diagnosis.snapshots import LEAVING, member, ready, snapshot
from tests.executions.executing import make_project
from tests.support.builders import MOMENT, stamp


def test_price_now_counts_workers_that_hold_a_node() -> None:
    leaving_without_node = member(waiting_worker("c", "left", deletionTimestamp=stamp(NOW)))
    seen = snapshot([*ready(2), member(waiting_worker("c", "waits")), LEAVING, leaving_without_node], desired=3)
    assert seen.on_nodes == 3, "one that leaves holds its node until it is gone"
    assert price(RECORD, workers=seen.on_nodes) == "$1.30 an hour with 3 workers"
    assert price(RECORD, workers=0) == "$0.10 an hour with 0 workers"
    assert price(replace(RECORD, state="queued", started_at=None), workers=0) == "$0.50 an hour with 1 worker"


def price(record: ExecutionRecord, *, workers: int) -> str:
    shown = facts(record, OWNER, pods=[], node="", workers=workers, now=NOW).context
    assert isinstance(shown, Facts)
    return shown.price


@pytest.mark.django_db
def test_cost_sums_the_times_of_pods_on_nodes(people: People) -> None:
    execution = make_cluster(people.owner, make_project(people.owner), started_at=MOMENT)
    make_interval(execution, "head", price="0.10", began=0)
    make_interval(execution, "first", price="0.40", began=0, ended=60)
    make_interval(execution, "second", price="0.40", began=30, ended=60)
    record = read_record(execution.pk)
    assert record is not None
    assert record.spending.until(minutes(120)) == Decimal("0.20") + Decimal("0.60")


@pytest.mark.django_db
def test_cost_is_read_in_two_queries_for_many_pods(people: People) -> None:
    execution = make_cluster(people.owner, make_project(people.owner), started_at=MOMENT)

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            read_record(execution.pk)
        return sum("grid_usageinterval" in query["sql"] for query in captured.captured_queries)

    for number in range(20):
        make_interval(execution, f"w{number}", price="0.40", began=number, ended=number + 1)
    assert queries() == 2
