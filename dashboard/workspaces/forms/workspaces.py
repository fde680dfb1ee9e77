"""The forms that resume and rename a workspace."""

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms

from dashboard.executions.forms import MachineForm
from grid.core.errors import Problem
from grid.core.translation import gettext as _
from grid.models import User, Workspace
from grid.models.environment import Kind


class ResumeForm(MachineForm):
    """The form that resumes a workspace; its initial values are those of the last launch, where they are still offered."""

    with_cluster = forms.BooleanField(required=False)
    newest = forms.BooleanField(label=_("Newest"), required=False)

    def __init__(self, data: Mapping[str, Any] | None, *, user: User, initial: Mapping[str, Any]) -> None:
        super().__init__(data, user=user, kind=Kind.WORKSPACE, initial={"with_cluster": True, **initial})

    def add_problems(self, problems: Iterable[Problem]) -> None:
        """Add each problem at its field; a problem at a field that this form does not have is about the cluster."""
        for problem in problems:
            is_of_cluster = problem.path and problem.path not in self.fields
            self.add_error("with_cluster" if is_of_cluster else problem.path or None, problem.message)


def as_launched(workspace: Workspace) -> dict[str, str]:
    """Return what a browser would send to resume the workspace with its environment, tier and cluster."""
    cluster = {"with_cluster": "on"} if workspace.cluster else {}
    return {"environment": workspace.environment_id, "tier": workspace.tier_id, **cluster}


class RenameForm(forms.Form):
    """The form of a new title; the rules of `grid.workspaces` decide which titles are valid."""

    title = forms.CharField(
        label=_("Title"),
        required=False,
        widget=forms.TextInput(attrs={"dir": "auto", "autocomplete": "off", "size": 40}),
    )
