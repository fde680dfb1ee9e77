"""What an open run of a job needs now: to be launched, to wait, or to end; pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from grid.core.reasons import Reader, Sentence, Values, cause_words, filled
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import exact_duration
from grid.jobs.jobsettings import LONGEST_WAIT
from grid.jobs.schedulehistory import time_words
from grid.models import JobRun, State
from grid.models.execution import FINAL_STATES

Outcome = JobRun.Outcome
# The reason of an error that another attempt would meet as well, or would only pass by running without what its owner meant it to have.
HOPELESS = frozenset({"secret_missing"})
_AFTER = {
    Outcome.FAILED: _("It was to start after {name}, which failed."),
    Outcome.STOPPED: _("It was to start after {name}, which was stopped."),
    Outcome.NOT_STARTED: _("It was to start after {name}, which was not started."),
}


@dataclass(frozen=True, slots=True)
class AttemptFacts:
    """The latest attempt of a run, with its stored cause; `stopped_by` is "" unless somebody asked to stop it."""

    number: int
    state: str
    is_settled: bool
    message: str = ""
    stopped_by: str = ""
    ended_at: datetime | None = None
    reason: str = ""
    values: Values | None = None

    @property
    def cause(self) -> list[Any]:
        """What `words_of` makes its sentence of, as JSON has it."""
        return [self.reason, self.values, self.message]


@dataclass(frozen=True, slots=True)
class RunFacts:
    """An open run, the name and outcome of the run that it comes `after`, and how many other runs of its job have an unsettled attempt."""

    retries: int = 0
    retry_seconds: int = 30
    last: AttemptFacts | None = None
    after: tuple[str, str] | None = None
    others_active: int = 0
    at_once: int | None = None
    behind: int | None = None  # the number of an earlier run of its schedule that has not ended
    replaced_by: Mapping[str, Any] | None = None  # the number of the later run, the time that it is for and its zone


@dataclass(frozen=True, slots=True)
class LaunchStep:
    attempt: int


@dataclass(frozen=True, slots=True)
class WaitStep:
    """Look again at `until`, or when something has ended. `reason` is a code of `SENTENCES`, with the values that its sentence needs; ""
    while an attempt is under way."""

    reason: str = ""
    values: Values = field(default_factory=dict)
    until: datetime | None = None

    @property
    def columns(self) -> dict[str, Any]:
        """What a run that waits has of it."""
        return {"reason": self.reason, "reason_values": self.values, "next_attempt_at": self.until}


def wait(reason: str, until: datetime | None = None, **values: Any) -> WaitStep:
    return WaitStep(reason, values, until)


@dataclass(frozen=True, slots=True)
class EndStep:
    """The run has ended, for the `reason` with its `values`, as of `WaitStep`; "" if it succeeded."""

    outcome: str
    reason: str = ""
    values: Values = field(default_factory=dict)

    @property
    def columns(self) -> dict[str, Any]:
        """What a run that has ended has of it."""
        return {"outcome": self.outcome, **WaitStep(self.reason, self.values).columns}


RunStep = LaunchStep | WaitStep | EndStep


def next_step(run: RunFacts, now: datetime) -> RunStep:
    last = run.last
    if last is None:
        return _first_step(run)
    if last.state not in FINAL_STATES:
        return WaitStep()
    if last.state == State.SUCCEEDED:
        return EndStep(Outcome.SUCCEEDED)
    if last.state == State.STOPPED or last.stopped_by:
        return _stopped(run, last)
    if last.number > run.retries or last.reason in HOPELESS:
        return EndStep(Outcome.FAILED, "attempts_failed" if run.retries else "attempt_ended", _failure(run, last))
    if not last.is_settled:
        return wait("last_pod_stays")
    seconds = back_off(run.retry_seconds, last.number)
    due = (last.ended_at or now) + timedelta(seconds=seconds)
    if now < due:
        return wait("attempt_failed", due, **_failure(run, last), seconds=seconds)
    return _launch_if_room(run, last.number + 1)


def _stopped(run: RunFacts, last: AttemptFacts) -> EndStep:
    if run.replaced_by is not None:
        return EndStep(Outcome.STOPPED, "replaced_by_run", run.replaced_by)
    return EndStep(Outcome.STOPPED, "attempt_ended", {"cause": last.cause})


def back_off(first_seconds: int, failed: int) -> int:
    """Return the seconds between the attempt with the number `failed` and the next; they double, up to an hour."""
    return min(LONGEST_WAIT, first_seconds << (failed - 1))


def _first_step(run: RunFacts) -> RunStep:
    name, outcome = run.after or ("", Outcome.SUCCEEDED)
    if not outcome:
        return wait("after_run", name=name)
    if outcome != Outcome.SUCCEEDED:
        return EndStep(Outcome.NOT_STARTED, "earlier_run_ended", {"name": name, "outcome": outcome})
    if run.behind is not None:
        return wait("behind_run", number=run.behind)
    return _launch_if_room(run, 1)


def _launch_if_room(run: RunFacts, attempt: int) -> RunStep:
    if run.at_once is not None and run.others_active >= run.at_once:
        return wait("runs_at_once", count=run.others_active, most=run.at_once)
    return LaunchStep(attempt)


def _failure(run: RunFacts, last: AttemptFacts) -> dict[str, Any]:
    return {"number": last.number, "most": run.retries + 1, "cause": last.cause}


def _at_once(values: Values, reader: Reader) -> str:
    return ngettext(
        "{count:,} run of this job is active, and at most {most} may be at once. It starts when one has ended.",
        "{count:,} runs of this job are active, and at most {most} may be at once. It starts when one has ended.",
        values["count"],
        most=values["most"],
    )


_FAILED = filled(_("Attempt {number} of {most} failed: {message}"), message=cause_words)
SENTENCES: dict[str, Sentence] = {
    # Why a run waits.
    "last_pod_stays": filled(_("Its last pod is not confirmed gone. The next attempt starts when it is.")),
    "attempt_failed": filled(
        _("{failure} The next attempt follows {wait} later."),
        failure=_FAILED,
        wait=lambda values, reader: exact_duration(values["seconds"]),
    ),
    "after_run": filled(_("It starts when {name} has succeeded.")),
    "behind_run": filled(_("It starts when run {number} of its schedule has ended.")),
    "runs_at_once": _at_once,
    "in_a_moment": filled(_("It starts in a moment.")),
    "refused_for_now": filled(_("{why} It is tried again by itself.")),
    # Why it has ended.
    "attempt_ended": cause_words,
    "attempts_failed": _FAILED,
    "not_tried_again": filled(
        _("Attempt {number} failed: {message} It was not tried again: {why}"), message=cause_words
    ),
    "launch_refused": filled("{why}"),
    "earlier_run_ended": lambda values, reader: _AFTER[Outcome(values["outcome"])].format(name=values["name"]),
    "replaced_by_run": filled(_("Replaced by run {number}, due {due}."), due=time_words()),
    "schedule_deleted": filled(_("{by} deleted its schedule before it started.")),
    "stopped_before_start": filled(_("Stopped by {by} before it started.")),
    "stopped_between_attempts": filled(_("Stopped by {by} before its next attempt.")),
}
