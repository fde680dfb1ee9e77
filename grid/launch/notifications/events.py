"""Which changes of an execution its owner is told of, and by which channels unless the owner chose others; pure."""

from dataclasses import dataclass

from grid.models.execution import State
from grid.models.notification import NotificationEvent

_OF_STATE = {
    State.RUNNING: NotificationEvent.STARTED,
    State.SUCCEEDED: NotificationEvent.SUCCEEDED,
    State.FAILED: NotificationEvent.FAILED,
    State.ERROR: NotificationEvent.FAILED,
    State.STOPPED: NotificationEvent.STOPPED,
}
_STARTED_SENTENCE = "It is running."
_SUCCEEDED_SENTENCE = "It has succeeded."
_BY_DEFAULT = {
    NotificationEvent.FAILED: ("in_page", "email"),
    NotificationEvent.STOPPING_SOON: ("in_page", "email"),
    NotificationEvent.STOPPED: ("in_page",),
}


@dataclass(frozen=True, slots=True)
class ChosenChannels:
    """By which channels somebody is told of an event."""

    in_page: bool = False
    email: bool = False
    webhook: bool = False

    @property
    def any(self) -> bool:
        return self.in_page or self.email or self.webhook


def default_channels(event: NotificationEvent) -> ChosenChannels:
    return ChosenChannels(**dict.fromkeys(_BY_DEFAULT.get(event, ()), True))


def event_of(state: str, *, actor: str, owner: str, is_attached: bool) -> NotificationEvent | None:
    """Return what the owner may be told of when an execution enters `state`; None when it is nothing new to the owner.

    Who stopped something needs no notification of it, and a cluster's stop follows from that of its workspace or job.
    """
    event = _OF_STATE.get(State(state))
    if event is NotificationEvent.STOPPED and (is_attached or actor == owner):
        return None
    return event


def sentence_of(event: NotificationEvent, message: str) -> str:
    """Return what the execution's page says of the event: its message, with the next step."""
    if event is NotificationEvent.STARTED:
        return _STARTED_SENTENCE
    return message or (_SUCCEEDED_SENTENCE if event is NotificationEvent.SUCCEEDED else "")
