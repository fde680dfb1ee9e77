"""Waiting: what an operator decided about the order of the queue, and how long each wait was expected to be and was."""

from django.db import models

from grid.core.translation import gettext as _
from grid.models.execution import Execution


class QueueOrder(models.Model):
    """What an operator decided about one waiting execution; it goes when the execution leaves the queue. A cluster that waits with a
    workspace or job has none of its own.

    `rank` puts it in front of all that have none; a smaller rank is earlier. `back_at` puts it behind all that were requested by then.
    `held_at` keeps it from starting until it is released. The wait is counted anew from `released_at`, so that nothing ends for having
    been held.
    """

    execution = models.OneToOneField(Execution, on_delete=models.CASCADE, primary_key=True, related_name="queue_order")
    rank = models.IntegerField(null=True)
    back_at = models.DateTimeField(null=True)
    held_at = models.DateTimeField(null=True)
    held_by = models.CharField(max_length=150, blank=True)
    held_reason = models.CharField(max_length=200, blank=True)
    released_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(rank__isnull=True) | models.Q(back_at__isnull=True),
                name="front_or_back_of_the_queue",
            )
        ]

    def __str__(self) -> str:
        return _("order of {execution_id}", execution_id=self.execution_id)


class WaitPrediction(models.Model):
    """How long an execution was expected to take until it runs, in seconds from `made_at`, and how long it took. Each is made once at
    a stage, and never changed; `expected` is null when nothing was known. `actual` is null until it runs."""

    class Stage(models.TextChoices):
        QUEUED = "queued", _("Queued")
        ADMITTED = "admitted", _("Admitted")
        ROOM = "room", _("Waiting for room")
        PREPARING = "preparing", _("Preparing")

    execution = models.ForeignKey(Execution, on_delete=models.CASCADE, related_name="wait_predictions")
    stage = models.CharField(max_length=10, choices=Stage.choices)
    made_at = models.DateTimeField()
    expected = models.FloatField(null=True)
    low = models.FloatField(null=True)
    high = models.FloatField(null=True, help_text="Null when it may take for ever.")
    actual = models.FloatField(null=True)
    ran_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["ran_at"],
                condition=models.Q(ran_at__isnull=False, expected__isnull=False),
                name="outcomes_of_waits",
            ),
            models.Index(fields=["made_at"], name="predictions_by_age"),
            models.Index(fields=["execution"], condition=models.Q(ran_at__isnull=True), name="open_predictions"),
        ]
        constraints = [models.UniqueConstraint(fields=["execution", "stage"], name="one_prediction_a_stage")]

    def __str__(self) -> str:
        return _(
            "{expected} s for {execution_id} when {stage}",
            expected=self.expected,
            execution_id=self.execution_id,
            stage=self.stage,
        )
