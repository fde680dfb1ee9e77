"""Hardware tiers: named pod sizes, each bound to a node pool, that a data scientist chooses at launch; and rush plans, which keep many
places of a tier warm at one time."""

from decimal import Decimal
from typing import Any

from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone

from grid.core.quantity import parse_quantity
from grid.core.translation import gettext as _
from grid.models.dataplane import LOCAL, DataPlane
from grid.models.environment import Environment
from grid.models.fields import (
    LONGEST_IDLE_MINUTES,
    LONGEST_LIFETIME_HOURS,
    Named,
    validate_device_resource,
    validate_quantity,
    validate_slug_name,
    validate_time,
    validate_time_zone,
)

_OF_WARM_PLACES = {
    "warm_days": _("Choose the days of its warm-up hours."),
    "warm_from": _("Say when its warm-up hours begin."),
    "warm_until": _("Say when its warm-up hours end."),
}


class HardwareTier(Named):
    """A named size. Limits equal requests unless given; an empty limit means "the same as the request"."""

    id = models.CharField(primary_key=True, max_length=40, validators=[validate_slug_name])
    name = models.CharField(max_length=80)
    description = models.CharField(max_length=300, blank=True)
    data_plane = models.ForeignKey(DataPlane, on_delete=models.PROTECT, related_name="+", default=LOCAL)
    node_pool = models.CharField(max_length=63, help_text=_("Value of the node-pool label of the nodes to run on."))
    cores = models.CharField(max_length=20, validators=[validate_quantity])
    cores_limit = models.CharField(max_length=20, blank=True, validators=[validate_quantity])
    memory = models.CharField(max_length=20, validators=[validate_quantity])
    memory_limit = models.CharField(max_length=20, blank=True, validators=[validate_quantity])
    gpus = models.PositiveSmallIntegerField(default=0)
    gpu_resource = models.CharField(max_length=100, default="nvidia.com/gpu", validators=[validate_device_resource])
    shared_memory = models.CharField(
        max_length=20,
        blank=True,
        validators=[validate_quantity],
        help_text=_("Size of /dev/shm when it may exceed 64 MB; counted in the memory limit."),
    )
    ephemeral_storage = models.CharField(
        max_length=20,
        default="10Gi",
        validators=[validate_quantity],
        help_text=_(
            "What an execution may write to its node's disk: temporary files, logs, scratch space without a volume."
        ),
    )
    cost_per_hour = models.DecimalField(
        max_digits=10, decimal_places=4, default=Decimal(0), validators=[MinValueValidator(Decimal(0))]
    )
    is_default = models.BooleanField(default=False)
    is_visible = models.BooleanField(default=True)
    is_archived = models.BooleanField(default=False)
    groups = models.ManyToManyField(
        Group, blank=True, help_text=_("Groups that may use it; choose none to allow everybody.")
    )
    kinds = models.JSONField(default=list, blank=True, help_text=_("Kinds and frameworks allowed; empty means all."))
    maximum_simultaneous = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("Executions at once; empty means no limit."),
    )
    idle_minutes = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MaxValueValidator(LONGEST_IDLE_MINUTES)],
        help_text=_(
            "When idle for this long, a workspace or app on it is stopped; 0 for never, empty means as configured."
        ),
    )
    lifetime_hours = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MaxValueValidator(LONGEST_LIFETIME_HOURS)],
        help_text=_("Maximum lifetime of a workspace or app on it; 0 for none, empty means as configured."),
    )
    warm_places = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MaxValueValidator(1000)],
        help_text=_("Placeholder pods that keep room ready for it in its warm-up hours; empty means none."),
    )
    warm_days = models.JSONField(default=list, blank=True, help_text=_("Days of the week on which those hours begin."))
    warm_from = models.CharField(max_length=5, blank=True, validators=[validate_time], help_text=_("Such as 08:00."))
    warm_until = models.CharField(max_length=5, blank=True, validators=[validate_time], help_text=_("Such as 18:00."))
    warm_zone = models.CharField(
        max_length=60, blank=True, validators=[validate_time_zone], help_text=_("IANA name; empty means UTC.")
    )
    spot_allowed = models.BooleanField(default=False)
    tolerations = models.JSONField(default=list, blank=True)
    extra_labels = models.JSONField(default=dict, blank=True)
    extra_annotations = models.JSONField(default=dict, blank=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["cost_per_hour", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["is_default"], condition=models.Q(is_default=True, is_archived=False), name="one_default_tier"
            )
        ]

    @property
    def effective_cores_limit(self) -> str:
        return self.cores_limit or self.cores

    @property
    def effective_memory_limit(self) -> str:
        return self.memory_limit or self.memory

    def clean(self) -> None:
        """Raise ValidationError for rules between fields; each error is at the field that has to change."""
        errors: dict[str, Any] = {}
        for request, limit in (("cores", "cores_limit"), ("memory", "memory_limit")):
            if _below(getattr(self, limit), getattr(self, request)):
                errors[limit] = _("The limit is below the request of {amount}.", amount=getattr(self, request))
        if _below(self.effective_memory_limit, self.shared_memory):
            errors["shared_memory"] = _(
                "Shared memory counts towards the memory limit of {amount}.", amount=self.effective_memory_limit
            )
        if self.is_default and self.is_archived:
            errors["is_default"] = _("An archived tier cannot be the default.")
        if self.warm_places:
            errors |= {name: problem for name, problem in _OF_WARM_PLACES.items() if not getattr(self, name)}
        if errors:
            raise ValidationError(errors)


def _below(limit: str, request: str) -> bool:
    if not limit or not request:
        return False
    try:
        return parse_quantity(limit) < parse_quantity(request)
    except ValueError:
        return False  # the field's own validator says what is wrong with it


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
