"""The admins' forms for hardware tiers, environments and projects."""

from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Any, ClassVar

from django import forms
from django.contrib.auth.models import Group
from django.db.models import Q, QuerySet

from dashboard.forms.fields import FrameworksField, LinesField, PairsField, RowsField, TolerationsField
from dashboard.forms.layout import LaidOutSection, Section, lay_out
from dashboard.forms.projectfiles import ProjectFilesMixin
from dashboard.forms.shutdown import LIMIT_LABELS, LIMIT_UNITS, PROJECT_LIMIT_HELP
from dashboard.forms.warm import WARM_FIELDS, WARM_HELP, WARM_LABELS, WARM_WIDGETS, WarmFieldsMixin
from dashboard.viewmodels.prices import price_number
from grid.models import Environment, HardwareTier, Membership, Project, User
from grid.models.environment import Framework, Kind

_PRICE_PLACES = Decimal("0.0001")
_ID_HELP = "Lower-case letters, digits and dashes; it never changes."


class CatalogueForm(forms.ModelForm):  # type: ignore[type-arg]
    """The base of these forms. An id is chosen once, because names of Kubernetes objects and URLs contain it."""

    layout: ClassVar[tuple[Section, ...]] = ()
    units: ClassVar[Mapping[str, str]] = {}
    wide: ClassVar[Collection[str]] = ("description",)

    def __init__(self, *args: Any, pools: Collection[str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.pools = pools
        if self.instance.pk and not self.instance._state.adding:
            del self.fields["id"]

    def sections(self) -> list[LaidOutSection]:
        return lay_out(self, self.layout, units=self.units, wide=self.wide)

    def save(self, commit: bool = True) -> Any:
        """Save the object. Raise IntegrityError when a new object's id was taken meanwhile; Django alone would overwrite that object."""
        if not commit:
            raise NotImplementedError("what is chosen of other tables belongs to an object that is stored")
        instance = super().save(commit=False)
        instance.save(force_insert=instance._state.adding)
        self.save_m2m()
        return instance

    def consequence(self) -> str:
        """Return a sentence about what saving changed beyond the fields; "" without any such change."""
        return ""

    def validate_constraints(self) -> None:
        """Leave the constraints to the database: saving a new default tier unmarks the old one in the same transaction."""


class TierForm(WarmFieldsMixin, CatalogueForm):
    """The form of a tier; it checks the node pool against the cluster's pools when they are known (`pools` is not None)."""

    layout = (
        Section("What it is", "Shown to people when they choose.", ("id", "name", "cost_per_hour", "description")),
        Section(
            "Machine",
            "What an execution requests from its node, and the most that it may use.",
            (
                *("node_pool", "cores", "cores_limit", "memory", "memory_limit", "shared_memory"),
                *("ephemeral_storage", "gpus", "gpu_resource"),
            ),
        ),
        Section(
            "Availability",
            "Who may use it, for which kinds, and how many at once.",
            ("is_visible", "is_default", "maximum_simultaneous", "groups", "kinds"),
        ),
        Section(
            "Shut-down",
            "When workspaces and apps on it are stopped by themselves. Empty: as the central configuration says.",
            ("idle_minutes", "lifetime_hours"),
        ),
        Section(
            "Warm-up hours",
            "When nodes are kept ready for it, so that launches start at once. Any launch may take the place of a placeholder.",
            WARM_FIELDS,
            is_closed=True,
        ),
        Section(
            "Kubernetes details",
            "Spot nodes, tolerations, labels and annotations of the pods.",
            ("spot_allowed", "tolerations", "extra_labels", "extra_annotations"),
            is_closed=True,
        ),
    )
    units = {
        "cost_per_hour": "per hour",
        "cores": "cores",
        "cores_limit": "cores",
        **LIMIT_UNITS,
    }
    kinds = forms.MultipleChoiceField(
        choices=[*Kind.choices, *((name.value, f"{name.label} clusters") for name in Framework)],
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="Kinds that may run on it; choose none to allow all. Cluster covers every framework.",
    )
    groups = RowsField(
        Group.objects.order_by("name"), help_text="Groups that may use it; choose none to allow everybody."
    )
    tolerations = TolerationsField(
        required=False, help_text="One per line, as kubectl writes taints: nvidia.com/gpu=present:NoSchedule"
    )
    extra_labels = PairsField(kind="label", required=False, help_text="One name=value per line.")
    extra_annotations = PairsField(kind="annotation", required=False, help_text="One name=value per line.")

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
            "ephemeral_storage",
            "cost_per_hour",
            "is_default",
            "is_visible",
            "maximum_simultaneous",
            "groups",
            "kinds",
            "idle_minutes",
            "lifetime_hours",
            *WARM_FIELDS,
            "spot_allowed",
            "tolerations",
            "extra_labels",
            "extra_annotations",
        )
        labels = {
            "id": "Id",
            "cores_limit": "Core limit",
            "memory_limit": "Memory limit",
            "gpus": "GPUs",
            "gpu_resource": "GPU resource",
            "cost_per_hour": "Price",
            "is_default": "Chosen by default",
            "is_visible": "Shown in the launch form",
            "maximum_simultaneous": "Executions at once",
            **LIMIT_LABELS,
            **WARM_LABELS,
            "spot_allowed": "May run on spot nodes",
        }
        help_texts = {
            "id": _ID_HELP,
            "node_pool": "The pool whose nodes run it.",
            "cores": "For example 2, or 500m for half a core.",
            "cores_limit": "Leave empty for the same as the request.",
            "memory": "For example 4Gi or 512Mi.",
            "memory_limit": "Leave empty for the same as the request, which is recommended.",
            "shared_memory": "Size of /dev/shm if 64 MB is not enough, for example 1Gi. It counts as memory.",
            "ephemeral_storage": "How much it may write to the node's disk before it is evicted: temporary files, logs, "
            "scratch space. Files in the project and in HOME do not count.",
            "gpus": "Whole GPUs; 0 for none.",
            "gpu_resource": "Kubernetes resource name, e.g. nvidia.com/gpu.",
            "cost_per_hour": "In your currency; 0 is shown as free.",
            "is_default": "Only one tier can be the default.",
            "is_visible": "When hidden, running executions keep it.",
            "maximum_simultaneous": "Of all people together; leave empty for no limit.",
            "idle_minutes": "0 never stops an idle execution on it.",
            "lifetime_hours": "0 for no maximum lifetime.",
            **WARM_HELP,
            "spot_allowed": "Cheaper nodes that the cloud may reclaim at any time.",
        }
        widgets = {
            "node_pool": forms.TextInput(attrs={"list": "node-pools", "autocomplete": "off", "spellcheck": "false"}),
            "cost_per_hour": forms.TextInput(attrs={"inputmode": "decimal"}),
            **WARM_WIDGETS,
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance._state.adding:
            self.initial["cost_per_hour"] = price_number(self.instance.cost_per_hour)

    def clean_cost_per_hour(self) -> Decimal:
        """Round the price to the database's decimal places, so that saving the same price is no change."""
        price: Decimal = self.cleaned_data["cost_per_hour"]
        return price.quantize(_PRICE_PLACES)

    def clean_node_pool(self) -> str:
        pool: str = self.cleaned_data["node_pool"]
        if self.pools is not None and pool not in self.pools:
            known = ", ".join(sorted(self.pools)) or "none"
            raise forms.ValidationError(f"There is no node pool “{pool}” in the cluster. It has: {known}.")
        return pool


class EnvironmentForm(CatalogueForm):
    """The form of an environment; a command has one argument a line, so that nothing has to be quoted."""

    layout = (
        Section("What it is", "Shown to people when they choose.", ("id", "name", "description", "is_visible")),
        Section(
            "Program",
            "The image and its command.",
            (
                *("kind", "port", "image", "image_pull_secret", "command"),
                *("start_path", "readiness_path", "allows_service_workers"),
            ),
        ),
        Section(
            "Frameworks",
            "Cluster frameworks in the image, to run a cluster or to connect to an attached one.",
            ("frameworks",),
        ),
        Section("Variables", "The program's environment variables.", ("variables",)),
    )
    units = {}
    wide = ("description", "is_visible", "image", "image_pull_secret", "allows_service_workers")
    command = LinesField(
        required=False,
        rows=8,
        help_text="One argument per line. {port}, {base_url} and {project}, the folder of the project's files, are filled "
        "in, and $(NAME) is a variable. Leave empty for the image's own command. A workspace starts in HOME; a cluster's "
        "containers run what its framework needs.",
    )
    frameworks = FrameworksField(
        required=False,
        help_text="One per line with its version, such as dask 2026.8.0, ray 2.60.0 or spark 4.3.0. The launch form warns "
        "when a workspace and its cluster have different versions.",
    )
    variables = PairsField(
        kind="variable",
        required=False,
        help_text="One NAME=value per line. Values are kept in a Secret, except those that refer "
        "to another variable, such as postgres://grid:$(PASSWORD)@db; give each secret a variable of its own.",
    )

    class Meta:
        model = Environment
        fields = (
            *("id", "name", "description", "kind", "image", "image_pull_secret", "command", "port", "frameworks"),
            *("start_path", "readiness_path", "variables", "allows_service_workers", "is_visible"),
        )
        labels = {
            "id": "Id",
            "start_path": "Start path",
            "readiness_path": "Readiness path",
            "image_pull_secret": "Registry credentials",
            "allows_service_workers": "May use service workers",
            "is_visible": "Shown in the launch form",
        }
        help_texts = {
            "id": _ID_HELP,
            "image_pull_secret": "Name of a Secret in the executions' namespace, for private images. Leave empty for none.",
            "allows_service_workers": "Only for IDEs that need them, such as VS Code: a service worker answers requests "
            "in the browser instead of the program.",
            "kind": "Workspaces and apps open in the browser; a cluster runs one of the frameworks.",
            "image": "With its registry and tag, for example registry.example.org/team/lab:4.6.",
            "port": "The port that the program listens on. Workspaces and apps need one; jobs and clusters do not.",
            "start_path": "Where Open leads to, such as /lab or /?folder=/mnt/project. Leave empty for the program’s own first page.",
            "readiness_path": "Answers with a status from 200 to 399 once the program is ready, without a login, such as /api "
            "or /healthz. Leave empty when accepting connections on the port is enough.",
            "is_visible": "When hidden, running executions keep it.",
        }
        widgets = {
            "start_path": forms.TextInput(attrs={"spellcheck": "false"}),
            "readiness_path": forms.TextInput(attrs={"spellcheck": "false"}),
            "image": forms.TextInput(attrs={"spellcheck": "false"}),
            "image_pull_secret": forms.TextInput(attrs={"spellcheck": "false", "autocomplete": "off"}),
        }


def _account_name(user: User) -> str:
    return user.get_username() if user.is_active else f"{user.get_username()} (account closed)"


class ProjectForm(ProjectFilesMixin, CatalogueForm):
    layout = (
        Section("What it is", "Shown to people when they choose.", ("id", "name", "description")),
        Section(
            "Who",
            "Members see its executions and logs. The owner and contributors also launch in it and share its files.",
            ("owner", "contributors", "viewers"),
        ),
        Section("Files", "Found at /mnt/project in every execution of the project.", ("volume_size", "files")),
        Section(
            "Shut-down", "When its workspaces and apps are stopped by themselves.", ("idle_minutes", "lifetime_hours")
        ),
    )
    units = LIMIT_UNITS
    owner = forms.ModelChoiceField(User.objects.none(), help_text="Also stops and changes other members' executions.")
    contributors = RowsField(User.objects.none())
    viewers = RowsField(User.objects.none(), help_text="See everything, change nothing.")

    class Meta:
        model = Project
        fields = ("id", "name", "description", "volume_size", "files", "idle_minutes", "lifetime_hours")
        labels = {"id": "Id", "volume_size": "Volume size", **LIMIT_LABELS}
        help_texts = {
            "id": _ID_HELP,
            "volume_size": "For example 10Gi; the volume is created when the files are first used.",
            **PROJECT_LIMIT_HELP,
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        roles = {} if "id" in self.fields else dict(self.instance.memberships.values_list("user_id", "role"))
        # A member with a closed account stays in the form until removed: the account may be opened again.
        people = User.objects.filter(Q(is_active=True) | Q(pk__in=roles)).order_by("username")
        for name in ("owner", "contributors", "viewers"):
            field: Any = self.fields[name]
            field.queryset, field.label_from_instance = people, _account_name
        chosen = {role: [user for user, one in roles.items() if one == role] for role in Membership.Role.values}
        self.initial = {
            **self.initial,
            "owner": next(iter(chosen[Membership.Role.OWNER]), None),
            "contributors": chosen[Membership.Role.CONTRIBUTOR],
            "viewers": chosen[Membership.Role.VIEWER],
        }

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        viewers = set(data.get("viewers") or ())
        if both := set(data.get("contributors") or ()) & viewers:
            names = ", ".join(sorted(user.get_username() for user in both))
            self.add_error("viewers", f"Choose one role for {names}: contributor or viewer.")
        if data.get("owner") in viewers:
            self.add_error("viewers", f"{data['owner']} is the owner, and cannot be a viewer as well.")
        return data

    def save(self, commit: bool = True) -> Project:
        project: Project = super().save(commit)
        owner, *contributors = self.contributing()
        project.assign(owner=owner, contributors=contributors, viewers=self.cleaned_data["viewers"])
        return project

    def contributing(self) -> list[User]:
        """Return who would launch in the project: the owner first, then the contributors, with the previous owner if not named."""
        return [self.cleaned_data["owner"], *self.cleaned_data["contributors"], *self._owner_before()]

    def consequence(self) -> str:
        return "".join(
            f"{user} was the owner and is a contributor now; remove them and save again if they should have no access."
            for user in self._owner_before()
        )

    def _owner_before(self) -> "QuerySet[User]":
        """Return the previous owner if the form gives that user no role any more; otherwise an empty queryset."""
        named = [self.cleaned_data["owner"], *self.cleaned_data["contributors"], *self.cleaned_data["viewers"]]
        return User.objects.filter(pk=self.initial["owner"] or 0).exclude(pk__in=[user.pk for user in named])
