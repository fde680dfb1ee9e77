"""Notifications: what somebody is told, the channels that each person has chosen, and the outbox of what waits to be sent."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from grid.core.translation import gettext as _
from grid.models.execution import Execution


class NotificationEvent(models.TextChoices):
    """A kind of event that a person may be told of; the labels end the sentence “Tell me when …”."""

    STARTED = "started", _("it runs")
    SUCCEEDED = "succeeded", _("it has succeeded")
    FAILED = "failed", _("it has failed")
    STOPPING_SOON = "stopping_soon", _("it is about to be stopped")
    STOPPED = "stopped", _("somebody else, or a rule, has stopped it")
    SCHEDULE_PAUSED = "schedule_paused", _("its schedule was paused")
    FILES_NOT_SAVED = "files_not_saved", _("its files in Git could not be saved as usual")
    BUDGET = "budget", _("a project's budget reaches its warning or stop line")
    MAINTENANCE = "maintenance", _("maintenance is announced while your executions run")
    MESSAGE = "message", _("an operator writes to you about your executions")
    ALERT = "alert", _("an alert fires or is over, for operators")
    QUEUE_POSITION = "queue_position", _("it is next in the queue, or is expected to start soon")
    CPU_CONTENTION = "cpu_contention", _("others on its node take CPU that it could use")


class Notification(models.Model):
    """What one person is told on the page. `path` is that of the page which says more; `sentence` is what that page said then."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notifications")
    execution = models.ForeignKey(
        Execution, on_delete=models.SET_NULL, related_name="+", null=True, blank=True, help_text="Null once deleted."
    )
    event = models.CharField(max_length=20, choices=NotificationEvent.choices)
    title = models.CharField(max_length=160, help_text="Of what it is about.")
    sentence = models.TextField()
    path = models.CharField(max_length=200)
    at = models.DateTimeField(default=timezone.now)
    read_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-at", "-pk"]
        indexes = [
            models.Index(fields=["user", "-at", "-id"], name="notifications_of_user"),
            models.Index(fields=["user"], condition=Q(read_at__isnull=True), name="unread_notifications"),
            models.Index(fields=["at"], name="notifications_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.title}: {self.event}"


class StopWarning(models.Model):
    """Its owner was told that an execution's timeout is about to end it. There is one of each execution: two controllers tell it once."""

    execution = models.OneToOneField(Execution, on_delete=models.CASCADE, primary_key=True, related_name="stop_warning")
    at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return _("stop of {execution_id} told", execution_id=self.execution_id)


class QueueNotice(models.Model):
    """When its owner was told that a queued execution is next, and that it starts soon. One row of each, so two controllers tell once."""

    execution = models.OneToOneField(Execution, on_delete=models.CASCADE, primary_key=True, related_name="queue_notice")
    next_at = models.DateTimeField(null=True, blank=True)
    soon_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return _("queue of {execution_id} told", execution_id=self.execution_id)


class ContentionNotice(models.Model):
    """Its owner was told that an execution may get less CPU than it could use. One row of each, so one of several web processes tells."""

    execution = models.OneToOneField(
        Execution, on_delete=models.CASCADE, primary_key=True, related_name="contention_notice"
    )
    at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return _("contention of {execution_id} told", execution_id=self.execution_id)


class NotificationChoice(models.Model):
    """The channels that one person has chosen for one event. Without a row the event's defaults apply."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notification_choices")
    event = models.CharField(max_length=20, choices=NotificationEvent.choices)
    in_page = models.BooleanField()
    email = models.BooleanField()
    webhook = models.BooleanField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "event"], name="one_choice_an_event")]

    def __str__(self) -> str:
        return f"{self.user_id}: {self.event}"


class WebhookTarget(models.Model):
    """Where one person's notifications are posted, and the encrypted secret that signs them."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="webhook_target"
    )
    url = models.CharField(max_length=500)
    secret = models.TextField(help_text="Encrypted: grid.database.encryption.")

    def __str__(self) -> str:
        return _("webhook of {user_id}", user_id=self.user_id)


class Delivery(models.Model):
    """What waits to be sent to one person through one channel, or was sent, or given up. It is written in the transaction of what it tells,
    so nothing is lost. `message` is the id that a receiver tells a repetition by; deliveries that were merged into one message share it."""

    class Channel(models.TextChoices):
        EMAIL = "email", _("Email")
        WEBHOOK = "webhook", _("Webhook")

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="deliveries")
    channel = models.CharField(max_length=10, choices=Channel.choices)
    payload = models.JSONField(help_text="Event, title, sentence, path and time: grid.notifications.")
    message = models.UUIDField(default=uuid.uuid4)
    at = models.DateTimeField(default=timezone.now)
    tries = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField(
        null=True,
        default=timezone.now,
        help_text="Null when it was sent or given up; a sender that has taken it moves it.",
    )
    sent_at = models.DateTimeField(null=True, blank=True)
    error = models.CharField(max_length=300, blank=True, help_text="Why the latest try failed.")

    class Meta:
        verbose_name_plural = "deliveries"
        indexes = [
            models.Index(
                fields=["channel", "user", "next_try_at"], condition=Q(next_try_at__isnull=False), name="deliveries_due"
            ),
            models.Index(fields=["user", "channel", "sent_at"], name="deliveries_sent"),
            models.Index(fields=["at"], name="deliveries_by_age"),
        ]

    def __str__(self) -> str:
        return _("{channel} to {user_id}", channel=self.channel, user_id=self.user_id)
