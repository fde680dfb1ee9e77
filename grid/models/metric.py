"""The metrics that programs of jobs write, and how far their logs were read for them."""

from django.db import models

from grid.core.translation import gettext as _
from grid.models.execution import Execution


class RunMetric(models.Model):
    """One metric of an execution, written by the controller while it runs and at its end; see `grid.jobs.runmetrics.series`."""

    execution = models.ForeignKey(Execution, on_delete=models.CASCADE, related_name="metrics", db_index=False)
    name = models.CharField(max_length=80)
    points = models.JSONField(help_text="Number, step and value of each value that is kept.")
    count = models.PositiveBigIntegerField(help_text="Values that were written, of which some are kept.")
    last = models.FloatField()
    lowest = models.FloatField()
    highest = models.FloatField()
    at = models.DateTimeField(help_text="When a value was stored last.")

    class Meta:
        ordering = ["execution", "name"]
        indexes = [models.Index(fields=["at"], name="metrics_by_age")]
        constraints = [models.UniqueConstraint(fields=["execution", "name"], name="each_metric_once")]

    def __str__(self) -> str:
        return _("{name} of {execution_id}", name=self.name, execution_id=self.execution_id)


class MetricReading(models.Model):
    """How far an execution's log was read for metrics: `grid.logs.logplace`. `revision` grows with each write, so that of two
    controllers one writes a portion."""

    execution = models.OneToOneField(
        Execution, on_delete=models.CASCADE, primary_key=True, related_name="metric_reading"
    )
    second = models.CharField(max_length=19)
    lines = models.PositiveIntegerField()
    latest = models.CharField(max_length=29)
    refused = models.PositiveBigIntegerField(default=0, help_text="Values that were no finite number, or had no name.")
    unkept = models.PositiveBigIntegerField(default=0, help_text="Values of further metrics than are kept.")
    revision = models.PositiveIntegerField(default=1)

    def __str__(self) -> str:
        return _("metrics of {execution_id} up to {latest}", execution_id=self.execution_id, latest=self.latest)
