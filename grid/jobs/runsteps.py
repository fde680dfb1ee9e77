"""What an open run of a job needs now: to be launched, to wait, or to end; pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from grid.core.reasons import Reader, Sentence, Values
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import exact_duration
from grid.jobs.jobsettings import LONGEST_WAIT
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
    """The latest attempt of a run; `stopped_by` is "" unless somebody asked to stop it."""

    number: int
    state: str
    is_settled: bool
    message: str = ""
    stopped_by: str = ""
    ended_at: datetime | None = None
    reason: str = ""


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
    replaced_by: str = ""


@dataclass(frozen=True, slots=True)
class LaunchStep:
    attempt: int


@dataclass(frozen=True, slots=True)
class WaitStep:
    """Look again at `until`, or when something has ended. `reason` is a code of `SENTENCES`, with the names and values that its sentence
    needs; "" while an attempt is under way."""

    reason: str = ""
    values: tuple[tuple[str, str | int], ...] = ()
    until: datetime | None = None

    @property
    def columns(self) -> dict[str, Any]:
        """What a run that waits has of it."""
        return {"reason": self.reason, "reason_values": dict(self.values), "next_attempt_at": self.until}


def wait(reason: str, until: datetime | None = None, **values: str | int) -> WaitStep:
    return WaitStep(reason, tuple(values.items()), until)


@dataclass(frozen=True, slots=True)
class EndStep:
    outcome: str
    why: str = ""


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
        return EndStep(Outcome.STOPPED, run.replaced_by or last.message)
    if last.number > run.retries or last.reason in HOPELESS:
        return EndStep(Outcome.FAILED, _failed_words(_failure(run, last)) if run.retries else last.message)
    if not last.is_settled:
        return wait("last_pod_stays")
    seconds = back_off(run.retry_seconds, last.number)
    due = (last.ended_at or now) + timedelta(seconds=seconds)
    if now < due:
        return wait("attempt_failed", due, **_failure(run, last), seconds=seconds)
    return _launch_if_room(run, last.number + 1)


def back_off(first_seconds: int, failed: int) -> int:
    """Return the seconds between the attempt with the number `failed` and the next; they double, up to an hour."""
    return min(LONGEST_WAIT, first_seconds << (failed - 1))


def _first_step(run: RunFacts) -> RunStep:
    name, outcome = run.after or ("", Outcome.SUCCEEDED)
    if not outcome:
        return wait("after_run", name=name)
    if outcome != Outcome.SUCCEEDED:
        return EndStep(Outcome.NOT_STARTED, _AFTER[Outcome(outcome)].format(name=name))
    if run.behind is not None:
        return wait("behind_run", number=run.behind)
    return _launch_if_room(run, 1)


def _launch_if_room(run: RunFacts, attempt: int) -> RunStep:
    if run.at_once is not None and run.others_active >= run.at_once:
        return wait("runs_at_once", count=run.others_active, most=run.at_once)
    return LaunchStep(attempt)


def _failure(run: RunFacts, last: AttemptFacts) -> dict[str, str | int]:
    return {"number": last.number, "most": run.retries + 1, "message": last.message}


def _failed_words(values: Values) -> str:
    return _("Attempt {number} of {most} failed: {message}", **values)


def _retry(values: Values, reader: Reader) -> str:
    failure, later = _failed_words(values), exact_duration(values["seconds"])
    return _("{failure} The next attempt follows {wait} later.", failure=failure, wait=later)


def _at_once(values: Values, reader: Reader) -> str:
    return ngettext(
        "{count:,} run of this job is active, and at most {most} may be at once. It starts when one has ended.",
        "{count:,} runs of this job are active, and at most {most} may be at once. It starts when one has ended.",
        values["count"],
        most=values["most"],
    )


SENTENCES: dict[str, Sentence] = {  # why a run waits
    "last_pod_stays": lambda *_of: _("Its last pod is not confirmed gone. The next attempt starts when it is."),
    "attempt_failed": _retry,
    "after_run": lambda values, reader: _("It starts when {name} has succeeded.", name=values["name"]),
    "behind_run": lambda values, reader: _("It starts when run {number} of its schedule has ended.", **values),
    "runs_at_once": _at_once,
    "in_a_moment": lambda *_of: _("It starts in a moment."),
    "refused_for_now": lambda values, reader: _("{why} It is tried again by itself.", why=values["why"]),
}
