"""What a cluster has cost and costs now: the head's time, and the time for which each worker holds a node."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from dashboard.viewmodels.clusters import Worked, price_at_bounds
from dashboard.viewmodels.execution import ExecutionRecord, Facts, cost_so_far, facts
from tests.dashboard import clustering
from tests.dashboard.clustering import minutes, waiting_worker
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
