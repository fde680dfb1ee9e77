"""What is read of starts: the newest of a group, by an index."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from grid.starts.startuphistory import (
    FEWEST_NODE_STARTS,
    image_size,
    recent_starts,
    slow_pull,
    usual_node_start,
    usual_pace,
    usual_start,
)
from tests.starts.startrecords import plan_of, start_up
from tests.support.shop import NOW, Shop


def start(shop: Shop, id: str, minutes: float, **changes: Any) -> None:
    start_up(id, at=NOW - timedelta(minutes=minutes), **changes).save(force_insert=True)


def ids(**group: Any) -> list[str]:
    return [start_times.execution_id for start_times in recent_starts(**group)]


def test_newest_starts_come_first_up_to_the_limit(shop: Shop) -> None:
    for minutes in (3, 1, 2):
        start(shop, f"e{minutes}", minutes)
    start(shop, "stopped", 4, ran=False, reason="stop_requested")
    assert ids() == ["e1", "e2", "e3"]
    assert ids(at_most=2) == ["e1", "e2"]


def test_a_group_is_what_is_given_of_it(shop: Shop) -> None:
    start(shop, "lab", 1)
    start(shop, "job", 2, environment_id=shop.job.pk, node_pool="batch")
    assert ids(tier="small") == ["lab", "job"]
    assert ids(tier="small", environment="script") == ["job"]
    assert ids(node_pool="batch") == ["job"]
    assert ids(tier="small", environment="script", node_pool="default") == []


def test_usual_node_start_comes_from_its_pool(shop: Shop) -> None:
    for number in range(FEWEST_NODE_STARTS):
        assert usual_node_start("default") is None
        start(shop, f"e{number}", number, node_wait=200.0 + 10 * number, node_started=True)
    start(shop, "found-room", 0, node_wait=1.0, node_started=False)
    start(shop, "not-told-apart", 0, node_started=True)
    start(shop, "stopped", 0, node_wait=1.0, node_started=True, ran=False)
    assert usual_node_start("default") == 220
    assert usual_node_start("batch") is None


def test_usual_launch_excludes_queue_and_node_waits(shop: Shop) -> None:
    tier, environment = shop.tier.pk, shop.workspace.pk
    for number in range(FEWEST_NODE_STARTS):
        assert usual_start(tier=tier, environment=environment) is None
        start(shop, f"e{number}", number, total=100.0 + 10 * number, queued=80.0)
    start(shop, "new-node", 0, total=900.0, node_started=True)
    start(shop, "stopped", 0, total=900.0, ran=False)
    assert usual_start(tier=tier, environment=environment) == 40
    assert usual_start(tier=tier, environment="another") is None


def test_usual_start_uses_the_current_pull(shop: Shop) -> None:
    for number in range(FEWEST_NODE_STARTS):
        start(shop, f"e{number}", number, total=50.0, queued=0.0, pulling=30.0)
    start(shop, "not-told-apart", 0, total=900.0)
    assert usual_start(tier=shop.tier.pk, environment=shop.workspace.pk, pull=5.0) == 25


def test_pool_pull_speed_ignores_small_pulls(shop: Shop) -> None:
    for number in range(FEWEST_NODE_STARTS):
        assert usual_pace("default") is None
        start(shop, f"e{number}", number, pulling=20.0 + number, image_bytes=1_000_000_000, image="lab:2")
    start(shop, "small", 0, pulling=5.0, image_bytes=1_000)
    start(shop, "cached", 0, pulling=0.0, image_bytes=0)
    assert usual_pace("default") == 22 / 1_000_000_000
    assert usual_pace("batch") is None
    choice = {"tier": shop.tier.pk, "environment": shop.workspace.pk}
    assert image_size(**choice, image="lab:2") == 1_000_000_000
    assert image_size(**choice, image="another") is None


def test_pulls_that_waited_for_others_teach_nothing(shop: Shop) -> None:
    """Their bytes are not recorded; what is known of the pool and of the image is as without them."""
    for number in range(FEWEST_NODE_STARTS):
        start(shop, f"e{number}", number + 10, pulling=20.0, image_bytes=1_000_000_000, image="a", image_cached=False)
        start(shop, f"w{number}", number, pulling=300.0, image="a", image_cached=False)
    pace = usual_pace("default")
    assert pace == 20 / 1_000_000_000
    assert slow_pull("default", "a", None).seconds == 20
    assert image_size(tier=shop.tier.pk, environment=shop.workspace.pk, image="a") == 1_000_000_000


@pytest.mark.parametrize(
    ("group", "index"),
    [
        pytest.param({"node_pool": "batch"}, "start_ups_by_pool", id="pool"),
        pytest.param({"tier": "small", "environment": "script"}, "start_ups_of_a_choice", id="choice"),
    ],
)
def test_groups_are_read_in_index_order(shop: Shop, group: dict[str, Any], index: str) -> None:
    with CaptureQueriesContext(connection) as queries:
        recent_starts(**group)
    plan = plan_of(queries.captured_queries[-1]["sql"])
    assert f"{index} " in plan
    assert "TEMP B-TREE" not in plan or connection.vendor == "postgresql"
