"""Resuming a workspace, and giving it another title."""

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms

from dashboard.forms.launch import MachineForm
from grid.errors import Problem
from grid.models import User
from grid.models.environment import Kind


class ResumeForm(MachineForm):
    """First as the workspace was launched last, where that is still offered."""

    with_cluster = forms.BooleanField(required=False)

    def __init__(self, data: Mapping[str, Any] | None, *, user: User, initial: Mapping[str, Any]) -> None:
        super().__init__(data, user=user, kind=Kind.WORKSPACE, initial={"with_cluster": True, **initial})

    def add_problems(self, problems: Iterable[Problem]) -> None:
        """What is about no field of this form, and not about all of it, is about the cluster."""
        super().add_problems(
            Problem("with_cluster", problem.message) if problem.path and problem.path not in self.fields else problem
            for problem in problems
        )


class RenameForm(forms.Form):
    """What may be a title is said by the rules of `grid.launch`."""

    title = forms.CharField(
        required=False, widget=forms.TextInput(attrs={"dir": "auto", "autocomplete": "off", "size": 40})
    )
