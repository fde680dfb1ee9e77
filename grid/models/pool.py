"""What is kept of the node pools: their last day, a row a minute, for charts, and what their nodes looked like."""

from django.db import models

from grid.core.translation import gettext as _

ALL_POOLS = "*"  # no label has this value


class PoolSample(models.Model):
    """A node pool in one minute, written by the web process that comes first and kept for a day. Nothing is decided by it. The time is a
    number of minutes, so that SQL groups by it alike on both databases. Executions count in the pool of their pods, a cluster in its
    workers'. `pool` is "" for nodes without a pool, and `ALL_POOLS` for all together, so that each chart reads as few rows."""

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
        return _("{pool} in minute {minute}", pool=self.pool or _("no pool"), minute=self.minute)


class PoolTemplate(models.Model):
    """What a pool's nodes looked like when they were last seen, so that something is known of a pool that is scaled to zero.

    Written with the samples (`grid.tiers.pooltemplates`); `grid.diagnosis.nodeshapes` says what the JSON is. People are told what
    follows from it; no launch is refused by it, because the pool's next node may be another.
    """

    pool = models.CharField(max_length=63, unique=True)
    node = models.JSONField(help_text="Labels, taints and allocatable.")
    own = models.JSONField(help_text="What the node's own pods take of it, by resource.")
    seen_at = models.DateTimeField(help_text="To an hour.")

    class Meta:
        ordering = ["pool"]

    def __str__(self) -> str:
        return self.pool
