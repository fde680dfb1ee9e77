"""Reads and writes people's notifications and what they chose. Each function is about one person's own; nobody gets somebody else's."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.text import capfirst

from dashboard.notifications.viewmodels.notifications import ChannelBox, ChoiceRow, NotificationRecord
from dashboard.shell.access import may_operate
from grid.audit.entries import write_entry
from grid.core.translation import gettext as _
from grid.models import Notification, NotificationChoice, NotificationEvent, User
from grid.notifications.channels import external_channels
from grid.notifications.events import ChosenChannels, default_channels

_CHANNELS = {"in_page": _("In the dashboard"), "email": _("E-mail"), "webhook": _("Webhook")}


def unread_count(user_id: int) -> int:
    return Notification.objects.filter(user=user_id, read_at__isnull=True).count()


def latest_unread(user_id: int) -> NotificationRecord | None:
    return next(iter(_records(Notification.objects.filter(user=user_id, read_at__isnull=True)[:1])), None)


def notifications(user_id: int, *, start: int, at_most: int) -> Sequence[NotificationRecord]:
    """Return a person's notifications, the newest first."""
    return _records(Notification.objects.filter(user=user_id)[start : start + at_most])


def mark_read(user_id: int, ids: Collection[int] | None = None) -> int:
    """Mark these notifications of a person as read, or all; return how many were unread."""
    unread = Notification.objects.filter(user=user_id, read_at__isnull=True)
    if ids is not None:
        unread = unread.filter(pk__in=ids)
    return unread.update(read_at=timezone.now())


def channels_for(user: User) -> Mapping[str, str]:
    """Return the titles of the channels that a person can choose."""
    offered = {"in_page", *external_channels(user)}
    return {name: title for name, title in _CHANNELS.items() if name in offered}


def events_for(user: User) -> Sequence[NotificationEvent]:
    """Return what a person can be told of: alerts are for operators."""
    return [event for event in NotificationEvent if event is not NotificationEvent.ALERT or may_operate(user)]


def choice_rows(
    user_id: int, offered: Mapping[str, str], events: Collection[NotificationEvent] = tuple(NotificationEvent)
) -> list[ChoiceRow]:
    """Return the boxes of these events in the offered channels, checked as the person chose."""
    return [
        ChoiceRow(
            capfirst(event.label),
            [ChannelBox(f"{event}-{name}", _box_label(event, name), getattr(channels, name)) for name in offered],
        )
        for event, channels in _chosen(user_id, events).items()
    ]


@transaction.atomic
def save_choices(
    user: User,
    checked: Collection[str],
    offered: Collection[str],
    events: Collection[NotificationEvent] = tuple(NotificationEvent),
) -> None:
    """Store, with an audit entry, the boxes that are checked by the names of their fields; what was not offered stays."""
    before = _checked(_chosen(user.pk, events), offered)
    for event in events:
        chosen = {name: f"{event}-{name}" in checked for name in offered}
        columns = asdict(default_channels(event)) | chosen
        NotificationChoice.objects.update_or_create(user=user, event=event, defaults=chosen, create_defaults=columns)
    after = _checked(_chosen(user.pk, events), offered)
    if after != before:
        write_entry(user, user, {"notifications": [before, after]})


def _chosen(user_id: int, events: Iterable[NotificationEvent]) -> Mapping[NotificationEvent, ChosenChannels]:
    """Return the channels of each event, as the person chose or else as is usual."""
    rows = NotificationChoice.objects.filter(user=user_id).values_list("event", "in_page", "email", "webhook")
    chosen = {event: ChosenChannels(*channels) for event, *channels in rows}
    return {event: chosen.get(event) or default_channels(event) for event in events}


def _checked(chosen: Mapping[NotificationEvent, ChosenChannels], offered: Iterable[str]) -> list[str]:
    """Return the labels of the boxes that are checked."""
    return [
        _box_label(event, name) for event, channels in chosen.items() for name in offered if getattr(channels, name)
    ]


def _box_label(event: NotificationEvent, channel: str) -> str:
    return _("{channel}, when {event}", channel=_CHANNELS[channel], event=event.label)


def _records(rows: QuerySet[Notification]) -> list[NotificationRecord]:
    return [
        NotificationRecord(row.pk, row.event, row.title, row.sentence, row.path, row.at, row.read_at is None)
        for row in rows
    ]
