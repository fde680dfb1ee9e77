"""How a start is told: what took how long, what is usual, and why it was slow."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from dashboard.shell.fragments import render_fragment
from dashboard.starts.viewmodels.startup import StartMeasures, UsualStart, Waterfall, main_cause, start_text, waterfall
from grid.diagnosis.startup import Phase
from tests.support.golden import assert_golden

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
