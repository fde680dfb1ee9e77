"""Whether periodic tasks work: one state for each, and one light for all of a process; pure."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from grid.core.translation import gettext as _, ngettext
from grid.core.wording import about, as_sentence, listed_up_to
from grid.database.periodic import TaskRecord
from grid.platformhealth.facts import Light, Severity

FAILING_SECONDS = 300.0  # a shorter outage is one of the database or the cluster, which have lights of their own
SLOW_SECONDS = 60.0  # beyond the interval, until a run that goes on is told
LATE_SECONDS = 900.0  # more than the longest run takes, which is one of the checks of the API
_SHOWN = 3


class TaskState(NamedTuple):
    """How a task stands: "wait" is one that fails or is slow and may recover, "problem" one that has for long."""

    severity: Severity
    word: str
    sentence: str = ""


def task_state(task: TaskRecord, now: datetime) -> TaskState:
    """Judge a task at the time at which its record was read."""
    if task.failing_since is not None:
        is_long = task.failures_in_a_row > 1 and (now - task.failing_since).total_seconds() >= FAILING_SECONDS
        times = ngettext(
            "Failed {count:,} time since {since:%H:%M} UTC.",
            "Failed {count:,} times in a row since {since:%H:%M} UTC.",
            task.failures_in_a_row,
            since=task.failing_since,
        )
        error = as_sentence(task.error)
        sentence = _("{times} {error} It is tried again; the log of its process says more.", times=times, error=error)
        return TaskState("problem" if is_long else "wait", _("Fails"), sentence)
    begun_or_due = task.started_at if task.is_running else task.due_at
    if begun_or_due is None:
        return TaskState("neutral", _("Not begun"))
    late = (now - begun_or_due).total_seconds() - (task.interval if task.is_running else 0.0)
    if late < SLOW_SECONDS:
        return TaskState("ok", _("Works") if task.succeeded_at else _("Not begun"))
    silent = about((now - begun_or_due).total_seconds())
    sentence = _("It was due {silent} ago and has not begun.", silent=silent)
    if task.is_running:
        sentence = _("Its run began {silent} ago and has not ended.", silent=silent)
    if late < LATE_SECONDS:
        return TaskState("wait", _("Slow"), sentence)
    return TaskState("problem", _("Late"), _("{sentence} If that stays, restart its process.", sentence=sentence))


def light(tasks: Sequence[TaskRecord], now: datetime) -> Light:
    """Return the light of all tasks: bad when one is bad. One that may recover is only named."""
    states = [(task.name, task_state(task, now)) for task in tasks]
    bad = [(name, state) for name, state in states if state.severity == "problem"]
    if bad:
        names = listed_up_to(_SHOWN, [name for name, _state in bad])
        sentence = _("{names}: {sentence}", names=names, sentence=bad[0][1].sentence)
    elif tried := [name for name, state in states if state.severity == "wait"]:
        sentence = _("Fails or is slow now, and is tried again: {names}.", names=listed_up_to(_SHOWN, tried))
    else:
        sentence = ngettext("{count:,} task runs on time.", "{count:,} tasks run on time.", len(tasks))
    return Light("periodic-tasks", _("Periodic tasks"), "problem" if bad else "ok", sentence)
