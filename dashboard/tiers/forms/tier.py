"""The admins' form for a hardware tier."""

from decimal import Decimal
from typing import Any

from django import forms
from django.contrib.auth.models import Group

from dashboard.administration.forms import ID_HELP, CatalogueForm
from dashboard.shell.forms.fields import PairsField, RowsField, Section, TolerationsField
from dashboard.shell.viewmodels.format import price_number
from dashboard.workspaces.viewmodels.shutdown import LIMIT_LABELS, LIMIT_UNITS
from grid.configuration import WARM_PLACES, value_of
from grid.core.translation import gettext as _
from grid.models import HardwareTier
from grid.models.environment import Framework, Kind
from grid.tiers.warmhours import DAY_NAMES

_NAMED = {"autocomplete": "off", "spellcheck": "false"}
_LAYOUT = (
    Section(_("What it is"), _("Shown to people when they choose."), ("id", "name", "cost_per_hour", "description")),
    Section(
        _("Machine"),
        _("What an execution requests from its node, and the most that it may use."),
        (
            *("node_pool", "cores", "cores_limit", "memory", "memory_limit", "shared_memory"),
            *("ephemeral_storage", "gpus", "gpu_resource"),
        ),
    ),
    Section(
        _("Availability"),
        _("Who may use it, for which kinds, and how many at once."),
        ("is_visible", "is_default", "maximum_simultaneous", "groups", "kinds"),
    ),
    Section(
        _("Shut-down"),
        _("When workspaces and apps on it are stopped by themselves. Empty: as the central configuration says."),
        ("idle_minutes", "lifetime_hours"),
    ),
    Section(
        _("Warm-up hours"),
        _(
            "When nodes are kept ready for it, so that launches start at once. Any launch may take the place of a placeholder."
        ),
        ("warm_places", "warm_from", "warm_until", "warm_zone", "warm_days"),
        is_closed=True,
    ),
    Section(
        _("Kubernetes details"),
        _("Tolerations, labels and annotations of the pods."),
        ("tolerations", "extra_labels", "extra_annotations"),
        is_closed=True,
    ),
)


class TierForm(CatalogueForm):
    """The form of a tier; it checks the node pool against the cluster's pools when they are known (`pools` is not None)."""

    layout = _LAYOUT
    units = {"cost_per_hour": _("per hour"), "cores": _("cores"), "cores_limit": _("cores"), **LIMIT_UNITS}
    kinds = forms.MultipleChoiceField(
        label=_("Kinds"),
        choices=[*Kind.choices, *((name.value, _("{framework} clusters", framework=name.label)) for name in Framework)],
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Kinds that may run on it; choose none to allow all. Cluster covers every framework."),
    )
    groups = RowsField(
        Group.objects.order_by("name"),
        label=_("Groups"),
        help_text=_("Groups that may use it; choose none to allow everybody."),
    )
    warm_days = forms.MultipleChoiceField(
        label=_("Days"),
        choices=list(DAY_NAMES.items()),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("The days on which the hours begin."),
    )
    tolerations = TolerationsField(
        label=_("Tolerations"),
        required=False,
        help_text=_("One per line, as kubectl writes taints: nvidia.com/gpu=present:NoSchedule"),
    )
    extra_labels = PairsField(
        label=_("Extra labels"), kind="label", required=False, help_text=_("One name=value per line.")
    )
    extra_annotations = PairsField(
        label=_("Extra annotations"), kind="annotation", required=False, help_text=_("One name=value per line.")
    )

    class Meta:
        model = HardwareTier
        fields = tuple(name for section in _LAYOUT for name in section.fields)
        labels = {
            "name": _("Name"),
            "description": _("Description"),
            "node_pool": _("Node pool"),
            "cores": _("Cores"),
            "memory": _("Memory"),
            "shared_memory": _("Shared memory"),
            "ephemeral_storage": _("Ephemeral storage"),
            "id": "Id",
            "cores_limit": _("Core limit"),
            "memory_limit": _("Memory limit"),
            "gpus": _("GPUs"),
            "gpu_resource": _("GPU resource"),
            "cost_per_hour": _("Price"),
            "is_default": _("Chosen by default"),
            "is_visible": _("Shown in the launch form"),
            "maximum_simultaneous": _("Executions at once"),
            **LIMIT_LABELS,
            "warm_places": _("Warm places"),
            "warm_from": _("From"),
            "warm_until": _("Until"),
            "warm_zone": _("Time zone"),
        }
        help_texts = {
            "id": ID_HELP,
            "node_pool": _("The pool whose nodes run it."),
            "cores": _("For example 2, or 500m for half a core."),
            "cores_limit": _("Leave empty for the same as the request."),
            "memory": _("For example 4Gi or 512Mi."),
            "memory_limit": _("Leave empty for the same as the request, which is recommended."),
            "shared_memory": _("Size of /dev/shm if 64 MB is not enough, for example 1Gi. It counts as memory."),
            "ephemeral_storage": _(
                "How much it may write to the node's disk before it is evicted: temporary files, logs, "
                "scratch space. Files in the project and in HOME do not count."
            ),
            "gpus": _("Whole GPUs; 0 for none."),
            "gpu_resource": _("Kubernetes resource name, e.g. nvidia.com/gpu."),
            "cost_per_hour": _("In your currency; 0 is shown as free."),
            "is_default": _("Only one tier can be the default."),
            "is_visible": _("When hidden, running executions keep it."),
            "maximum_simultaneous": _("Of all people together; leave empty for no limit."),
            "idle_minutes": _("0 never stops an idle execution on it."),
            "lifetime_hours": _("0 for no maximum lifetime."),
            "warm_places": _("How many placeholder pods keep room ready on the pool’s nodes. Leave empty for none."),
            "warm_from": _("Such as 08:00."),
            "warm_until": _("Such as 18:00. A time that is not later is one of the next day."),
            "warm_zone": _("Such as Europe/Berlin. Leave empty for UTC."),
        }
        widgets = {
            "node_pool": forms.TextInput(attrs={"list": "node-pools", **_NAMED}),
            "cost_per_hour": forms.TextInput(attrs={"inputmode": "decimal"}),
            **dict.fromkeys(("warm_from", "warm_until"), forms.TextInput(attrs={"type": "time"})),
            "warm_zone": forms.TextInput(attrs=_NAMED),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance._state.adding:
            self.initial["cost_per_hour"] = price_number(self.instance.cost_per_hour)

    def clean_cost_per_hour(self) -> Decimal:
        """Round the price to the database's decimal places, so that saving the same price is no change."""
        price: Decimal = self.cleaned_data["cost_per_hour"]
        return price.quantize(Decimal("0.0001"))

    def clean_node_pool(self) -> str:
        pool: str = self.cleaned_data["node_pool"]
        if self.pools is not None and pool not in self.pools:
            problem = _("There is no node pool “{pool}” in the cluster. It has: {known}.")
            raise forms.ValidationError(problem.format(pool=pool, known=", ".join(sorted(self.pools)) or _("none")))
        return pool

    def clean_warm_places(self) -> int | None:
        places: int | None = self.cleaned_data["warm_places"]
        if places and "warm_places" in self.changed_data and places > (most := value_of(WARM_PLACES)):
            allowed = _("The central configuration allows none: “{setting}”.")
            if most:
                allowed = _("The central configuration allows at most {most} of all tiers together: “{setting}”.")
            raise forms.ValidationError(allowed.format(most=most, setting=WARM_PLACES.title))
        return places
