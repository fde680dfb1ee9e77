"""What an open run needs next, as a pure function."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings, strategies as st

from grid.jobs.runsteps import AttemptFacts, EndStep, LaunchStep, RunFacts, RunStep, WaitStep, back_off, next_step, wait
from grid.models import JobRun, State
from grid.models.execution import FINAL_STATES
from tests.support.shop import NOW

FAILED = AttemptFacts(1, State.FAILED, True, "Exit code 1.", "", NOW)


@pytest.mark.parametrize(
    ("facts", "step"),
    [
        (RunFacts(), LaunchStep(1)),
        (RunFacts(after=("run 1 of A", "succeeded")), LaunchStep(1)),
        (RunFacts(after=("run 1 of A", "")), wait("after_run", name="run 1 of A")),
        (
            RunFacts(after=("run 1 of A", "failed")),
            EndStep("not_started", "It was to start after run 1 of A, which failed."),
        ),
        (RunFacts(at_once=2, others_active=1), LaunchStep(1)),
        (RunFacts(at_once=2, others_active=2), wait("runs_at_once", count=2, most=2)),
        (RunFacts(behind=3), wait("behind_run", number=3)),
        (RunFacts(last=AttemptFacts(1, State.RUNNING, False)), WaitStep()),
        (RunFacts(last=AttemptFacts(1, State.SUCCEEDED, False)), EndStep("succeeded")),
        (RunFacts(last=FAILED), EndStep("failed", "Exit code 1.")),
        (
            RunFacts(retries=1, last=FAILED),
            wait("attempt_failed", NOW + timedelta(seconds=30), number=1, most=2, message="Exit code 1.", seconds=30),
        ),
        (RunFacts(retries=1, last=replace(FAILED, is_settled=False)), wait("last_pod_stays")),
        (RunFacts(retries=1, retry_seconds=0, last=FAILED), LaunchStep(2)),
        (RunFacts(retries=1, last=replace(FAILED, number=2)), EndStep("failed", "Attempt 2 of 2 failed: Exit code 1.")),
        (
            RunFacts(retries=5, last=replace(FAILED, state=State.ERROR, reason="secret_missing")),
            EndStep("failed", "Attempt 1 of 6 failed: Exit code 1."),
        ),
        (RunFacts(retries=5, last=replace(FAILED, stopped_by="alice")), EndStep("stopped", "Exit code 1.")),
        (RunFacts(retries=5, last=replace(FAILED, state=State.STOPPED)), EndStep("stopped", "Exit code 1.")),
    ],
)
def test_the_next_step_of_a_run(facts: RunFacts, step: RunStep) -> None:
    assert next_step(facts, NOW) == step


@pytest.mark.parametrize(
    ("step", "sentence"),
    [
        (wait("after_run", name="run 1 of A"), "It starts when run 1 of A has succeeded."),
        (wait("behind_run", number=3), "It starts when run 3 of its schedule has ended."),
        (
            wait("runs_at_once", count=2, most=2),
            "2 runs of this job are active, and at most 2 may be at once. It starts when one has ended.",
        ),
        (
            wait("attempt_failed", NOW, number=1, most=2, message="Exit code 1.", seconds=30),
            "Attempt 1 of 2 failed: Exit code 1. The next attempt follows 30 s later.",
        ),
        (wait("last_pod_stays"), "Its last pod is not confirmed gone. The next attempt starts when it is."),
        (wait("in_a_moment"), "It starts in a moment."),
        (wait("refused_for_now", why="The queue is full."), "The queue is full. It is tried again by itself."),
    ],
)
def test_wait_is_worded_from_code_and_values(step: WaitStep, sentence: str) -> None:
    columns = step.columns
    assert JobRun(reason=columns["reason"], reason_values=columns["reason_values"]).words == sentence


def test_text_of_before_codes_is_shown_as_it_is() -> None:
    assert JobRun(reason="text", message="It waits.").words == "It waits."


def test_waits_between_attempts_double_up_to_an_hour() -> None:
    assert [back_off(30, failed) for failed in range(1, 10)] == [30, 60, 120, 240, 480, 960, 1920, 3600, 3600]


FACTS = st.builds(
    RunFacts,
    retries=st.integers(0, 3),
    retry_seconds=st.integers(1, 3600),
    others_active=st.integers(0, 4),
    at_once=st.none() | st.integers(1, 4),
    after=st.none() | st.tuples(st.just("run 1 of A"), st.sampled_from(["", "succeeded", "failed"])),
    last=st.none()
    | st.builds(
        AttemptFacts,
        st.integers(1, 4),
        st.sampled_from(list(State)),
        st.booleans(),
        st.just("Why."),
        st.sampled_from(["", "alice"]),
        st.just(NOW),
    ),
)


@given(FACTS, st.integers(0, 8000))
def test_step_keeps_invariants_and_wait_always_has_reason(facts: RunFacts, seconds: int) -> None:
    now, last = NOW + timedelta(seconds=seconds), facts.last
    step = next_step(facts, now)
    under_way = last is not None and last.state not in FINAL_STATES
    if isinstance(step, LaunchStep):
        assert last is None or (last.is_settled and last.state in (State.FAILED, State.ERROR) and not last.stopped_by)
        assert step.attempt <= facts.retries + 1
        assert facts.at_once is None or facts.others_active < facts.at_once
    elif isinstance(step, WaitStep):
        assert bool(step.reason) != under_way
        assert step.until is None or step.until > now
    else:
        assert not under_way and (step.why or step.outcome == "succeeded")


@settings(max_examples=50)
@given(st.lists(st.sampled_from([State.FAILED, State.ERROR, State.SUCCEEDED, State.STOPPED])), st.integers(0, 4))
def test_run_ends_within_its_retries(endings: list[State], retries: int) -> None:
    facts, now, attempts = RunFacts(retries=retries), NOW, 0
    for ending in [*endings, *[State.FAILED] * 6]:
        while isinstance(step := next_step(facts, now), WaitStep):
            assert step.until is not None
            now = step.until
        if isinstance(step, EndStep):
            break
        attempts += 1
        assert step.attempt == attempts
        facts = replace(facts, last=AttemptFacts(attempts, ending, True, "Why.", "", now))
    assert isinstance(step, EndStep)
    assert attempts <= retries + 1
