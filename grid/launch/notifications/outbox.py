"""Writes notifications, and what waits to be sent, in the transaction of what they tell: both happen, or neither."""

from collections.abc import Collection
from datetime import datetime

from grid.launch.notifications.events import ChosenChannels, default_channels, event_of, sentence_of
from grid.models import Delivery, Execution, Notification, NotificationChoice, NotificationEvent, State
from grid.models.execution import object_name_of

_SENTENCE_LENGTH = 4000
_TELLING = frozenset({State.RUNNING, State.SUCCEEDED, State.FAILED, State.ERROR, State.STOPPED})


def record_state(execution_id: str, state: str, message: str, *, actor: str, now: datetime) -> None:
    """Tell the owner that an execution has entered a state, if the owner wants to know; the caller holds the transaction."""
    if state not in _TELLING:
        return
    columns = ("owner__username", "attached_to_id")
    found = Execution.objects.filter(pk=execution_id).values_list(*columns).first()
    if found is None:
        return
    owner, attached_to = found
    event = event_of(state, actor=actor, owner=owner, is_attached=attached_to is not None)
    if event is not None:
        record(execution_id, event, sentence_of(event, message), now=now)


def tell_of_coming_stop(execution_id: str, why: str, *, now: datetime) -> None:
    """Tell the owner that an execution is about to be stopped; `why` says by what, when, and how to prevent it.

    The caller holds the transaction, and calls this once for each cause: nothing here remembers an earlier call.
    """
    record(execution_id, NotificationEvent.STOPPING_SOON, why, now=now)


def record(execution_id: str, event: NotificationEvent, sentence: str, *, now: datetime) -> None:
    """Write what the owner has chosen to be told of an event of an execution."""
    columns = ("owner_id", "owner__is_active", "kind", "title")
    owner_id, is_active, kind, title = Execution.objects.values_list(*columns).get(pk=execution_id)
    channels = channels_of(owner_id, event)
    if not is_active or not channels.any:
        return
    title = title or object_name_of(kind, execution_id)
    sentence, path = _clean(sentence)[:_SENTENCE_LENGTH], f"/executions/{execution_id}/"
    if channels.in_page:
        Notification.objects.create(
            user_id=owner_id, execution_id=execution_id, event=event, title=title, sentence=sentence, path=path, at=now
        )
    payload = {
        "event": str(event),
        "execution": execution_id,
        "kind": kind,
        "title": title,
        "sentence": sentence,
        "path": path,
        "at": now.isoformat(),
    }
    Delivery.objects.bulk_create(
        Delivery(user_id=owner_id, channel=channel, payload=payload, at=now, next_try_at=now)
        for channel in _outward(channels)
    )


def channels_of(user_id: int, event: NotificationEvent) -> ChosenChannels:
    """Return the channels that a person has chosen for an event, or the event's defaults."""
    columns = ("in_page", "email", "webhook")
    chosen = NotificationChoice.objects.filter(user=user_id, event=event).values_list(*columns).first()
    return default_channels(event) if chosen is None else ChosenChannels(*chosen)


def _outward(channels: ChosenChannels) -> Collection[Delivery.Channel]:
    """Return the channels that lead out of the page and that this installation offers."""
    return ()


def _clean(text: str) -> str:
    """Return the text without NUL, which PostgreSQL does not store."""
    return text.replace("\x00", "")
