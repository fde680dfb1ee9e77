"""The starts of each day, added up and kept for good, so that percentiles of any time are read without the starts themselves."""

from django.db import models

from grid.core.translation import gettext as _


class StartDay(models.Model):
    """The starts of one day (UTC) that ran, in one group: those of a tier, an environment, a node pool, an image, or all.

    Written in the transaction that writes the `StartUp`. Nothing here says whose executions they were.
    """

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
