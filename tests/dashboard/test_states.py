"""The words for states cover exactly the states that there are."""

from dashboard.viewmodels.states import ACTIVE_STATES as ACTIVE_WORDS
from dashboard.viewmodels.states import ENDED_STATES as ENDED_WORDS
from grid.models import State
from grid.models.execution import ACTIVE_STATES, FINAL_STATES


def test_each_state_has_the_word_of_the_model() -> None:
    assert {state: word for state, word in State.choices if state in ACTIVE_STATES} == ACTIVE_WORDS
    assert {state: word for state, word in State.choices if state in FINAL_STATES} == ENDED_WORDS
