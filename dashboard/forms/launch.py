"""The launch form, which offers only what the user may use, and shows every problem at its field."""

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.conf import settings
from django.db.models import QuerySet

from dashboard.forms.cluster import ClusterForm
from grid.errors import Problem
from grid.launch.clusters.request import UNKNOWN, ClusterFacts
from grid.launch.offers import environments_for, projects_for, tiers_for
from grid.launch.request import LaunchRequest, validate
from grid.models import Environment, HardwareTier, Project, User
from grid.models.environment import Kind

_ID_LENGTH = 12
ATTACHABLE_KINDS = frozenset({Kind.WORKSPACE, Kind.JOB})


def new_token() -> str:
    """Return a token for one rendering of the form, so that submitting it twice launches once."""
    return secrets.token_urlsafe(16)


class MachineForm(forms.Form):
    """An environment and a tier, from those offered to the user for `kind`."""

    environment = forms.ModelChoiceField(
        queryset=Environment.objects.none(),
        empty_label=None,
        error_messages={
            "required": "Choose an environment.",
            "invalid_choice": "This environment is not offered any more; choose another.",
        },
    )
    tier = forms.ModelChoiceField(
        queryset=HardwareTier.objects.none(),
        empty_label=None,
        error_messages={
            "required": "Choose a hardware tier.",
            "invalid_choice": "This hardware tier is not offered to you; choose another.",
        },
    )

    def __init__(self, data: Mapping[str, Any] | None, *, user: User, kind: str, initial: Mapping[str, Any]) -> None:
        super().__init__(data, initial=dict(initial))
        self.user = user
        self.environments = environments_for(user, kind)
        self.tiers = tiers_for(user, kind)
        self._offered: dict[str, QuerySet[Any]] = {}
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
        value = str(self[name].value() or "")
        defaults = [one.pk for one in offered if getattr(one, "is_default", False)] + [one.pk for one in offered]
        return value if value in defaults else next(iter(defaults), "")

    def add_problems(self, problems: Iterable[Problem]) -> None:
        """Add each problem at its field, or to the whole form where it has no such field."""
        for problem in problems:
            self.add_error(problem.path if problem.path in self.fields else None, problem.message)


class LaunchForm(MachineForm):
    """The form of one `kind` of execution, on which its environments and tiers depend.

    `cluster` is the cluster part, for a cluster itself or for one that may be attached; None where there can be no cluster.
    """

    project = forms.ModelChoiceField(
        queryset=Project.objects.none(),
        empty_label=None,
        error_messages={
            "required": "Choose a project.",
            "invalid_choice": "Choose one of your projects; this one is archived or not yours.",
        },
    )
    title = forms.CharField(required=False)
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
        facts: ClusterFacts = UNKNOWN,
    ) -> None:
        """Create the form; `cluster_slots` are left for a cluster's workers, `facts` is what is known of the nodes."""
        super().__init__(data, user=user, kind=kind, initial=initial or {})
        self.kind = kind
        self.facts = facts
        self.is_cluster = kind == Kind.CLUSTER
        self.projects = projects_for(user)
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
        )
        self.cluster = part if part.is_offered and (self.is_cluster or kind in ATTACHABLE_KINDS) else None

    @property
    def wants_cluster(self) -> bool:
        return self.is_cluster or bool(self["with_cluster"].value())

    def is_valid(self) -> bool:
        return super().is_valid() and not (self.cluster and self.wants_cluster and self.cluster.errors)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if self.wants_cluster and (self.cluster is None or not self.cluster.is_bound):
            self.add_error(
                None, "No cluster like this is offered to you. Look at what is offered below, and launch again."
            )
        is_cluster_read = not self.wants_cluster or (self.cluster is not None and self.cluster.is_valid())
        if is_cluster_read and not self.errors:
            self.add_problems(validate(self.request(), facts=self.facts))
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
        )

    def add_problems(self, problems: Iterable[Problem]) -> None:
        """Add each problem at its field, which may be in the cluster part."""
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
        )
        text = "\x00".join(parts)
        return hmac.new(settings.SECRET_KEY.encode(), text.encode(), hashlib.sha256).hexdigest()[:_ID_LENGTH]

    def _cluster_initial(self) -> dict[str, Any]:
        """Return the initial values of the cluster part; the default framework is the first one of the chosen environment."""
        environment = self.environments.filter(pk=self.chosen("environment")).first()
        made_for = next(iter(environment.frameworks), "") if environment else ""
        first: dict[str, Any] = {"framework": made_for}
        return first | dict(self.initial)
