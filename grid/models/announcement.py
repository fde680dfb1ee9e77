"""Announcements: what operators tell everybody for a time, and whether launches are refused meanwhile."""

from datetime import datetime

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from grid.core.translation import gettext as _
from grid.models.execution import new_execution_id

LONGEST_ANNOUNCEMENT = 300


def new_announcement_id() -> str:
    return new_execution_id()


class AnnouncementQuerySet(models.QuerySet["Announcement"]):
    def not_ended(self, now: datetime) -> "AnnouncementQuerySet":
        return self.filter(Q(until_at__isnull=True) | Q(until_at__gt=now))

    def shown(self, now: datetime) -> "AnnouncementQuerySet":
        return self.not_ended(now).filter(from_at__lte=now).order_by("from_at", "pk")


class Announcement(models.Model):
    """A short plain text that everybody reads on every page from `from_at` until `until_at`, or until somebody ends it. With
    `no_launches_from`, nothing new is launched from then until it ends: that is maintenance."""

    class Severity(models.TextChoices):
        INFO = "info", _("Information")
        WARNING = "warning", _("Warning")

    id = models.CharField(primary_key=True, max_length=16, default=new_announcement_id, editable=False)
    text = models.CharField(max_length=LONGEST_ANNOUNCEMENT)
    severity = models.CharField(max_length=10, choices=Severity.choices, default=Severity.INFO)
    from_at = models.DateTimeField(default=timezone.now)
    until_at = models.DateTimeField(null=True, blank=True)
    no_launches_from = models.DateTimeField(null=True, blank=True)
    author_name = models.CharField(max_length=150, editable=False, help_text=_("Kept when the account goes."))
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = AnnouncementQuerySet.as_manager()

    class Meta:
        ordering = ["-from_at", "-pk"]
        indexes = [models.Index(fields=["until_at"], name="announcements_by_end")]
        constraints = [
            models.CheckConstraint(
                condition=Q(until_at__isnull=True) | Q(until_at__gte=F("from_at")), name="announcement_ends_after_start"
            )
        ]

    def __str__(self) -> str:
        return self.text[:80]


class AnnouncementReader(models.Model):
    """When a person hid an announcement, and when the person was notified of the maintenance that it announces. There is one of each pair:
    two controllers notify once."""

    announcement = models.ForeignKey(Announcement, on_delete=models.CASCADE, related_name="readers")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    hidden_at = models.DateTimeField(null=True, blank=True)
    told_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["announcement", "user"], name="one_reader_of_an_announcement")]

    def __str__(self) -> str:
        return _("{announcement_id} read by {user_id}", announcement_id=self.announcement_id, user_id=self.user_id)
