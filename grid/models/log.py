"""What is kept of executions' logs, and how far they were sent elsewhere."""

from django.db import models
from django.utils import timezone

from grid.core.translation import gettext as _
from grid.models.execution import Execution


class ExecutionLog(models.Model):
    """The last lines of an execution's log, kept when its pod goes. A table of its own, because it is large and no list shows it."""

    execution = models.OneToOneField(Execution, on_delete=models.CASCADE, primary_key=True, related_name="log")
    text = models.TextField()
    at = models.DateTimeField(db_index=True, default=timezone.now, help_text="When it was kept.")

    def __str__(self) -> str:
        return _("log of {execution_id}", execution_id=self.execution_id)


class ShippedLog(models.Model):
    """How far an execution's log was sent to the log receiver, and what was not: see `grid.logs.logshipping`."""

    execution = models.OneToOneField(Execution, on_delete=models.CASCADE, primary_key=True, related_name="shipped_log")
    places = models.JSONField(
        default=dict, help_text="Of each pod that is not known to be gone: second, lines and latest of a LogPlace."
    )
    sent = models.PositiveBigIntegerField(default=0, help_text="Lines.")
    lost = models.PositiveBigIntegerField(default=0, help_text="Lines that made room for newer ones, or were refused.")
    at = models.DateTimeField(help_text="When this was noted last.")

    def __str__(self) -> str:
        return _("shipped log of {execution_id}", execution_id=self.execution_id)
