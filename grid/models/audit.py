"""The audit log: who changed what and when, with old and new values."""

from django.conf import settings
from django.db import models
from django.utils import timezone


class AuditEntry(models.Model):
    """One change by a person. `changes` maps each changed field to its old and new value: {"cores": ["1", "2"]}."""

    class Action(models.TextChoices):
        CREATED = "created", "Created"
        CHANGED = "changed", "Changed"
        ARCHIVED = "archived", "Archived"
        RESTORED = "restored", "Restored"
        RESET = "reset", "Reset to default"
        UNLOCKED = "unlocked", "Unlocked"
        ENDED = "ended", "Ended"
        SENT = "sent", "Sent"

    at = models.DateTimeField(default=timezone.now)
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    actor_name = models.CharField(max_length=150, help_text="Kept when the account goes.")
    action = models.CharField(max_length=20, choices=Action.choices)
    object_type = models.CharField(max_length=40, help_text="Model name, for example hardwaretier.")
    object_id = models.CharField(max_length=200)
    object_name = models.CharField(max_length=200, blank=True)
    changes = models.JSONField(default=dict)

    class Meta:
        ordering = ["-at", "-id"]
        indexes = [
            models.Index(fields=["object_type", "object_id"]),
            models.Index(fields=["at", "id"], name="audit_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.actor_name} {self.action} {self.object_type} {self.object_id}"
