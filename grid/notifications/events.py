"""Which changes of an execution, and which ends of runs, their owner is told of, and by which channels unless chosen otherwise; pure."""

from dataclasses import dataclass

from grid.core.translation import gettext as _
from grid.core.wording import listed, plural
from grid.models.execution import State
from grid.models.notification import NotificationEvent

_OF_STATE = {
    State.RUNNING: NotificationEvent.STARTED,
    State.SUCCEEDED: NotificationEvent.SUCCEEDED,
    State.FAILED: NotificationEvent.FAILED,
    State.ERROR: NotificationEvent.FAILED,
    State.STOPPED: NotificationEvent.STOPPED,
}
_OF_OUTCOME = {
    "succeeded": NotificationEvent.SUCCEEDED,
    "failed": NotificationEvent.FAILED,
    "not_started": NotificationEvent.FAILED,
    "stopped": NotificationEvent.STOPPED,
}
_BY_DEFAULT = {
    NotificationEvent.FAILED: ("in_page", "email"),
    NotificationEvent.STOPPING_SOON: ("in_page", "email"),
    NotificationEvent.STOPPED: ("in_page",),
    NotificationEvent.SCHEDULE_PAUSED: ("in_page", "email"),
    NotificationEvent.FILES_NOT_SAVED: ("in_page", "email"),
    NotificationEvent.BUDGET: ("in_page", "email"),
    NotificationEvent.MAINTENANCE: ("in_page", "email"),
    NotificationEvent.CPU_CONTENTION: ("in_page",),
    NotificationEvent.MESSAGE: ("in_page", "email"),
    NotificationEvent.ALERT: ("in_page", "email"),
}


@dataclass(frozen=True, slots=True)
class ChosenChannels:
    """By which channels somebody is told of an event."""

    in_page: bool = False
    email: bool = False
    webhook: bool = False


def default_channels(event: NotificationEvent) -> ChosenChannels:
    return ChosenChannels(**dict.fromkeys(_BY_DEFAULT.get(event, ()), True))


def event_of(state: str, *, actor: str, owner: str, is_attached: bool) -> NotificationEvent | None:
    """Return what the owner is told when an execution enters `state`; None for the owner's own stop, and that of an attached cluster."""
    event = _OF_STATE.get(State(state))
    if event is NotificationEvent.STOPPED and (is_attached or actor == owner):
        return None
    return event


def event_of_outcome(outcome: str, *, actor: str, owner: str) -> NotificationEvent | None:
    """Return what the owner may be told of when a run has ended; None when the owner has stopped it."""
    event = _OF_OUTCOME[outcome]
    return None if event is NotificationEvent.STOPPED and actor == owner else event


@dataclass(frozen=True, slots=True)
class SweepCounts:
    """How many runs of a sweep, of which all have ended, ended in which way."""

    succeeded: int = 0
    failed: int = 0
    stopped: int = 0
    not_started: int = 0

    @property
    def outcome(self) -> str:
        """The outcome that its owner has to know of first."""
        return next((name for name in ("failed", "not_started", "stopped") if getattr(self, name)), "succeeded")

    @property
    def sentence(self) -> str:
        counts = (
            (self.succeeded, _("{count:,} succeeded", count=self.succeeded)),
            (self.failed, _("{count:,} failed", count=self.failed)),
            (self.stopped, _("{count:,} stopped", count=self.stopped)),
            (self.not_started, _("{count:,} did not start", count=self.not_started)),
        )
        return _(
            "The sweep has ended: of {runs}, {counts}.",
            runs=plural(sum(count for count, _words in counts), "run", "runs"),
            counts=listed(words for count, words in counts if count),
        )


def sentence_of(event: NotificationEvent, message: str) -> str:
    """Return what the execution's page says of the event: its message, with the next step."""
    if event is NotificationEvent.STARTED:
        return _("It is running.")
    return message or (_("It has succeeded.") if event is NotificationEvent.SUCCEEDED else "")
