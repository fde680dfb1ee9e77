"""What admins have changed: the settings that differ from their defaults, and the audit log, who did what and when, with old and new
values, in a chain that shows whether it was changed afterwards."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from grid.core.translation import gettext as _


class AuditEntry(models.Model):
    """One change by a person. `changes` maps each changed field to its old and new value: {"cores": ["1", "2"]}."""

    class Action(models.TextChoices):
        CREATED = "created", _("Created")
        CHANGED = "changed", _("Changed")
        ARCHIVED = "archived", _("Archived")
        RESTORED = "restored", _("Restored")
        RESET = "reset", _("Reset to default")
        UNLOCKED = "unlocked", _("Unlocked")
        ENDED = "ended", _("Ended")
        SENT = "sent", _("Sent")
        LAUNCHED = "launched", _("Launched")
        STOPPED = "stopped", _("Stopped")
        RESTARTED = "restarted", _("Restarted")
        DELETED = "deleted", _("Deleted")
        OPENED = "opened", _("Opened")
        DOWNLOADED = "downloaded", _("Downloaded")
        LOGGED_IN = "logged in", _("Logged in")
        LOGGED_OUT = "logged out", _("Logged out")
        LOGIN_FAILED = "login failed", _("Login failed")

    at = models.DateTimeField(default=timezone.now)
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    actor_name = models.CharField(max_length=150, help_text="Kept when the account goes.")
    action = models.CharField(max_length=20, choices=Action.choices)
    object_type = models.CharField(max_length=40, help_text="Model name, for example hardwaretier.")
    object_id = models.CharField(max_length=200)
    object_name = models.CharField(max_length=200, blank=True)
    changes = models.JSONField(default=dict)
    number = models.BigIntegerField(
        null=True, unique=True, editable=False, help_text="Its place in the chain, from 1; empty until it is sealed."
    )
    sealed_at = models.DateTimeField(null=True, editable=False)
    hash = models.CharField(max_length=64, blank=True, editable=False, help_text="See grid.audit.chain.")

    class Meta:
        ordering = ["-at", "-id"]
        indexes = [
            models.Index(fields=["object_type", "object_id"]),
            models.Index(fields=["at", "id"], name="audit_by_age"),
            models.Index(fields=["actor_name", "at", "id"], name="audit_by_actor"),
            models.Index(fields=["object_type", "at", "id"], name="audit_by_kind"),
            models.Index(fields=["action", "at", "id"], name="audit_by_action"),
            models.Index(fields=["id"], name="unsealed_audit_entries", condition=models.Q(number__isnull=True)),
        ]

    def __str__(self) -> str:
        return f"{self.actor_name} {self.action} {self.object_type} {self.object_id}"


class AuditChain(models.Model):
    """The two ends of the chain, in the one row of this table: the last entry that retention has deleted, and the last one sealed."""

    anchor_number = models.BigIntegerField(default=0)
    anchor_hash = models.CharField(max_length=64)
    head_number = models.BigIntegerField(default=0)
    head_hash = models.CharField(max_length=64)

    def __str__(self) -> str:
        first, last = self.anchor_number, self.head_number
        return _("audit chain from {anchor_number} to {head_number}", anchor_number=first, head_number=last)


class ConfigRecord(models.Model):
    """One override; without a record the default of the key applies."""

    namespace = models.CharField(max_length=60, default="common")
    key = models.CharField(max_length=200)
    value = models.CharField(max_length=1000)
    updated_at = models.DateTimeField(auto_now=True)
    updated_by = models.CharField(max_length=150, blank=True)

    class Meta:
        ordering = ["namespace", "key"]
        constraints = [models.UniqueConstraint(fields=["namespace", "key"], name="one_value_for_a_key")]

    def __str__(self) -> str:
        return f"{self.key} = {self.value}"
