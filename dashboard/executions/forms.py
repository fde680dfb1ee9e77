"""The launch form, which offers only what the user may use, and shows every problem at its field."""

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, TypeVar

from django import forms
from django.conf import settings
from django.db.models import Model, QuerySet

from dashboard.clusters.forms.cluster import ClusterForm, linked_cluster
from dashboard.jobs.forms.jobs import TYPED, JobPart
from grid.core.errors import Problem
from grid.core.translation import gettext as _
from grid.diagnosis.launchfit import Pools
from grid.executions.launchrequest import DEFAULTS, LaunchRequest
from grid.executions.offers import environments_for, projects_for, tiers_for
from grid.executions.request import validate
from grid.models import Environment, HardwareTier, Project, User
from grid.models.environment import Kind

_Offered = TypeVar("_Offered", bound=Model)

_ID_LENGTH = 12
_NOT_OFFERED = {
    "project": _("The project that was asked for is not available to you; choose another."),
    "environment": _("The environment that was asked for is not available to you; choose another."),
    "tier": _("The hardware tier that was asked for is not available to you; choose another."),
}
ATTACHABLE_KINDS = frozenset({Kind.WORKSPACE, Kind.JOB})


def new_token() -> str:
    """Return a token for one rendering of the form, so that submitting it twice launches once."""
    return secrets.token_urlsafe(16)


def linked(query: Mapping[str, str]) -> dict[str, Any]:
    """Return the initial values that an address asks for; whatever is unknown is left out, and nothing of it is checked here."""
    own = {name: query[name] for name in (*_NOT_OFFERED, "title", *TYPED) if query.get(name)}
    own = {name: text for name, text in own.items() if "\0" not in text}  # which PostgreSQL does not take in a question
    cluster = linked_cluster(query)
    return own | cluster | ({"with_cluster": True} if query.get("with_cluster") == "on" else {})


