"""Alerts that an Alertmanager has told of, and how operators silence them."""

from datetime import datetime

from django.db import models
from django.utils import timezone

LONGEST_REASON = 300


class Alert(models.Model):
    """An alert, from when it began to fire until it was told to be over. The same one fires again under another `started_at`."""

    fingerprint = models.CharField(max_length=64, help_text="Of its labels, as Alertmanager writes it.")
    name = models.CharField(max_length=200)
    severity = models.CharField(max_length=40, blank=True)
    labels = models.JSONField(default=dict)
    annotations = models.JSONField(default=dict)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    heard_at = models.DateTimeField(help_text="When it was told of last.")
    told_at = models.DateTimeField(null=True, blank=True, help_text="When operators were notified that it fires.")
    end_told_at = models.DateTimeField(null=True, blank=True, help_text="When operators were notified of its end.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["fingerprint", "started_at"], name="one_row_of_an_alert")]
        indexes = [
            models.Index(fields=["started_at", "id"], condition=models.Q(ended_at=None), name="firing_alerts"),
            models.Index(fields=["ended_at", "id"], name="alerts_by_end"),
            models.Index(fields=["id"], condition=models.Q(told_at=None), name="alerts_to_tell"),
            models.Index(
                fields=["id"], condition=models.Q(ended_at__isnull=False, end_told_at=None), name="alert_ends_to_tell"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class AlertSilenceQuerySet(models.QuerySet["AlertSilence"]):
    def in_force(self, now: datetime) -> "AlertSilenceQuerySet":
        return self.filter(until_at__gt=now)


class AlertSilence(models.Model):
    """A time in which nobody is told of the alerts that have all labels of `matchers`. With an `alertmanager_id` Alertmanager has it, too;
    ended by hand, `until_at` is when that was."""

    name = models.CharField(max_length=200, help_text="Of the alert that was silenced.")
    matchers = models.JSONField(default=dict)
    reason = models.CharField(max_length=LONGEST_REASON)
    author_name = models.CharField(max_length=150, help_text="Kept when the account goes.")
    created_at = models.DateTimeField(default=timezone.now)
    until_at = models.DateTimeField()
    ended_by_name = models.CharField(max_length=150, blank=True)
    alertmanager_id = models.CharField(max_length=64, blank=True, help_text="Empty until Alertmanager has it.")
    alertmanager_problem = models.CharField(max_length=300, blank=True, help_text="Why Alertmanager does not have it.")

    objects = AlertSilenceQuerySet.as_manager()

    class Meta:
        ordering = ["until_at", "pk"]
        indexes = [models.Index(fields=["until_at"], name="silences_by_end")]

    def __str__(self) -> str:
        return self.name
