"""How a start is told: what took how long, what is usual, why it was slow; and what is read of earlier ones, by an index."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from dashboard.shell.fragments import render_fragment
from dashboard.starts.viewmodels.startup import StartMeasures, UsualStart, Waterfall, main_cause, start_text, waterfall
from grid.diagnosis.startup import Phase
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
from tests.support.golden import assert_golden
from tests.support.shop import NOW, Shop

COLD = StartMeasures(
    total=60,
    seconds={Phase.QUEUED: 2, Phase.NODE_WAIT: 0, Phase.VOLUMES: 2, Phase.PULLING: 48, Phase.ANSWERING: 8},
    image_cached=False,
    image_bytes=1_800_000_000,
    node_started=False,
)
USUAL = UsualStart(count=12, total=14, seconds={Phase.QUEUED: 2, Phase.PULLING: 0, Phase.ANSWERING: 9})


def waterfall_of(start: StartMeasures | None, usual: UsualStart = USUAL, *, is_final: bool = False) -> Waterfall:
    shown = waterfall(start, usual, is_final=is_final).context
    assert isinstance(shown, Waterfall)
    return shown


def test_slow_pull_is_shown_with_cause_and_usual_time() -> None:
    shown = waterfall_of(COLD)
    assert shown.sentence == "Started in 1 min. Usually 14 s."
    pull = next(bar for bar in shown.bars if bar.word == "Image pull")
    assert pull.note == "The image was not on the node: 1.8 GB in 48 s."
    assert (pull.took, pull.usual, pull.is_slow) == ("48 s", "0 s", True)
    assert [bar.word for bar in shown.bars if bar.is_slow] == ["Image pull"]


def test_few_starts_give_no_usual_time() -> None:
    shown = waterfall_of(COLD, replace(USUAL, count=4))
    assert (shown.sentence, shown.basis) == ("Started in 1 min.", "")
    assert not any(bar.usual or bar.is_slow for bar in shown.bars)


def test_phases_that_cannot_be_told_apart_are_one_line() -> None:
    start = StartMeasures(
        total=30, seconds={Phase.QUEUED: 1}, merged=29, merged_phases=(Phase.VOLUMES, Phase.PULLING, Phase.STARTING)
    )
    assert [bar.word for bar in waterfall_of(start).bars] == [
        "Waiting for a slot",
        "Volumes and network, image pull and starting the program",
    ]


def test_phases_without_time_share_one_line() -> None:
    start = replace(COLD, seconds={**COLD.seconds, Phase.SCHEDULING: 0.01, Phase.PULLING: 0}, image_cached=True)
    shown = waterfall_of(start)
    assert [bar.word for bar in shown.bars] == ["Waiting for a slot", "Volumes and network", "First answer"]
    assert shown.instant == "No time: waiting for a node, scheduling and image pull. The image was on the node."
    page = page_of(replace(start, total=0, seconds={Phase.QUEUED: 0}))
    assert "<table" not in page
    assert "No time: waiting for a slot." in page


def test_a_new_node_is_told_in_its_parts() -> None:
    start = replace(COLD, seconds={Phase.NODE_WAIT: 78}, node_started=True, node_decision=10, node_joining=19)
    (bar,) = waterfall_of(start).bars
    assert bar.note == "A new node was started: until it was requested 10 s, until it was ready 19 s."


def test_a_start_is_one_line_of_a_download() -> None:
    assert start_text(COLD) == (
        "Start-up: 1 min: waiting for a slot 2.0 s, volumes and network 2.0 s, "
        "image pull 48 s (1.8 GB, the image was not on the node), first answer 8.0 s."
    )
    cut_off = StartMeasures(total=80, seconds={Phase.NODE_WAIT: 80}, ran=False, node_started=True)
    assert start_text(cut_off) == (
        "Start-up: 1 min 20 s: waiting for a node 1 min 20 s (a new node was started), then it ended before it ran."
    )


def test_slow_start_cause_is_the_phase_above_its_usual() -> None:
    start = StartMeasures(
        total=130, seconds={Phase.PULLING: 90, Phase.NODE_WAIT: 40}, node_started=True, image_cached=False
    )
    usual = UsualStart(count=12, seconds={Phase.PULLING: 88, Phase.NODE_WAIT: 0})
    assert main_cause(start, usual) == "Waiting for a node 40 s (a new node was started)"
    assert main_cause(start, replace(usual, count=4)) == "Image pull 1 min 30 s (an image was not on the node)"
    assert main_cause(StartMeasures(total=0, seconds={}), usual) == ""


def page_of(start: StartMeasures, *, is_final: bool = False) -> str:
    return render_fragment(waterfall(start, USUAL, is_final=is_final), now=datetime(2026, 3, 4, tzinfo=UTC))


def test_a_start_looks_as_stored() -> None:
    assert_golden("startup-started", page_of(COLD))


@pytest.mark.parametrize(
    ("phase", "is_final", "caption", "took"),
    [
        (Phase.PULLING, False, "Starting for 1 min. Usually 14 s.", '48 s so far<span class="visually-hidden">, slower than usual</span>'),
        (Phase.ANSWERING, True, "Ended after 1 min, before it ran.", "8.0 s so far"),
    ],
)  # fmt: skip
def test_incomplete_start_differs_in_caption_and_open_phase(
    phase: Phase, is_final: bool, caption: str, took: str
) -> None:
    page = page_of(replace(COLD, ran=False, open_phase=phase), is_final=is_final)
    lines = zip(page.splitlines(), page_of(COLD).splitlines(), strict=True)
    different = [line.strip() for line, started in lines if line != started]
    assert different == [f"<caption>{caption}</caption>", 'class="startup-open" />', took]


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
        assert usual_node_start(recent_starts(node_pool="default")) is None
        start(shop, f"e{number}", number, node_wait=200.0 + 10 * number, node_started=True)
    start(shop, "found-room", 0, node_wait=1.0, node_started=False)
    start(shop, "not-told-apart", 0, node_started=True)
    start(shop, "stopped", 0, node_wait=1.0, node_started=True, ran=False)
    assert usual_node_start(recent_starts(node_pool="default")) == 220
    assert usual_node_start(recent_starts(node_pool="batch")) is None


def test_usual_launch_excludes_queue_and_node_waits(shop: Shop) -> None:
    tier, environment = shop.tier.pk, shop.workspace.pk
    for number in range(FEWEST_NODE_STARTS):
        assert usual_start(recent_starts(tier=tier, environment=environment)) is None
        start(shop, f"e{number}", number, total=100.0 + 10 * number, queued=80.0)
    start(shop, "new-node", 0, total=900.0, node_started=True)
    start(shop, "stopped", 0, total=900.0, ran=False)
    assert usual_start(recent_starts(tier=tier, environment=environment)) == 40
    assert usual_start(recent_starts(tier=tier, environment="another")) is None


def test_usual_start_uses_the_current_pull(shop: Shop) -> None:
    for number in range(FEWEST_NODE_STARTS):
        start(shop, f"e{number}", number, total=50.0, queued=0.0, pulling=30.0)
    start(shop, "not-told-apart", 0, total=900.0)
    assert usual_start(recent_starts(tier=shop.tier.pk, environment=shop.workspace.pk), pull=5.0) == 25


def test_pool_pull_speed_ignores_small_pulls(shop: Shop) -> None:
    for number in range(FEWEST_NODE_STARTS):
        assert usual_pace(recent_starts(node_pool="default")) is None
        start(shop, f"e{number}", number, pulling=20.0 + number, image_bytes=1_000_000_000, image="lab:2")
    start(shop, "small", 0, pulling=5.0, image_bytes=1_000)
    start(shop, "cached", 0, pulling=0.0, image_bytes=0)
    assert usual_pace(recent_starts(node_pool="default")) == 22 / 1_000_000_000
    assert usual_pace(recent_starts(node_pool="batch")) is None
    of_choice = recent_starts(tier=shop.tier.pk, environment=shop.workspace.pk)
    assert image_size(of_choice, "lab:2") == 1_000_000_000
    assert image_size(of_choice, "another") is None


def test_pulls_that_waited_for_others_teach_nothing(shop: Shop) -> None:
    """Their bytes are not recorded; what is known of the pool and of the image is as without them."""
    for number in range(FEWEST_NODE_STARTS):
        start(shop, f"e{number}", number + 10, pulling=20.0, image_bytes=1_000_000_000, image="a", image_cached=False)
        start(shop, f"w{number}", number, pulling=300.0, image="a", image_cached=False)
    pace = usual_pace(recent_starts(node_pool="default"))
    assert pace == 20 / 1_000_000_000
    assert slow_pull(recent_starts(node_pool="default"), "a", None).seconds == 20
    assert image_size(recent_starts(tier=shop.tier.pk, environment=shop.workspace.pk), "a") == 1_000_000_000


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
