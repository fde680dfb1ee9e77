"""The most that an execution has used of CPU and memory while it ran, as far as it was measured."""

from django.db import models

from grid.core.translation import gettext as _
from grid.models.execution import Execution


class PeakUse(models.Model):
    """The use of an execution's pod, written by the controller while it runs; a table of its own, because no list shows it.

    Sources of metrics measure every 15 to 60 seconds, so a peak between two measurements is missed. Clusters have none: their pods differ.
    """

    execution = models.OneToOneField(Execution, on_delete=models.CASCADE, primary_key=True, related_name="peak")
    memory_peak_bytes = models.PositiveBigIntegerField()
    cpu_peak_millicores = models.PositiveBigIntegerField()
    cpu_sum_millicores = models.PositiveBigIntegerField(help_text="Of all samples, so that the mean follows.")
    samples = models.PositiveBigIntegerField()

    def __str__(self) -> str:
        return _("peak use of {execution_id}", execution_id=self.execution_id)

    @property
    def cpu_mean_millicores(self) -> int:
        return self.cpu_sum_millicores // self.samples if self.samples else 0
