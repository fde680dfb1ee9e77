"""Reads where a person's notifications go outside of the dashboard, and what became of them. Each function is about one's own."""

from datetime import datetime

from dashboard.notifications.viewmodels.notification_channels import (
    ChannelView,
    PendingAddress,
    channel_views,
    latest_words,
    pending_address,
)
from grid.configuration import NOTIFICATIONS_PER_HOUR, value_of
from grid.models import Delivery, User, WebhookTarget
from grid.notifications.addresses import VALID_FOR, pending_change
from grid.notifications.channels import sends_mail
from grid.notifications.deliveries import is_at_limit
from grid.notifications.letters import CONFIRM_ADDRESS, LETTERS


def outward_channels_view(user: User, now: datetime) -> list[ChannelView]:
    latest = {}
    for channel in Delivery.Channel:
        sent = Delivery.objects.filter(user=user, channel=channel).exclude(payload__event__in=LETTERS)
        if (row := sent.order_by("pk").last()) is not None:
            limit = value_of(NOTIFICATIONS_PER_HOUR) if is_at_limit(user.pk, channel, now) else 0
            latest[str(channel)] = latest_words(row, now, limit=limit)
    return channel_views(sends_mail=sends_mail(), address=user.email, url=webhook_url(user.pk), latest=latest)


def pending_view(user: User, now: datetime) -> PendingAddress | None:
    """Return the new address that waits to be confirmed, and what became of the letter to it; None without one."""
    pending = pending_change(user)
    if pending is None:
        return None
    letters = Delivery.objects.filter(user=user, channel=Delivery.Channel.EMAIL, payload__event=CONFIRM_ADDRESS)
    letter = letters.filter(payload__to=pending.address, at__gte=pending.asked_at).order_by("pk").last()
    return pending_address(pending.address, user.email, pending.asked_at + VALID_FOR, letter, now)


def webhook_url(user_id: int) -> str:
    """Return the person's target; "" without one."""
    return WebhookTarget.objects.filter(user=user_id).values_list("url", flat=True).first() or ""
