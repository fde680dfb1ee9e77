"""Schedules: when a job is run by itself."""

from django.db import models
from django.utils import timezone

from grid.core.translation import gettext as _
from grid.models.job import Job


class Schedule(models.Model):
    """The times at which a job is run. Every write holds the lock of its job.

    `next_at` is moved on in the transaction that stores the run of that time, and the database takes one run for each due time, so a time
    is never run twice. A time that has none, because it was skipped, missed or refused, is told in `history`.
    """

    class Overlap(models.TextChoices):
        SKIP = "skip", _("Skip it")
        QUEUE = "queue", _("Queue it")
        REPLACE = "replace", _("Replace the run")

    class Missed(models.TextChoices):
        ONCE = "once", _("Run once")
        NONE = "none", _("Do not run")

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="schedules")
    cron = models.CharField(max_length=100)
    time_zone = models.CharField(max_length=60, help_text="IANA name.")
    overlap = models.CharField(
        max_length=10,
        choices=Overlap.choices,
        default=Overlap.SKIP,
        help_text="When it is due while an earlier run of it has not ended.",
    )
    missed = models.CharField(
        max_length=10,
        choices=Missed.choices,
        default=Missed.ONCE,
        help_text="When it was due while Compute Grid was not running.",
    )
    created_at = models.DateTimeField(default=timezone.now)
    set_at = models.DateTimeField(default=timezone.now, help_text="When it was created, edited or resumed last.")
    paused_at = models.DateTimeField(null=True, blank=True)
    paused_by = models.CharField(max_length=150, blank=True, help_text="Empty: Compute Grid.")
    paused_why = models.TextField(blank=True, help_text="A sentence; empty when a person paused it.")
    next_at = models.DateTimeField(null=True, blank=True, help_text="Null while it is paused.")
    last_at = models.DateTimeField(null=True, blank=True, help_text="The last time for which a run was asked for.")
    history = models.JSONField(default=list, blank=True, help_text="The latest of what happened: time and sentence.")

    class Meta:
        ordering = ["pk"]
        indexes = [
            models.Index(
                fields=["next_at", "id"], condition=models.Q(next_at__isnull=False), name="schedules_by_next_time"
            )
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(paused_at__isnull=True, next_at__isnull=False)
                | models.Q(paused_at__isnull=False, next_at__isnull=True),
                name="schedule_is_paused_or_has_a_next_time",
            )
        ]

    def __str__(self) -> str:
        return f"{self.cron} ({self.time_zone})"
