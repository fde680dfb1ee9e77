"""The forms of clusters: their part of the launch form, alone or attached to a workspace or job, and the new size of a running one.

They only parse the input; the rules of `grid.clusters` decide what may be launched, and their problems are shown at these fields.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.conf import settings
from django.db.models import Model

from dashboard.clusters.viewmodels.clusters import ClusterRecord
from dashboard.executions.forms import LaunchSection, OfferedRowField, SectionPlace, tier_option
from grid.clusters.request import workers_within
from grid.configuration import MAXIMUM_EXECUTIONS_PER_USER, cluster_policy, value_of
from grid.core.errors import Rejected
from grid.core.regexes import Expression
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.executions.launchrequest import ClusterRequest, Offers
from grid.executions.spec import parse_spec
from grid.models import Environment, Execution, HardwareTier, User
from grid.models.environment import Framework, Kind

_BOXES = ("autoscale", "on_demand")
_NOT_OFFERED = {
    "framework": _("The framework that was asked for is not available to you; check what is chosen instead."),
    "cluster_environment": _(
        "The cluster's environment that was asked for is not available to you; check what is chosen instead."
    ),
    "head_tier": _("The head's tier that was asked for is not available to you; check what is chosen instead."),
    "worker_tier": _("The workers' tier that was asked for is not available to you; check what is chosen instead."),
}
FIRST_MAXIMUM = 5  # the initial maximum of workers
_WHOLE = Expression(r"-?[0-9]{1,9}")
_NUMBER = forms.NumberInput(attrs={"min": 0, "autocomplete": "off"})


class WholeNumberField(forms.CharField):
    """A whole number in ASCII digits; Python's `int` would also accept other scripts' digits and underscores."""

    def to_python(self, value: Any) -> Any:
        text = str(value if value is not None else "").strip()
        if not text:
            return None if self.required else 0
        if not _WHOLE.fullmatch(text):
            raise forms.ValidationError(_("“{text}” is not a whole number; write for example 5.", text=text[:20]))
        return int(text)

    def validate(self, value: Any) -> None:
        if value is None:
            raise forms.ValidationError(self.error_messages["required"], code="required")


def _choice(sentence: str) -> dict[str, str]:
    return {"required": sentence, "invalid_choice": _("This is no longer available to you. {choose}", choose=sentence)}


def _row(model: type[Model], label: str, sentence: str, help_text: str = "") -> OfferedRowField:
    """Return a choice of rows, of which each form says what it offers; `sentence` is shown when none is chosen."""
    rows, messages = model._default_manager.none(), _choice(sentence)
    return OfferedRowField(rows, label=label, empty_label=None, help_text=help_text, error_messages=messages)


def _number(label: str, *, required: str = "", help_text: str = "") -> WholeNumberField:
    """Return a number field; `required` is the message when it is missing, "" for an optional one."""
    shown: dict[str, Any] = {"label": label, "help_text": help_text, "widget": _NUMBER}
    return WholeNumberField(required=bool(required), error_messages={"required": required}, **shown)


class ClusterForm(LaunchSection):
    """The cluster part. It is unbound when none of its fields was sent, and then shows a cluster that can be launched as it is."""

    template = "clusters/fragments/cluster_form.html"
    attached_template = "clusters/fragments/attached_cluster.html"
    attaches_to = frozenset({Kind.WORKSPACE, Kind.JOB})
    has_machine = False
    use_required_attribute = False  # the part may be hidden, where a browser could not point at a missing field
    framework = forms.ChoiceField(label=_("Framework"), error_messages=_choice(_("Choose a framework.")))
    cluster_environment = _row(
        Environment, _("Environment of the cluster"), _("Choose an environment for the cluster.")
    )
    head_tier = _row(
        HardwareTier,
        _("Head"),
        _("Choose a hardware tier for the head."),
        _("Coordinates the workers; a small tier is usually enough."),
    )
    worker_tier = _row(
        HardwareTier, _("Each worker"), _("Choose a hardware tier for the workers."), _("Your tasks run here.")
    )
    workers_minimum = _number(
        _("Workers"),
        required=_("Enter the minimum number of workers."),
        help_text=_("Started at launch; the cluster never has fewer."),
    )
    autoscale = forms.BooleanField(label=_("Grow and shrink with the load"), required=False)
    workers_maximum = _number(_("Maximum workers"))
    target_cpu = _number(_("CPU target"))
    target_memory = _number(_("Memory target"))
    on_demand = forms.BooleanField(
        label=_("Also grow for waiting tasks"),
        required=False,
        help_text=_(
            "Counts tasks that no worker has taken yet. Useful for work that waits for disks, networks or GPUs. "
            "With both targets empty the cluster also shrinks as soon as no task is left."
        ),
    )
    local_storage = forms.CharField(
        label=_("Local storage of each worker"),
        required=False,
        max_length=20,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "placeholder": _("none")}),
        help_text=_("A scratch volume such as 20Gi, deleted with the worker."),
    )

    def __init__(
        self,
        data: Mapping[str, Any] | None,
        *,
        user: User,
        initial: Mapping[str, Any],
        slots: int,
        is_attached: bool,
        offers: Offers | None = None,
    ) -> None:
        """Create the form; `slots` limits the initial maximum of workers, `offers` are read when they are not given."""
        self.user = user
        self.offers = offers or Offers(user)
        self.is_attached = is_attached
        self.typed: Mapping[str, Any] = {}
        self.offers_demand: bool = settings.DEMAND_IS_SERVED
        environments = self.offers.environments(Kind.CLUSTER)
        self.frameworks = [name for name in Framework if any(name.value in row.frameworks for row in environments)]
        sent = data if data is not None and "framework" in data else None
        asked = str((sent if sent is not None else initial).get("framework", ""))
        first = next(iter(self.frameworks), Framework.DASK)
        self.chosen_framework = Framework(asked) if asked in self.frameworks else first
        self.policy = cluster_policy(self.chosen_framework.value)
        self.environments = [row for row in environments if self.chosen_framework.value in row.frameworks]
        self.versions = {
            name: sorted({row.frameworks[name] for row in environments if name in row.frameworks})
            for name in self.frameworks
        }
        self.tiers = self.offers.tiers(Kind.CLUSTER, self.chosen_framework.value)
        super().__init__(sent, initial=self._first_choices(initial, slots))
        self._offer(environments)
        self._describe()

    @classmethod
    def offered(cls, data: Mapping[str, Any] | None, place: SectionPlace) -> "ClusterForm | None":
        made_for = next(iter(place.environment.frameworks), "") if place.environment else ""
        part = cls(
            data,
            user=place.user,
            initial={"framework": made_for, **place.initial},
            slots=place.slots - 1 - place.is_attached,  # the head takes one, and so does what it is attached to
            is_attached=place.is_attached,
            offers=place.offers,
        )
        return part if part.frameworks else None

    @classmethod
    def linked(cls, query: Mapping[str, str]) -> dict[str, Any]:
        linked: dict[str, Any] = {name: query[name] for name in cls.base_fields if query.get(name)}
        return linked | {name: query[name] == "on" for name in _BOXES if name in query}

    @classmethod
    def typed_in(cls, execution: Execution) -> dict[str, Any]:
        """Return the initial values of a previous cluster; {} when its spec cannot be read any more."""
        try:
            spec = parse_spec(execution).cluster
        except ValueError:
            return {}
        if spec is None:
            return {}
        scaling = spec.scaling
        grown = {name: getattr(scaling, name) for name in ("target_cpu", "target_memory", "on_demand")}
        return {
            "framework": spec.framework,
            "cluster_environment": execution.environment_id,
            "head_tier": execution.head_tier_id,
            "worker_tier": execution.tier_id,
            "workers_minimum": spec.workers_minimum,
            "autoscale": scaling.autoscale,
            "local_storage": spec.local_storage,
            **(grown | {"workers_maximum": spec.workers_maximum} if scaling.autoscale else {}),
        }

    def launch_values(self) -> dict[str, Any]:
        request = self.request()
        machine = {} if self.is_attached else {"environment": request.environment, "tier": request.tier}
        return {"cluster": request, **machine}

    def main_tiers(self) -> tuple[str, Sequence[HardwareTier]] | None:
        return None if self.is_attached else ("worker_tier", self.tiers)

    @property
    def autoscales(self) -> bool:
        return bool(self["autoscale"].value())

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if self.autoscales and not self["workers_maximum"].value() and "workers_maximum" not in self.errors:
            self.add_error("workers_maximum", _("Enter the maximum number of workers."))
        if not self.autoscales and "workers_minimum" in cleaned:
            # Without an autoscaler its fields are hidden, so their errors are dropped.
            for name in ("workers_maximum", "target_cpu", "target_memory"):
                self.errors.pop(name, None)
            unused = {"target_cpu": 0, "target_memory": 0, "on_demand": False}
            cleaned |= {"workers_maximum": cleaned["workers_minimum"], **unused}
        self.typed = dict(cleaned)  # for the estimate: Django removes fields with later errors from `cleaned_data`
        return cleaned

    def request(self) -> ClusterRequest:
        data = {**self.cleaned_data, "autoscale": self.autoscales}
        return ClusterRequest(environment=data.pop("cluster_environment"), tier=data.pop("worker_tier"), **data)

    def choices(self) -> list[str]:
        return [str(value.pk if isinstance(value, Model) else value) for value in vars(self.request()).values()]

    def link(self) -> dict[str, str]:
        """Return the values for an address that opens the form like this; a box that is not ticked says so."""
        values = {name: self[name].value() for name in self.fields}
        boxes = {name: "on" if values[name] else "off" for name in _BOXES}
        return {name: str(value) for name, value in values.items() if value not in (None, "")} | boxes

    def name_of_launched(self) -> str:
        return str(self.chosen_framework.label)

    def not_offered(self, asked: Mapping[str, Any]) -> list[str]:
        tiers = {tier.pk for tier in self.tiers}
        choices = (
            ("framework", {name.value for name in self.frameworks}),
            ("cluster_environment", {environment.pk for environment in self.environments}),
            ("head_tier", tiers),
            ("worker_tier", tiers),
        )
        return [_NOT_OFFERED[name] for name, offered in choices if asked.get(name) and asked[name] not in offered]

    def as_sent(self) -> dict[str, Any]:
        values = {name: self[name].value() for name in self.fields}
        return {name: "on" if value is True else value for name, value in values.items() if value not in (False, None)}

    def _first_choices(self, initial: Mapping[str, Any], slots: int) -> dict[str, Any]:
        """Return the initial values: those given, where they are offered, and for the rest what suits a newcomer."""
        tiers = {tier.pk for tier in self.tiers}
        environments = [environment.pk for environment in self.environments]
        offered = {"cluster_environment": set(environments), "head_tier": tiers, "worker_tier": tiers}
        kept = {
            name: value
            for name, value in initial.items()
            if value is not None and (name not in offered or value in offered[name])
        }
        default = next((tier.pk for tier in self.tiers if tier.is_default), self.tiers[0].pk if self.tiers else "")
        first = {
            "cluster_environment": environments[0] if environments else "",
            "head_tier": default,
            "worker_tier": default,
            "workers_minimum": 1,
            "workers_maximum": max(1, min(FIRST_MAXIMUM, self.policy.maximum_workers, slots)),
            "autoscale": True,
            "target_cpu": self.policy.target_cpu,
            "target_memory": self.policy.target_memory,
            **kept,
            "framework": self.chosen_framework.value,
        }
        return first if self.policy.autoscaling else first | {"autoscale": False}

    def _offer(self, environments: list[Environment]) -> None:
        """Set the choices. Values of other frameworks are valid too, because the rules reject them with a better message than Django."""
        fields: dict[str, Any] = self.fields
        fields["framework"].choices = [(name.value, name.label) for name in self.frameworks]
        chosen, environment = self.chosen_framework, fields["cluster_environment"]
        shown = [(row.pk, f"{row.name} ({chosen.label} {row.frameworks[chosen]})") for row in self.environments]
        environment.rows, environment.widget.choices = environments, shown
        for name in ("head_tier", "worker_tier"):
            fields[name].rows = self.offers.tiers(Kind.CLUSTER)
            fields[name].widget.choices = [(row.pk, tier_option(row)) for row in self.tiers]

    def _describe(self) -> None:
        """Set the help texts with the admin's bounds, and name the element of each field's error, also of one that the estimate adds."""
        policy, bounds = self.policy, _("{minimum} to {maximum}; leave empty to ignore.")
        bounds = bounds.format(minimum=policy.minimum_target, maximum=policy.maximum_target)
        within = workers_within(value_of(MAXIMUM_EXECUTIONS_PER_USER), is_attached=self.is_attached)
        self.fields["workers_maximum"].help_text = (
            _("Your quota allows up to {workers}.", workers=plural(within, "worker", "workers"))
            if 0 < within < policy.maximum_workers
            else _("Your admin allows {maximum:,}.", maximum=policy.maximum_workers)
        )
        self.fields["target_cpu"].help_text = _("Adds workers above this CPU use. {bounds}", bounds=bounds)
        self.fields["target_memory"].help_text = _("Adds workers above this memory use. {bounds}", bounds=bounds)
        for name, field in self.fields.items():
            described = f"id_{name}_error id_{name}_helptext" if field.help_text else f"id_{name}_error"
            field.widget.attrs["aria-describedby"] = described


_LARGEST = 10_000  # larger numbers are typing errors; the quota and the admin's limit decide what is allowed
_PATHS = {"workers_minimum": "minimum", "workers_maximum": "maximum"}


class ResizeForm(forms.Form):
    """The new bounds. `grid.clusters.changes.resize` checks all further rules; `refuse` shows its problems at their fields."""

    minimum = forms.IntegerField(
        min_value=1, max_value=_LARGEST, label=_("Minimum workers"), help_text=_("Never scales below this.")
    )
    maximum = forms.IntegerField(
        min_value=1,
        max_value=_LARGEST,
        label=_("Maximum workers"),
        help_text=_(
            "Each worker up to the maximum takes a slot of your quota, whether it exists or not. Equal to the minimum: fixed size."
        ),
    )

    @classmethod
    def of(cls, cluster: ClusterRecord) -> "ResizeForm":
        return cls(initial={"minimum": cluster.workers_minimum, "maximum": cluster.workers_maximum})

    def clean(self) -> None:
        minimum, maximum = self.cleaned_data.get("minimum"), self.cleaned_data.get("maximum")
        if minimum is not None and maximum is not None and maximum < minimum:
            self.add_error("maximum", _("The maximum cannot be less than the minimum of {minimum}.", minimum=minimum))

    def refuse(self, rejected: Rejected) -> None:
        for problem in rejected.problems:
            self.add_error(_PATHS.get(problem.path), problem.message)

    @property
    def words(self) -> str:
        """The new size, such as "1 to 5 workers"."""
        low, workers = self.cleaned_data["minimum"], plural(self.cleaned_data["maximum"], "worker", "workers")
        return workers if low == self.cleaned_data["maximum"] else _("{low} to {workers}", low=low, workers=workers)
