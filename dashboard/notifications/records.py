"""Reads and writes people's notifications and what they chose. Each function is about one person's own; nobody gets somebody else's."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.text import capfirst

from dashboard.notifications import viewmodel
from dashboard.shell.access import may_operate
from grid.audit.entries import write_entry
from grid.configuration import NOTIFICATIONS_PER_HOUR, value_of
from grid.core.translation import gettext as _
from grid.models import Delivery, Notification, NotificationChoice, NotificationEvent, User, WebhookTarget
from grid.notifications.channels import VALID_FOR, external_channels, pending_change, sends_mail
from grid.notifications.deliveries import is_at_limit
from grid.notifications.letters import CONFIRM_ADDRESS, LETTERS
from grid.notifications.outbox import ChosenChannels, default_channels

_CHANNELS = {"in_page": _("In the dashboard"), "email": _("E-mail"), "webhook": _("Webhook")}


def unread_count(user_id: int) -> int:
    return Notification.objects.filter(user=user_id, read_at__isnull=True).count()


def latest_unread(user_id: int) -> viewmodel.NotificationRecord | None:
    return next(iter(_records(Notification.objects.filter(user=user_id, read_at__isnull=True)[:1])), None)


def notifications(user_id: int, *, start: int, at_most: int) -> Sequence[viewmodel.NotificationRecord]:
    return _records(Notification.objects.filter(user=user_id)[start : start + at_most])


def mark_read(user_id: int, ids: Collection[int] | None = None) -> int:
    """Mark these notifications of a person as read, or all; return how many were unread."""
    unread = Notification.objects.filter(user=user_id, read_at__isnull=True)
    if ids is not None:
        unread = unread.filter(pk__in=ids)
    return unread.update(read_at=timezone.now())


def channels_for(user: User) -> Mapping[str, str]:
    offered = {"in_page", *external_channels(user)}
    return {name: title for name, title in _CHANNELS.items() if name in offered}


def events_for(user: User) -> Sequence[NotificationEvent]:
    """Return what a person can be told of: alerts are for operators."""
    return [event for event in NotificationEvent if event is not NotificationEvent.ALERT or may_operate(user)]


def choice_rows(user: User, offered: Iterable[str], events: Iterable[NotificationEvent]) -> list[viewmodel.ChoiceRow]:
    """Return the boxes of these events in the offered channels, checked as the person chose."""

    def boxes(event: NotificationEvent, chosen: ChosenChannels) -> list[viewmodel.ChannelBox]:
        labelled = ((name, _box_label(event, name)) for name in offered)
        return [viewmodel.ChannelBox(f"{event}-{name}", label, getattr(chosen, name)) for name, label in labelled]

    return [viewmodel.ChoiceRow(capfirst(event.label), boxes(event, c)) for event, c in _chosen(user, events).items()]


@transaction.atomic
def save_choices(
    user: User, checked: Collection[str], offered: Collection[str], events: Collection[NotificationEvent]
) -> None:
    """Store, with an audit entry, the boxes that are checked by the names of their fields; what was not offered stays."""
    before = _checked(_chosen(user, events), offered)
    for event in events:
        chosen = {name: f"{event}-{name}" in checked for name in offered}
        columns = asdict(default_channels(event)) | chosen
        NotificationChoice.objects.update_or_create(user=user, event=event, defaults=chosen, create_defaults=columns)
    after = _checked(_chosen(user, events), offered)
    if after != before:
        write_entry(user, user, {"notifications": [before, after]})


def _chosen(user: User, events: Iterable[NotificationEvent]) -> Mapping[NotificationEvent, ChosenChannels]:
    rows = NotificationChoice.objects.filter(user=user).values_list("event", "in_page", "email", "webhook")
    chosen = {event: ChosenChannels(*channels) for event, *channels in rows}
    return {event: chosen.get(event) or default_channels(event) for event in events}


def _checked(chosen: Mapping[NotificationEvent, ChosenChannels], offered: Iterable[str]) -> list[str]:
    return [_box_label(event, name) for event, by in chosen.items() for name in offered if getattr(by, name)]


def _box_label(event: NotificationEvent, channel: str) -> str:
    return _("{channel}, when {event}", channel=_CHANNELS[channel], event=event.label)


def _records(rows: QuerySet[Notification]) -> list[viewmodel.NotificationRecord]:
    return [
        viewmodel.NotificationRecord(row.pk, row.event, row.title, row.sentence, row.path, row.at, row.read_at is None)
        for row in rows
    ]


def outward_channels_view(user: User, now: datetime) -> list[viewmodel.ChannelView]:
    url, views = webhook_url(user.pk), []
    email = viewmodel.NO_ADDRESS if sends_mail() else viewmodel.NO_SERVER
    if is_mailed := sends_mail() and bool(user.email):
        email = _("To {address}.", address=user.email)
    webhook = _("Posted to {url}.", url=url) if url else viewmodel.NO_WEBHOOK
    for channel, where, is_set_up in (("email", email, is_mailed), ("webhook", webhook, bool(url))):
        sent = Delivery.objects.filter(user=user, channel=channel).exclude(payload__event__in=LETTERS)
        row, latest = sent.order_by("pk").last() if is_set_up else None, ""
        if row is not None:
            limit = value_of(NOTIFICATIONS_PER_HOUR) if is_at_limit(user.pk, channel, now) else 0
            latest = viewmodel.latest_words(row, now, limit=limit)
        views.append(viewmodel.ChannelView(channel, _CHANNELS[channel], where, is_set_up, latest))
    return views


def pending_view(user: User, now: datetime) -> viewmodel.PendingAddress | None:
    """Return the new address that waits to be confirmed, and what became of the letter to it; None without one."""
    pending = pending_change(user)
    if pending is None:
        return None
    letters = Delivery.objects.filter(user=user, channel=Delivery.Channel.EMAIL, payload__event=CONFIRM_ADDRESS)
    letter = letters.filter(payload__to=pending.address, at__gte=pending.asked_at).order_by("pk").last()
    return viewmodel.pending_address(pending.address, user.email, pending.asked_at + VALID_FOR, letter, now)


def webhook_url(user_id: int) -> str:
    return WebhookTarget.objects.filter(user=user_id).values_list("url", flat=True).first() or ""
