"""What an open run of a job needs now: to be launched, to wait, or to end; pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from grid.core.translation import gettext as _, ngettext
from grid.core.wording import exact_duration
from grid.jobs.jobsettings import LONGEST_WAIT
from grid.models import JobRun, State
from grid.models.execution import FINAL_STATES

Outcome = JobRun.Outcome
# The reason of an error that another attempt would meet as well, or would only pass by running without what its owner meant it to have.
HOPELESS = frozenset({"secret_missing"})
POD_STAYS = _("Its last pod is not confirmed gone. The next attempt starts when it is.")
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
    """Look again at `until`, or when something has ended; `why` is "" while an attempt is under way."""

    why: str = ""
    until: datetime | None = None


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
        return EndStep(Outcome.FAILED, _attempt_failed(run, last) if run.retries else last.message)
    if not last.is_settled:
        return WaitStep(POD_STAYS)
    wait = back_off(run.retry_seconds, last.number)
    due = (last.ended_at or now) + timedelta(seconds=wait)
    if now < due:
        failure, later = _attempt_failed(run, last), exact_duration(wait)
        return WaitStep(_("{failure} The next attempt follows {wait} later.", failure=failure, wait=later), due)
    return _launch_if_room(run, last.number + 1)


def back_off(first_seconds: int, failed: int) -> int:
    """Return the seconds between the attempt with the number `failed` and the next; they double, up to an hour."""
    return min(LONGEST_WAIT, first_seconds << (failed - 1))


def _first_step(run: RunFacts) -> RunStep:
    name, outcome = run.after or ("", Outcome.SUCCEEDED)
    if not outcome:
        return WaitStep(_("It starts when {name} has succeeded.", name=name))
    if outcome != Outcome.SUCCEEDED:
        return EndStep(Outcome.NOT_STARTED, _AFTER[Outcome(outcome)].format(name=name))
    if run.behind is not None:
        return WaitStep(_("It starts when run {number} of its schedule has ended.", number=run.behind))
    return _launch_if_room(run, 1)


def _launch_if_room(run: RunFacts, attempt: int) -> RunStep:
    if run.at_once is not None and run.others_active >= run.at_once:
        return WaitStep(
            ngettext(
                "{count:,} run of this job is active, and at most {most} may be at once. It starts when one has ended.",
                "{count:,} runs of this job are active, and at most {most} may be at once. It starts when one has ended.",
                run.others_active,
                most=run.at_once,
            )
        )
    return LaunchStep(attempt)


def _attempt_failed(run: RunFacts, last: AttemptFacts) -> str:
    most = run.retries + 1
    return _("Attempt {number} of {most} failed: {message}", number=last.number, most=most, message=last.message)
