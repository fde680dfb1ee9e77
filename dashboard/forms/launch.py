"""The launch form: offers only what its person may use, and puts every refusal at its field."""

import hashlib
import hmac
import secrets
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.models import User

from grid.errors import Problem
from grid.launch.request import LaunchRequest, environments_for, projects_for, tiers_for, validate
from grid.models import Environment, HardwareTier, Project

_ID_LENGTH = 12


def new_token() -> str:
    """Names one showing of the form, so that sending it twice launches once."""
    return secrets.token_urlsafe(16)


class LaunchForm(forms.Form):
    """`kind` is what the person launches; environments and tiers depend on it."""

    project = forms.ModelChoiceField(
        queryset=Project.objects.none(),
        empty_label=None,
        error_messages={
            "required": "Choose a project.",
            "invalid_choice": "Choose one of your projects; this one is archived or not yours.",
        },
    )
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
    title = forms.CharField(required=False)
    token = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput)

    def __init__(self, *args: Any, user: User, kind: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        self.kind = kind
        self.projects = projects_for(user)
        self.environments = environments_for(user, kind)
        self.tiers = tiers_for(user, kind)
        self._offer("project", self.projects)
        self._offer("environment", self.environments)
        self._offer("tier", self.tiers)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if not self.errors:
            self.add_problems(validate(self.request()))
        return cleaned

    def request(self) -> LaunchRequest:
        """What to launch; only of a form without errors."""
        data = self.cleaned_data
        return LaunchRequest(
            owner=self.user,
            project=data["project"],
            environment=data["environment"],
            tier=data["tier"],
            kind=self.kind,
            title=data["title"],
        )

    def add_problems(self, problems: list[Problem] | tuple[Problem, ...]) -> None:
        for problem in problems:
            self.add_error(problem.path if problem.path in self.fields else None, problem.message)

    def execution_id(self) -> str:
        """The same for the same showing of the form with the same choices, so the database lets it be launched once only.

        Somebody who goes back in the browser and chooses differently does launch a second time.
        """
        data = self.cleaned_data
        token = data["token"] or new_token()
        parts = (
            str(self.user.pk),
            token,
            self.kind,
            data["project"].pk,
            data["environment"].pk,
            data["tier"].pk,
            data["title"],
        )
        text = "\x00".join(parts)
        return hmac.new(settings.SECRET_KEY.encode(), text.encode(), hashlib.sha256).hexdigest()[:_ID_LENGTH]

    def _offer(self, name: str, queryset: Any) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = queryset
