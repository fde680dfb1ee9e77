"""What an open run needs next, as a pure function."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings, strategies as st

from grid.jobs.runsteps import AttemptFacts, EndStep, LaunchStep, RunFacts, RunStep, WaitStep, back_off, next_step, wait
from grid.models import JobRun, State
from grid.models.execution import FINAL_STATES
from tests.support.golden import assert_golden
from tests.support.shop import NOW

FAILED = AttemptFacts(1, State.FAILED, True, "Exit code 1.", "", NOW)
LATER_RUN = {"number": 3, "due": NOW.isoformat(), "zone": "Asia/Kathmandu"}

RUNS = {
    "first": RunFacts(),
    "after another that succeeded": RunFacts(after=("run 1 of A", "succeeded")),
    "after another that goes on": RunFacts(after=("run 1 of A", "")),
    "after another that failed": RunFacts(after=("run 1 of A", "failed")),
    "two at once, one active": RunFacts(at_once=2, others_active=1),
    "two at once, two active": RunFacts(at_once=2, others_active=2),
    "behind another of its schedule": RunFacts(behind=3),
    "running": RunFacts(last=AttemptFacts(1, State.RUNNING, False)),
    "succeeded": RunFacts(last=AttemptFacts(1, State.SUCCEEDED, False)),
    "failed": RunFacts(last=FAILED),
    "failed, one retry": RunFacts(retries=1, last=FAILED),
    "failed, one retry, its pod stays": RunFacts(retries=1, last=replace(FAILED, is_settled=False)),
    "failed, one retry at once": RunFacts(retries=1, retry_seconds=0, last=FAILED),
    "failed twice, one retry": RunFacts(retries=1, last=replace(FAILED, number=2)),
    "no secret": RunFacts(retries=5, last=replace(FAILED, state=State.ERROR, reason="secret_missing")),
    "failed while alice stopped it": RunFacts(retries=5, last=replace(FAILED, stopped_by="alice")),
    "stopped": RunFacts(retries=5, last=replace(FAILED, state=State.STOPPED)),
    "replaced": RunFacts(last=replace(FAILED, state=State.STOPPED), replaced_by=LATER_RUN),
    "failed with values": RunFacts(last=replace(FAILED, message="", reason="ran", values={})),
}


LATER_ENDS = (
    "launch_refused",
    "not_tried_again",
    "schedule_deleted",
    "stopped_before_start",
    "stopped_between_attempts",
)


def step_words(step: RunStep) -> str:
    if isinstance(step, LaunchStep):
        return str(step)
    words = JobRun(reason=step.reason, reason_values=step.values).words
    kind = f"wait until {step.until}" if isinstance(step, WaitStep) else step.outcome
    return f"{kind}: {step.reason} {step.values}: {words}"


def test_next_steps_of_runs_are_as_stored() -> None:
    """And the words of the waits, also of those that only a launch gives."""
    steps = {name: next_step(facts, NOW) for name, facts in RUNS.items()}
    steps |= {"launched soon": wait("in_a_moment"), "refused": wait("refused_for_now", why="The queue is full.")}
    steps |= {
        code: EndStep("", code, {"by": "bob", "why": "No.", "number": 1, "cause": FAILED.cause}) for code in LATER_ENDS
    }
    assert_golden(
        "words-of-runs", "\n".join(f"> {name}\n{step_words(step)}" for name, step in steps.items()), ending="txt"
    )


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
        assert not under_way and (step.reason or step.outcome == "succeeded")


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
