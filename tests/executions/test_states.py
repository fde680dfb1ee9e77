"""The words for states cover exactly the states that there are."""

import pytest

from dashboard.shell.viewmodels.states import (
    ACTIVE_STATES as ACTIVE_WORDS,
    ENDED_STATES as ENDED_WORDS,
    STARTED,
    state_status,
)
from grid.diagnosis.diagnosis import Diagnosis
from grid.models import State
from grid.models.execution import ACTIVE_STATES, FINAL_STATES

RUNS = Diagnosis("running", "Running.", "ok", "")


def test_each_state_has_the_word_of_the_model() -> None:
    assert {state: word for state, word in State.choices if state in ACTIVE_STATES} == ACTIVE_WORDS
    assert {state: word for state, word in State.choices if state in FINAL_STATES} == ENDED_WORDS


@pytest.mark.parametrize("state", ["deploying", "preparing"])
def test_started_pod_is_not_called_running_before_its_state(state: str) -> None:
    status, advice = state_status(state, diagnosis=RUNS)
    assert (status.severity, status.note, advice) == ("wait", STARTED, "")


@pytest.mark.parametrize("state", ["stopping", "finishing"])
def test_ending_pod_is_not_called_running(state: str) -> None:
    assert state_status(state, diagnosis=RUNS) == state_status(state)
