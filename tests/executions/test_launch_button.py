"""The button that launches says what will happen, and is secondary where something has to change first."""

from decimal import Decimal

import pytest

from dashboard.executions.viewmodels.launch import ClusterKnown, FitQuestion, LaunchButton, fit_card, slots
from grid.diagnosis.launchfit import LaunchPool
from tests.executions.test_launch_fit import card_of, plan, room


@pytest.mark.parametrize(
    ("situation", "words", "is_secondary"),
    [
        ("starts-now", "Launch: starts now, $0.19 an hour", False),
        ("needs-node", "Launch: starts on a new node, $0.19 an hour", False),
        ("queues", "Launch: waits about 25 min, $0.19 an hour", False),
        ("queues-unknown", "Launch: waits in the queue, $0.19 an hour", False),
        ("waits-for-room", "Launch: waits for room, $0.19 an hour", False),
        ("waits-for-room-expected", "Launch: waits about 21 min, $0.19 an hour", False),
        ("never-fits", "Launch: can never fit", True),
        ("refused", "Launch: the namespace refuses it now", True),
        ("not-known", "Launch: $0.19 an hour", False),
    ],
)
def test_button_says_what_happens(situation: str, words: str, is_secondary: bool) -> None:
    card = card_of(situation)
    assert card.button == LaunchButton(words, is_secondary)


def test_button_of_what_grows_says_the_least_price() -> None:
    known, held = ClusterKnown({"default": LaunchPool("default", (room(8),))}), slots(used=0, queued=0, maximum=5)
    card = fit_card(FitQuestion((plan(4),), 1, Decimal("0.1"), grows=True), known, held)
    assert card.button.words == "Launch: starts now, from $0.10 an hour"
