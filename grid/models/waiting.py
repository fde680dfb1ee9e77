"""The queue: what an operator decided about its order or takes over by hand, who was admitted last, and how long each wait was expected
to be and was."""

from datetime import datetime

from django.conf import settings
from django.db import models
from django.db.models import CheckConstraint, Index, Q, UniqueConstraint

from grid.core.translation import gettext as _
from grid.models.execution import Execution
from grid.models.tier import HardwareTier


class QueueOrder(models.Model):
    """What an operator decided about one waiting execution; it goes when the execution leaves the queue. A cluster that waits with a
    workspace or job has none of its own. `rank` puts it in front of all that have none; a smaller rank is earlier. `back_at` puts it behind
    all that were requested by then, `held_at` keeps it until it is released. The wait is counted anew from `released_at`: nothing ends for
    having been held."""

    execution = models.OneToOneField(Execution, on_delete=models.CASCADE, primary_key=True, related_name="queue_order")
    rank = models.IntegerField(null=True)
    back_at = models.DateTimeField(null=True)
    held_at = models.DateTimeField(null=True)
    held_by = models.CharField(max_length=150, blank=True)
    held_reason = models.CharField(max_length=200, blank=True)
    released_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            CheckConstraint(condition=Q(rank__isnull=True) | Q(back_at__isnull=True), name="front_or_back_of_the_queue")
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
            Index(
                fields=["ran_at"], condition=Q(ran_at__isnull=False, expected__isnull=False), name="outcomes_of_waits"
            ),
            Index(fields=["made_at"], name="predictions_by_age"),
            Index(fields=["execution"], condition=Q(ran_at__isnull=True), name="open_predictions"),
        ]
        constraints = [UniqueConstraint(fields=["execution", "stage"], name="one_prediction_a_stage")]

    def __str__(self) -> str:
        return _("{expected} s for {execution_id} when {stage}").format(
            expected=self.expected, execution_id=self.execution_id, stage=self.stage
        )


class LastAdmission(models.Model):
    """The time at which a user was last admitted on a tier. A user without a row was never admitted there, and goes first."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    tier = models.ForeignKey(HardwareTier, on_delete=models.CASCADE, related_name="+")
    at = models.DateTimeField()

    class Meta:
        constraints = [UniqueConstraint(fields=["user", "tier"], name="one_last_admission_per_user_and_tier")]

    def __str__(self) -> str:
        return _("user {user_id} on {tier_id} at {at}", user_id=self.user_id, tier_id=self.tier_id, at=self.at)


class QueueTakeoverQuerySet(models.QuerySet["QueueTakeover"]):
    def in_force(self, now: datetime) -> "QueueTakeoverQuerySet":
        return self.filter(from_at__lte=now, until_at__gt=now)


class QueueTakeover(models.Model):
    """A time, until `until_at`, in which only what operators put in front starts; giving the queue back earlier sets it to now."""

    actor = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    actor_name = models.CharField(max_length=150, help_text="Kept when the account goes.")
    reason = models.CharField(max_length=200)
    from_at = models.DateTimeField()
    until_at = models.DateTimeField(db_index=True)

    objects = QueueTakeoverQuerySet.as_manager()

    def __str__(self) -> str:
        return _("queue taken over by {actor_name}", actor_name=self.actor_name)
