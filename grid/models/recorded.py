"""What the controller records of executions: their logs, metrics, samples and use, their files in Git, and what stops them by rule."""

from django.db import models
from django.db.models import Q
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


class RunMetric(models.Model):
    """One metric of an execution, written by the controller while it runs and at its end; see `grid.jobs.runmetrics.store`."""

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


class PeakUse(models.Model):
    """The use of an execution's pod while it ran. Sources of metrics measure every 15 to 60 seconds, so a peak between two measurements is
    missed. Clusters have none: their pods differ."""

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


class RunFiles(models.Model):
    """The commits with which an execution began and ended, as its executor reported them; written by the controller.

    `branch` is where its changes went, "" when they could not be pushed: `kept` then says where they are (`repository`, `home`, a `copy`
    beside the branches, `unsure` where saving was cut short), and `problem` why. With `left_out` a copy of all files is kept there, too.
    `results_problem` says what of the results is not kept, and `results_kept` where a copy of them is.
    """

    execution = models.OneToOneField(Execution, on_delete=models.CASCADE, primary_key=True, related_name="files")
    began = models.CharField(max_length=40, blank=True, help_text='"" for an empty repository.')
    ended = models.CharField(max_length=40, blank=True)
    branch = models.CharField(max_length=200, blank=True)
    kept = models.CharField(max_length=20, blank=True)
    problem = models.TextField(blank=True)
    left_out = models.PositiveIntegerField(default=0, help_text="Files that could not be read.")
    left_out_names = models.TextField(blank=True, help_text="Some of them, each with the reason.")
    results = models.CharField(max_length=40, blank=True, help_text="The commit that has the results of a job.")
    results_files = models.PositiveIntegerField(default=0)
    results_bytes = models.PositiveBigIntegerField(default=0)
    results_problem = models.TextField(blank=True)
    results_kept = models.CharField(max_length=20, blank=True)

    def __str__(self) -> str:
        return _("files of {execution_id}", execution_id=self.execution_id)

    @property
    def has_trouble(self) -> bool:
        return bool(self.problem or self.left_out or self.results_kept)


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
