"""Rush plans: warm places of a tier for many launches at one time, with their image on the nodes."""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone

from grid.core.translation import gettext as _
from grid.models.environment import Environment
from grid.models.fields import validate_time, validate_time_zone
from grid.models.tier import HardwareTier

MOST_PLACES = 1000
MOST_EARLY_MINUTES = 12 * 60


class RushPlan(models.Model):
    """So many places of a tier that are warm at `ready`, on some days of each week or on one day, until `until`. Its id is made of all
    that it asks for, so that it exists once, however often it is sent."""

    id = models.CharField(primary_key=True, max_length=16)
    tier = models.ForeignKey(HardwareTier, on_delete=models.PROTECT, related_name="+")
    environment = models.ForeignKey(
        Environment, on_delete=models.PROTECT, related_name="+", help_text="Its image is pulled onto the nodes."
    )
    places = models.PositiveIntegerField(validators=[MinValueValidator(1), MaxValueValidator(MOST_PLACES)])
    days = models.JSONField(default=list, blank=True, help_text="Days of the week; empty for one day alone.")
    on = models.DateField(null=True, blank=True, help_text="The one day.")
    ready = models.CharField(max_length=5, validators=[validate_time])
    until = models.CharField(max_length=5, validators=[validate_time])
    zone = models.CharField(max_length=60, validators=[validate_time_zone], help_text="IANA name.")
    early_minutes = models.PositiveSmallIntegerField(
        default=0,
        validators=[MaxValueValidator(MOST_EARLY_MINUTES)],
        help_text="How long before `ready` its placeholders come: nodes and images take that long.",
    )
    made_by = models.CharField(max_length=150, editable=False, help_text="Kept when the account goes.")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["ready", "pk"]
        constraints = [models.CheckConstraint(condition=models.Q(places__gte=1), name="rush_plan_has_places")]

    def __str__(self) -> str:
        return _("{places} {tier} at {ready}", places=self.places, tier=self.tier, ready=self.ready)
