"""Samples of clusters, from which charts are drawn."""

from django.db import models

from grid.core.translation import gettext as _
from grid.models.execution import Execution


class ClusterSample(models.Model):
    """The state of a cluster at one moment, written by the controller while the cluster runs; the chart shows these samples."""

    execution = models.ForeignKey(Execution, on_delete=models.CASCADE, related_name="samples")
    at = models.DateTimeField()
    ready = models.PositiveIntegerField(help_text="Workers that are ready.")
    wanted = models.PositiveIntegerField(help_text="Workers that the autoscaler asks for.")
    cpu_percent = models.PositiveIntegerField(null=True, help_text="Average of requests, as the autoscaler sees it.")
    memory_percent = models.PositiveIntegerField(null=True)
    pending_tasks = models.PositiveIntegerField(
        null=True, help_text="Tasks that no worker has taken, of the framework."
    )

    class Meta:
        ordering = ["at"]
        indexes = [models.Index(fields=["at"], name="samples_by_age")]
        constraints = [models.UniqueConstraint(fields=["execution", "at"], name="one_sample_a_moment")]

    def __str__(self) -> str:
        return _("{ready} of {wanted} workers at {at}", ready=self.ready, wanted=self.wanted, at=self.at)
