"""How long executions took to start: each start, and the starts of each day added up, both kept for good."""

from django.db import models

from grid.core.translation import gettext as _
from grid.models.environment import Environment, Framework, Kind
from grid.models.execution import Execution
from grid.models.tier import HardwareTier


class StartUp(models.Model):
    """The start of one execution, from its request to the moment at which it ran, or ended before. Written once, with that change of state.

    Times are seconds, and the phases (`grid.diagnosis.startup`) add up to `total`. One is null when it is not known, 0 when it was not
    needed; those that could not be told apart are in `merged` together. For a cluster they are its head's, and so are the tier and the
    pool. Rows are kept when their execution is deleted, so the key is no constraint; nothing here says whose execution it was.
    """

    execution = models.OneToOneField(
        Execution, on_delete=models.DO_NOTHING, primary_key=True, related_name="start_up", db_constraint=False
    )
    at = models.DateTimeField(help_text="When it ran, or ended before.")
    ran = models.BooleanField(help_text="False when it ended before it ran: the last phase is then cut off.")
    reason = models.CharField(max_length=60, blank=True, help_text='Code of the end before it ran; "" when it ran.')
    kind = models.CharField(max_length=20, choices=Kind.choices)
    framework = models.CharField(max_length=20, choices=Framework.choices, blank=True)
    tier = models.ForeignKey(HardwareTier, on_delete=models.PROTECT, related_name="+", db_index=False)
    environment = models.ForeignKey(Environment, on_delete=models.PROTECT, related_name="+", db_index=False)
    node_pool = models.CharField(max_length=63)
    image = models.CharField(max_length=255)

    total = models.FloatField()
    queued = models.FloatField(null=True, help_text="From the request until slots were reserved.")
    cluster_wait = models.FloatField(
        null=True, help_text="Of a job with a cluster: until that ran and its pod existed."
    )
    creating = models.FloatField(null=True, help_text="Until its pod existed.")
    node_wait = models.FloatField(null=True, help_text="Until a node had room for it.")
    scheduling = models.FloatField(null=True, help_text="Until it was bound to the node.")
    volumes = models.FloatField(null=True, help_text="Volumes, network and sandbox, until its image was looked for.")
    pulling = models.FloatField(null=True, help_text="Of all its images; 0 when they were on the node.")
    setup = models.FloatField(null=True, help_text="Init containers; 0 without any.")
    starting = models.FloatField(null=True, help_text="Until its program was started.")
    answering = models.FloatField(null=True, help_text="Until its program answered.")
    first_worker = models.FloatField(null=True, help_text="Of a cluster: until a worker was ready.")
    merged = models.FloatField(null=True, help_text="Of phases that could not be told apart.")
    merged_phases = models.CharField(max_length=120, blank=True, help_text="Which ones, separated by spaces.")

    node_started = models.BooleanField(null=True, help_text="Whether its node was created after its pod.")
    node_decision = models.FloatField(null=True, help_text="Of `node_wait`: until a new node was requested.")
    node_creation = models.FloatField(null=True, help_text="Of `node_wait`: until that node had joined.")
    node_joining = models.FloatField(null=True, help_text="Of `node_wait`: until that node was ready.")
    image_cached = models.BooleanField(null=True, help_text="Whether all its images were on the node already.")
    image_bytes = models.PositiveBigIntegerField(null=True, help_text="Size of the images that were pulled.")

    class Meta:
        ordering = ["-at"]
        # The newest starts are read, never all of them; those of longer are added up (`StartDay`).
        indexes = [
            models.Index(fields=["at"], name="start_ups"),
            models.Index(fields=["node_pool", "at"], name="start_ups_by_pool"),
            models.Index(fields=["tier", "environment", "at"], name="start_ups_of_a_choice"),
        ]

    def __str__(self) -> str:
        return _("{execution_id} in {total:.1f} s", execution_id=self.execution_id, total=self.total)


class StartDay(models.Model):
    """The starts of one day (UTC) that ran, in one group: those of a tier, an environment, a node pool, an image, or all. Written in the
    transaction that writes the `StartUp`. Nothing here says whose executions they were."""

    class Grouping(models.TextChoices):
        """What the starts of a group have in common; of ALL `group` is ""."""

        ALL = "all"
        TIER = "tier"
        ENVIRONMENT = "environment"
        POOL = "pool"
        IMAGE = "image"

    day = models.DateField()
    grouping = models.CharField(max_length=12, choices=Grouping.choices)
    group = models.CharField(max_length=255, blank=True)
    starts = models.PositiveIntegerField(default=0)
    sums = models.TextField(default="{}", help_text="JSON of `grid.starts.startdays.StartSums`.")

    class Meta:
        ordering = ["day", "id"]
        constraints = [models.UniqueConstraint(fields=["grouping", "group", "day"], name="one_start_day_of_a_group")]
        # The starts of each group of a time, from the index alone.
        indexes = [models.Index(fields=["grouping", "day", "group", "starts"], name="start_days")]

    def __str__(self) -> str:
        return _("{starts} starts of {group} on {day}", starts=self.starts, group=self.group or _("all"), day=self.day)