class MachineForm(forms.Form):
    """An environment and a tier, from those offered to the user for `kind`."""

    environment = forms.ModelChoiceField(
        label=_("Environment"),
        queryset=Environment.objects.none(),
        empty_label=None,
        error_messages={
            "required": _("Choose an environment."),
            "invalid_choice": _("This environment is no longer available; choose another."),
        },
    )
    tier = forms.ModelChoiceField(
        label=_("Tier"),
        queryset=HardwareTier.objects.none(),
        empty_label=None,
        error_messages={
            "required": _("Choose a hardware tier."),
            "invalid_choice": _("This hardware tier is not available to you; choose another."),
        },
    )

    def __init__(
        self,
        data: Mapping[str, Any] | None,
        *,
        user: User,
        kind: str,
        initial: Mapping[str, Any],
        like: "MachineForm | None" = None,
    ) -> None:
        """Create the form; what is offered is not read again when a form `like` it, of the same user and kind, has it."""
        super().__init__(data, initial=dict(initial))
        self.user = user
        self.environments: QuerySet[Environment] = (
            like.environments if like is not None else environments_for(user, kind)
        )
        self.tiers: QuerySet[HardwareTier] = like.tiers if like is not None else tiers_for(user, kind)
        self._offered: dict[str, QuerySet[Any]] = {}
        # Fields for which nothing is chosen, because what was asked for is not offered.
        self.withheld: frozenset[str] = frozenset()
        self.offer("environment", self.environments)
        self.offer("tier", self.tiers)

    @property
    def was_refused(self) -> bool:
        """True when the form was sent and has errors, here or in the cluster part."""
        return self.is_bound and not self.is_valid()

    def offer(self, name: str, queryset: QuerySet[Any]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = self._offered[name] = queryset

    def chosen(self, name: str) -> str:
        """Return the chosen project, environment or tier if it is offered, else the default tier or the first choice; "" without any. An
        environment for everything comes before one for a framework."""
        if name not in self.fields:
            return ""
        offered = sorted(self._offered[name], key=lambda one: bool(getattr(one, "frameworks", None)))
        if name in self.withheld:
            return ""
        value = str(self[name].value() or "")
        defaults = [one.pk for one in offered if getattr(one, "is_default", False)] + [one.pk for one in offered]
        return value if value in defaults else next(iter(defaults), "")

    def add_problems(self, problems: Iterable[Problem]) -> None:
        """Add each problem at its field, or to the whole form where it has no such field."""
        for problem in problems:
            self.add_error(problem.path if problem.path in self.fields else None, problem.message)


class LaunchForm(MachineForm):
    """The form of one `kind` of execution, on which its environments and tiers depend.

    `cluster` is the cluster part, for a cluster itself or for one that may be attached; None where there can be no cluster. `job` is the
    part of a job; None for all else.
    """

    project = forms.ModelChoiceField(
        label=_("Project"),
        queryset=Project.objects.none(),
        empty_label=None,
        error_messages={
            "required": _("Choose a project."),
            "invalid_choice": _("Choose one of your projects; this one is archived or not yours."),
        },
    )
    title = forms.CharField(label=_("Title"), required=False)
    token = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput)
    with_cluster = forms.BooleanField(required=False)

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        user: User,
        kind: str,
        initial: Mapping[str, Any] | None = None,
        cluster_slots: int = 0,
        pools: Pools | None = None,
        like: "LaunchForm | None" = None,
    ) -> None:
        """Create the form; `cluster_slots` are left for a cluster's workers, `pools` is None while the nodes are not known."""
        super().__init__(data, user=user, kind=kind, initial=initial or {}, like=like)
        self.kind = kind
        self.pools = pools
        self.is_cluster = kind == Kind.CLUSTER
        self.projects: QuerySet[Project] = like.projects if like is not None else projects_for(user)
        self.offer("project", self.projects)
        if self.is_cluster:
            # A cluster alone has no environment and tier but those of its workers.
            del self.fields["environment"], self.fields["tier"]
        part = ClusterForm(
            data,
            user=user,
            initial=self._cluster_initial(),
            slots=cluster_slots,
            is_attached=not self.is_cluster,
            offers=like.cluster.offers if like is not None and like.cluster is not None else None,
        )
        self.job = JobPart(data, user=user, initial=self.initial) if kind == Kind.JOB else None
        self.cluster: ClusterForm | None = (
            part if part.is_offered and (self.is_cluster or kind in ATTACHABLE_KINDS) else None
        )

    @property
    def wants_cluster(self) -> bool:
        return self.is_cluster or bool(self["with_cluster"].value())

    def is_valid(self) -> bool:
        parts = (self.cluster if self.wants_cluster else None, self.job)
        return super().is_valid() and not any(part is not None and part.errors for part in parts)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if self.wants_cluster and (self.cluster is None or not self.cluster.is_bound):
            self.add_error(
                None,
                _("A cluster like this is not available to you. Choose from what is offered below, and launch again."),
            )
        is_cluster_read = not self.wants_cluster or (self.cluster is not None and self.cluster.is_valid())
        is_job_read = self.job is None or self.job.is_valid()
        if is_cluster_read and is_job_read and not self.errors:
            self.add_problems(validate(self.request(), pools=self.pools))
        return cleaned

    def request(self) -> LaunchRequest:
        """Return what to launch; the form must have no errors."""
        data = self.cleaned_data
        cluster = self.cluster.request() if self.cluster and self.wants_cluster else None
        return LaunchRequest(
            owner=self.user,
            project=data["project"],
            environment=cluster.environment if cluster and self.is_cluster else data["environment"],
            tier=cluster.tier if cluster and self.is_cluster else data["tier"],
            kind=self.kind,
            title=data["title"],
            cluster=cluster,
            job=self.job.settings() if self.job else DEFAULTS,
        )

    def add_problems(self, problems: Iterable[Problem]) -> None:
        """Add each problem at its field, which may be in the cluster part or the job's."""
        problems = self.job.add_problems(problems) if self.job else problems
        super().add_problems(self.cluster.add_problems(problems) if self.cluster and self.wants_cluster else problems)

    def execution_id(self) -> str:
        """Return the same id for the same rendering of the form with the same choices, so that the database allows one launch only.

        A user who goes back in the browser and changes a choice does launch a second time.
        """
        request = self.request()
        parts = (
            str(self.user.pk),
            self.cleaned_data["token"] or new_token(),
            self.kind,
            request.project.pk,
            request.environment.pk,
            request.tier.pk,
            request.title,
            *(self.cluster.choices() if self.cluster and request.cluster else ()),
            *(self.job.choices() if self.job else ()),
        )
        text = "\x00".join(parts)
        return hmac.new(settings.SECRET_KEY.encode(), text.encode(), hashlib.sha256).hexdigest()[:_ID_LENGTH]

    def withhold(self, asked: Mapping[str, Any]) -> list[str]:
        """Choose nothing where what was asked for is not offered, and return a sentence for each such field."""
        gone = [
            name
            for name in _NOT_OFFERED
            if name in self.fields and asked.get(name) and not self._offered[name].filter(pk=str(asked[name])).exists()
        ]
        self.withheld = frozenset(gone)
        return [_NOT_OFFERED[name] for name in gone] + (self.cluster.not_offered(asked) if self.cluster else [])

    def link(self) -> dict[str, str]:
        """Return the values with which the form can be opened again, by somebody else too; `linked` reads them."""
        own = {name: self.chosen(name) for name in _NOT_OFFERED if name in self.fields}
        values = {"kind": self.kind, **own, "title": str(self["title"].value() or "")}
        if self.cluster is not None and self.wants_cluster:
            if not self.is_cluster:
                values["with_cluster"] = "on"
            values |= self.cluster.link()
        if self.job is not None:
            values |= self.job.link()
        return {name: value for name, value in values.items() if value}

    @cached_property
    def as_sent(self) -> "LaunchForm":
        """The form bound to its own initial values, as a browser would send them unchanged."""
        own = {name: self.chosen(name) for name in ("project", "environment", "tier")}
        typed = {"title": self["title"].value() or "", "token": self["token"].value() or ""}
        cluster = self.cluster.as_sent() if self.cluster else {}
        job = self.job.as_sent() if self.job else {}
        data = {**own, **typed, **job, **cluster, **({"with_cluster": "on"} if self["with_cluster"].value() else {})}
        return LaunchForm(data, user=self.user, kind=self.kind, pools=self.pools, like=self)

    @property
    def chosen_environment(self) -> Environment | None:
        return _one(self.environments, self.chosen("environment"))

    @property
    def chosen_tier(self) -> HardwareTier | None:
        return _one(self.tiers, self.chosen("tier"))

    def _cluster_initial(self) -> dict[str, Any]:
        """Return the initial values of the cluster part; the default framework is the first one of the chosen environment."""
        environment = self.chosen_environment
        made_for = next(iter(environment.frameworks), "") if environment else ""
        first: dict[str, Any] = {"framework": made_for}
        return first | dict(self.initial)


def _one(offered: Iterable[_Offered], id: str) -> _Offered | None:
    """Return the offered row with that id. The rows are read once for the whole page."""
    return next((row for row in offered if row.pk == id), None)
