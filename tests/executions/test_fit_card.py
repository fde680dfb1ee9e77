"""The fit card beside the launch form, in words: each verdict, and the tier that is advised."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from django.template.loader import render_to_string

from dashboard.executions.viewmodels.launch import ClusterKnown, FitQuestion, TierChoice, fit_card, slots
from dashboard.starts.viewmodels.expected_wait import launch_wait
from grid.diagnosis.launchfit import AlikeNodes, LaunchPool, PodPlan, QueuePlace
from grid.diagnosis.nodeimages import ImagePull
from grid.diagnosis.shortages import NamespaceLimits, PodNeeds
from grid.kube.limits import ResourceQuota
from grid.queue.wait_estimate.inputs import WaitEstimate
from tests.support.builders import decode
from tests.support.golden import assert_golden

GIB = 2**30


def plan(cores: int, tier: str = "Large", pool: str = "default") -> PodPlan:
    return PodPlan(tier, pool, {"cpu": cores * 1000, "memory": 4 * GIB, "pods": 1})


def room(free: int, empty: int = 8, count: int = 1) -> AlikeNodes:
    rest = {"memory": 32 * GIB, "pods": 110}
    return AlikeNodes({"cpu": free * 1000, **rest}, {"cpu": empty * 1000, **rest}, count)


def quota(pods: str, used: str) -> NamespaceLimits:
    status = {"hard": {"pods": pods}, "used": {"pods": used}}
    return NamespaceLimits((decode({"metadata": {"name": "team"}, "status": status}, ResourceQuota),))


FULL = LaunchPool("default", (room(1),), 1)
AT_ZERO = LaunchPool("default", (), 3, start_seconds=220, remembered=room(8), seen="24 November 2026")
QUEUE = QueuePlace(
    4, "You use 25 of 25 slots; this starts by itself when one is free. It is number 4 of yours.", "Stop something."
)
EXPECTED = WaitEstimate(1500.0, 1200.0, 2400.0, "Your executions usually end after another 24 minutes.", 4)
HOW_RIGHT = "9 of the last 10 expected waits were within 30 % or 10 seconds of what happened."
NOT_EXPECTED = WaitEstimate(None, why="Not known yet: too few launches like this one have started.", position=4)
ROOM = WaitEstimate(1250.0, 600.0, 2400.0, "Room for it is usually free after another 20 minutes.")
PULL = ImagePull(2_254_857_830, 40.0, is_missing=True)
SMALL = TierChoice("tier", "small", "Small", (plan(1, "Small"),), 0)
SITUATIONS: dict[str, tuple[dict[str, Any], ClusterKnown]] = {
    "starts-now": ({"usual_start": 43.0}, ClusterKnown({"default": LaunchPool("default", (room(8, count=2),))})),
    "needs-node": ({}, ClusterKnown({"default": LaunchPool("default", (room(1),), 5, start_seconds=220)})),
    "queues": ({"queue": QUEUE, "expected": launch_wait(EXPECTED, HOW_RIGHT)}, ClusterKnown({"default": FULL})),
    "queues-unknown": ({"queue": QUEUE, "expected": launch_wait(NOT_EXPECTED)}, ClusterKnown({"default": FULL})),
    "starts-now-pulls": (
        {"usual_start": 53.0, "pull": PULL},
        ClusterKnown({"default": LaunchPool("default", (room(8, count=2),))}),
    ),
    "needs-node-pulls": (
        {"pull": replace(PULL, is_missing=False)},
        ClusterKnown({"default": LaunchPool("default", (room(1),), 5, start_seconds=220)}),
    ),
    "waits-for-room": ({"choices": (SMALL,)}, ClusterKnown({"default": FULL})),
    "waits-for-room-expected": (
        {"choices": (SMALL,), "expected": launch_wait(ROOM), "pull": PULL},
        ClusterKnown({"default": FULL}),
    ),
    "never-fits": (
        {"pods": (plan(64, "Huge"),), "choices": (SMALL,)},
        ClusterKnown({"default": LaunchPool("default", (room(4),))}),
    ),
    "first-node": ({"choices": (SMALL,)}, ClusterKnown({"default": AT_ZERO})),
    "unknown-node": ({"choices": (SMALL,)}, ClusterKnown({"default": LaunchPool("default", (), 3)})),
    "never-fits-as-seen": ({"pods": (plan(64, "Huge"),), "choices": (SMALL,)}, ClusterKnown({"default": AT_ZERO})),
    "no-nodes": ({}, ClusterKnown({})),
    "refused": (
        {"needs": (PodNeeds("Large", {}, {}),)},
        ClusterKnown({"default": LaunchPool("default", (room(8),))}, quota("10", "10")),
    ),
    "nearly-refused": (
        {"needs": (PodNeeds("Large", {}, {}),)},
        ClusterKnown({"default": LaunchPool("default", (room(8),))}, quota("10", "9")),
    ),
    "not-known": ({}, ClusterKnown()),
}


def rendered(situation: str) -> str:
    changes, known = SITUATIONS[situation]
    values: dict[str, Any] = {"pods": (plan(4),), "slots": 1, "price": Decimal("0.19"), **changes}
    card = fit_card(FitQuestion(**values), known, slots(used=3, queued=0, maximum=25))
    context = {"card": card, "link": "/launch/?kind=workspace"}
    summary = render_to_string("executions/fragments/fit_summary.html", context)
    return summary + render_to_string("executions/fragments/fit_card.html", context)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_each_verdict_looks_as_stored(situation: str) -> None:
    assert_golden(f"fit-{situation}", rendered(situation))


def test_other_tier_is_advised_only_where_it_starts_sooner() -> None:
    advised = {situation for situation in SITUATIONS if 'name="choose" value="tier:small"' in rendered(situation)}
    assert advised == {"waits-for-room", "waits-for-room-expected", "never-fits", "never-fits-as-seen"}


def test_a_tier_whose_places_are_taken_is_not_advised() -> None:
    full = TierChoice("tier", "small", "Small", (plan(1),), 0, is_full=True)
    question = FitQuestion((plan(4),), 1, Decimal(0), choices=(full,))
    assert fit_card(question, ClusterKnown({"default": FULL}), slots(used=0, queued=0, maximum=5)).suggestions == ()


@pytest.mark.parametrize(
    ("sooner", "used", "advised"),
    [
        pytest.param("Stop something that you no longer need.", 4, [], id="slots"),
        pytest.param("Choose another tier.", 4, ["Small"], id="full tier"),
        pytest.param("Choose another tier.", 5, [], id="both"),
    ],
)
def test_no_tier_starts_now_while_queue_gate_is_closed(sooner: str, used: int, advised: list[str]) -> None:
    """Another tier helps against a full tier, and frees no slot of the person."""
    known, held = ClusterKnown({"default": LaunchPool("default", (room(4),))}), slots(used=used, queued=0, maximum=5)
    queue = QueuePlace(1, "It waits.", sooner)
    question = FitQuestion((plan(64, "Huge"),), 1, Decimal(0), queue=queue, choices=(SMALL,))
    card = fit_card(question, known, held)
    assert card.fit.code == "never_fits"
    assert [tier.name for tier in card.suggestions] == advised


def test_gpu_tier_is_advised_only_without_an_alternative() -> None:
    card = TierChoice("tier", "gpu", "GPU", (plan(1),), 1)
    known, held = ClusterKnown({"default": FULL}), slots(used=0, queued=0, maximum=5)
    both = FitQuestion((plan(4),), 1, Decimal(0), choices=(card, SMALL))
    assert [tier.name for tier in fit_card(both, known, held).suggestions] == ["Small"]
    only = FitQuestion((plan(4),), 1, Decimal(0), choices=(card,))
    assert [tier.name for tier in fit_card(only, known, held).suggestions] == ["GPU"]


def test_an_unfinished_form_gets_no_verdict() -> None:
    assert "Fill in what is missing" in render_to_string("executions/fragments/fit_summary.html", {"card": None})


def test_needs_of_nginx_and_executor_are_said_with_price() -> None:
    sidecars = {"cpu": 10, "memory": 32 * 2**20}
    question = FitQuestion((plan(4),), 1, Decimal("0.1918"), sidecars=sidecars, price_of_sidecars=Decimal("0.0018"))
    card = fit_card(question, ClusterKnown(), slots(used=3, queued=0, maximum=25))
    shown = render_to_string("executions/fragments/fit_card.html", {"card": card, "link": "/launch/"})
    assert (
        "0.01 cores and 32 MiB of memory of its node, for the platform’s own containers; $0.0018 an hour of the price"
        in shown
    )
    assert "Beside it" not in rendered("starts-now")


def test_tier_is_advised_only_where_pool_surely_takes_it() -> None:
    elsewhere = TierChoice("tier", "gpu", "Elsewhere", (plan(1, "Elsewhere", "gpu"),), 0)
    question = FitQuestion((plan(4),), 1, Decimal(0), choices=(elsewhere,))
    for at_zero, advised in (
        (LaunchPool("gpu", (), 3), []),
        (replace(AT_ZERO, name="gpu"), ["Elsewhere"]),
        (replace(AT_ZERO, name="gpu", remembered=room(8, empty=0)), []),
    ):
        known = ClusterKnown({"default": FULL, "gpu": at_zero})
        card = fit_card(question, known, slots(used=0, queued=0, maximum=5))
        assert [tier.name for tier in card.suggestions] == advised
