"""The last day of each node pool, a row a minute, for charts. Nothing is decided by it."""

from django.db import models

ALL_POOLS = "*"  # no label has this value


class PoolSample(models.Model):
    """A node pool in one minute, written by the web process that comes first (`grid.runtime.poolsamples`) and kept for a day.

    The time is a number of minutes, so that SQL groups by it alike on both databases. Executions count in the pool of their pods, a
    cluster in its workers'. `pool` is "" for nodes without a pool, and `ALL_POOLS` for all of them together: a chart of the whole cluster
    reads as few rows as one of a pool.
    """

    pool = models.CharField(max_length=63, blank=True)
    minute = models.PositiveIntegerField(help_text="Since 1970, UTC.")
    nodes = models.PositiveIntegerField()
    nodes_ready = models.PositiveIntegerField()
    requested_millicores = models.PositiveBigIntegerField()
    allocatable_millicores = models.PositiveBigIntegerField()
    used_millicores = models.PositiveBigIntegerField(null=True, help_text="Null while no usage is measured.")
    requested_mebibytes = models.PositiveBigIntegerField(help_text="Of memory.")
    allocatable_mebibytes = models.PositiveBigIntegerField()
    used_mebibytes = models.PositiveBigIntegerField(null=True)
    requested_gpus = models.PositiveIntegerField()
    allocatable_gpus = models.PositiveIntegerField()
    pods_waiting = models.PositiveIntegerField(help_text="For a node of this pool.")
    executions_running = models.PositiveIntegerField()
    executions_waiting = models.PositiveIntegerField(help_text="Queued, or on their way to running.")

    class Meta:
        ordering = ["minute", "pool"]
        indexes = [models.Index(fields=["minute"], name="pool_samples_by_age")]
        constraints = [models.UniqueConstraint(fields=["pool", "minute"], name="one_pool_sample_a_minute")]

    def __str__(self) -> str:
        return f"{self.pool or 'no pool'} in minute {self.minute}"
