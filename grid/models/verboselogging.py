"""Times in which processes log more than usual."""

from datetime import datetime

from django.conf import settings
from django.db import models

from grid.core.translation import gettext as _


class VerboseLoggingQuerySet(models.QuerySet["VerboseLogging"]):
    def in_force(self, now: datetime) -> "VerboseLoggingQuerySet":
        return self.filter(until_at__gt=now)


class VerboseLogging(models.Model):
    """All processes of a component, or the lines about an execution, are logged at DEBUG until `until_at`."""

    class Component(models.TextChoices):
        WEB = "web", _("Web")
        PROXY = "proxy", _("Proxy")
        CONTROLLER = "controller", _("Controller")

    component = models.CharField(max_length=20, choices=Component.choices, blank=True)
    execution = models.CharField(max_length=40, blank=True, help_text="Its id; the row outlives it by an hour at most.")
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    actor_name = models.CharField(max_length=150, help_text="Kept when the account goes.")
    reason = models.CharField(max_length=200)
    from_at = models.DateTimeField()
    until_at = models.DateTimeField(db_index=True)

    objects = VerboseLoggingQuerySet.as_manager()

    def __str__(self) -> str:
        return (
            _("component {component}", component=self.component)
            if self.component
            else _("execution {execution}", execution=self.execution)
        )
