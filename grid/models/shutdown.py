"""What is known of stops by rule: since when an execution is idle, the stop that was announced, and until when people keep it."""

from django.db import models
from django.db.models import Q

from grid.core.translation import gettext as _
from grid.models.execution import Execution


class StopPlan(models.Model):
    """Of one running workspace or app. The controller writes what it has seen and announced, people write how long they keep it."""

    class Cause(models.TextChoices):
        IDLE = "idle", _("Idle")
        LIFETIME = "lifetime", _("Maximum lifetime")

    execution = models.OneToOneField(Execution, on_delete=models.CASCADE, primary_key=True, related_name="stop_plan")
    active_at = models.DateTimeField(null=True, blank=True, help_text="When it was last seen in use: idle since then.")
    looked_at = models.DateTimeField(null=True, blank=True, help_text="The last look that could tell.")
    evidence = models.CharField(max_length=300, blank=True, help_text="What the last look has found, in words.")
    is_unknown = models.BooleanField(default=False, help_text="The last look could not tell; `evidence` says why.")
    kept_idle_until = models.DateTimeField(null=True, blank=True)
    kept_lifetime_until = models.DateTimeField(null=True, blank=True)
    cause = models.CharField(max_length=20, choices=Cause.choices, blank=True, help_text="Of the announced stop.")
    stops_at = models.DateTimeField(null=True, blank=True, help_text="When it will be stopped, as its owner was told.")

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(cause="", stops_at__isnull=True)
                | Q(cause__in=("idle", "lifetime"), stops_at__isnull=False),
                name="announced_stop_has_cause_and_time",
            )
        ]

    def __str__(self) -> str:
        return _("stop of {execution_id}", execution_id=self.execution_id)
