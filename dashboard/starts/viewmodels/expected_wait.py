"""Expected waits in words; pure."""

from dataclasses import replace

from dashboard.shell.viewmodels.format import brief_duration, span
from dashboard.shell.viewmodels.live import ViewModel
from dashboard.shell.viewmodels.states import StatusLine
from grid.core.reasons import ANYBODY, Reader, sentence_of
from grid.core.translation import gettext as _
from grid.queue.wait_estimate.inputs import WaitEstimate

# The least seconds and the step in which a row says them.
_STEPS = ((10 * 3600, 3600), (3600, 600), (600, 300), (60, 60), (0, 15))


class WaitLine(ViewModel, frozen=True, gc=False):
    """What is expected of one execution: the sentence, and what it is based on and how right that was, or why it is not known."""

    sentence: str
    why: str


STANDS_STILL = WaitLine(_("Not known: no controller is running, and nothing starts before one does."), "")


def left(estimate: WaitEstimate, passed: float) -> WaitEstimate:
    """Return the estimate as it is `passed` seconds after it was made, in steps in which people read it."""
    if estimate.expected is None:
        return estimate

    def rest(seconds: float) -> float:
        remaining = max(0.0, seconds - passed)
        step = 5 if remaining < 60 else 60
        return step * round(remaining / step)

    high = None if estimate.high is None else rest(estimate.high)
    return replace(estimate, expected=rest(estimate.expected), low=rest(estimate.low), high=high)


def wait_line(
    estimate: WaitEstimate | None,
    passed: float,
    how_right: str = "",
    *,
    reader: Reader = ANYBODY,
    in_column: bool = False,
) -> WaitLine | None:
    """Return what is expected, such as "Expected to start in about 4 min (2 min to 9 min)"; shorter `in_column`; None if not computed."""
    if estimate is None:
        return None
    if estimate.refusal is not None:
        return WaitLine(_("It cannot start as it is: {why}", why=sentence_of(estimate.refusal, reader)), "")
    if estimate.expected is None:
        return WaitLine(estimate.why.replace(_("Not known"), _("When it starts is not known"), 1), "")
    now = left(estimate, passed)
    assert now.expected is not None
    if now.high is None:
        bounds = _("at least {duration}", duration=brief_duration(now.low))
    elif brief_duration(now.low) == brief_duration(now.high):
        bounds = ""
    else:
        bounds = _("{low} to {high}", low=brief_duration(now.low), high=brief_duration(now.high))
    about = _("Expected any moment")
    if now.expected > 0:
        about = _("About {duration}") if in_column else _("Expected to start in about {duration}")
        about = about.format(duration=brief_duration(now.expected))
    return WaitLine(f"{about}{f' ({bounds})' if bounds else ''}.", f"{estimate.why} {how_right}".strip())


def launch_wait(estimate: WaitEstimate | None, how_right: str = "") -> tuple[str, ...]:
    """Return sentences about how long a launch would wait in the queue; () when nothing was computed."""
    line = wait_line(estimate, 0.0, reader=Reader("", is_owner=True))
    if line is None or estimate is None:
        return ()
    if estimate.expected is None:
        return (line.sentence,)
    return tuple(sentence for sentence in (line.sentence, line.why, how_right) if sentence)


def brief_wait(estimate: WaitEstimate | None) -> str:
    """Return how long a launch would wait, such as "7 min", for a few words; "" when that is not known or is no time."""
    expected = left(estimate, 0.0).expected if estimate is not None else None
    return brief_duration(expected) if expected else ""


def wait_note(estimate: WaitEstimate) -> str:
    """Return what is expected in a few words for a row, in coarse steps; "" when it is not known."""
    if estimate.expected is None:
        return ""
    step = next(size for least, size in _STEPS if estimate.expected >= least)
    seconds = step * round(estimate.expected / step)
    words = _("Expected to start in about {duration}.") if seconds > 0 else _("Expected to start any moment.")
    return words.format(duration=span(seconds))


def with_note(status: StatusLine, note: str) -> StatusLine:
    """Put what is expected before the cause of a wait; what has a problem is not expected to go on."""
    if not note or status.severity != "wait":
        return status
    return StatusLine(status.severity, status.word, f"{note} {status.note}".strip())
