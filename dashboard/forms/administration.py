"""Forms for what admins edit: hardware tiers, environments, projects, settings."""

from collections.abc import Collection
from typing import Any

from django import forms
from django.contrib.auth.models import Group, User

from dashboard.forms.fields import LinesField, PairsField, TolerationsField
from grid.models import Environment, HardwareTier, Project
from grid.models.environment import Kind

FRAMEWORKS = (("dask", "Dask"), ("ray", "Ray"), ("spark", "Spark"))


class CatalogueForm(forms.ModelForm):  # type: ignore[type-arg]
    """Base: the id is chosen once, because names of Kubernetes objects and links are made from it."""

    def __init__(self, *args: Any, pools: Collection[str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.pools = pools
        if self.instance.pk and not self.instance._state.adding:
            del self.fields["id"]

    def validate_constraints(self) -> None:
        """Left to the database: who saves a new default tier takes the mark off the old one in the same transaction."""


class TierForm(CatalogueForm):
    """Checks the pool against those that the cluster has, when that is known (`pools` is not None)."""

    kinds = forms.MultipleChoiceField(
        choices=[*Kind.choices, *FRAMEWORKS],
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="What may run on it; nothing chosen means everything.",
    )
    groups = forms.ModelMultipleChoiceField(
        queryset=Group.objects.order_by("name"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="Who may use it; nobody chosen means everybody.",
    )
    tolerations = TolerationsField(
        required=False, help_text="One a line, as kubectl writes taints: nvidia.com/gpu=present:NoSchedule"
    )
    extra_labels = PairsField(kind="label", required=False, help_text="One name=value a line.")
    extra_annotations = PairsField(kind="annotation", required=False, help_text="One name=value a line.")

    class Meta:
        model = HardwareTier
        fields = (
            "id",
            "name",
            "description",
            "node_pool",
            "cores",
            "cores_limit",
            "memory",
            "memory_limit",
            "gpus",
            "gpu_resource",
            "shared_memory",
            "cost_per_hour",
            "is_default",
            "is_visible",
            "maximum_simultaneous",
            "groups",
            "kinds",
            "spot_allowed",
            "tolerations",
            "extra_labels",
            "extra_annotations",
        )
        labels = {
            "id": "Id",
            "cores_limit": "Cores limit",
            "gpus": "GPUs",
            "gpu_resource": "GPU resource",
            "cost_per_hour": "Price per hour",
            "is_default": "Chosen by default",
            "is_visible": "Shown in the launch form",
            "maximum_simultaneous": "Executions at once",
            "spot_allowed": "May run on spot nodes",
        }
        help_texts = {
            "cores": "Requested CPU, for example 500m or 2.",
            "cores_limit": "Empty: the same as the request.",
            "memory": "Requested memory, for example 512Mi or 4Gi.",
            "memory_limit": "Empty: the same as the request, which is recommended.",
        }
        widgets = {"node_pool": forms.TextInput(attrs={"list": "node-pools"})}

    def clean_node_pool(self) -> str:
        pool: str = self.cleaned_data["node_pool"]
        if self.pools is not None and pool not in self.pools:
            known = ", ".join(sorted(self.pools)) or "none"
            raise forms.ValidationError(f"There is no node pool “{pool}” in the cluster. It has: {known}.")
        return pool


class EnvironmentForm(CatalogueForm):
    """A command has one argument a line, so that nothing has to be quoted."""

    command = LinesField(
        required=False,
        rows=8,
        help_text="One argument a line; {port} and {base_url} are filled in, and $(NAME) is a variable. "
        "Empty: what the image runs by itself.",
    )
    variables = PairsField(kind="variable", required=False, help_text="Environment variables, one NAME=value a line.")

    class Meta:
        model = Environment
        fields = ("id", "name", "description", "kind", "image", "command", "port", "variables", "is_visible")
        labels = {"id": "Id", "is_visible": "Shown in the launch form"}


class ProjectForm(CatalogueForm):
    members = forms.ModelMultipleChoiceField(
        queryset=User.objects.filter(is_active=True).order_by("username"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="Members see the project's executions and launch their own in it.",
    )

    class Meta:
        model = Project
        fields = ("id", "name", "description", "owner", "members", "volume_size")
        labels = {"id": "Id", "volume_size": "Volume size"}
        help_texts = {"volume_size": "Asked of the cluster when the project's files are first needed."}


class SettingForm(forms.Form):
    """One key and its new value, both as typed."""

    key = forms.CharField(max_length=200, widget=forms.TextInput(attrs={"list": "setting-keys", "spellcheck": "false"}))
    value = forms.CharField(max_length=100, widget=forms.TextInput(attrs={"inputmode": "numeric"}))
