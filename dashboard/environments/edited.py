"""Environments as admins edit them, with what is to be said of the versions of their frameworks."""

from typing import Any

from dashboard.administration.views.edited_kinds import EditedKind, Pools
from dashboard.environments.forms import EnvironmentForm
from dashboard.platformhealth.records import framework_lines_of
from grid.core.translation import gettext as _
from grid.models import Environment


class _Environments(EditedKind):
    __slots__ = ()

    def edit_context(self, form: Any, instance: Any, pools: Pools | None) -> dict[str, Any]:
        return {"framework_lines": framework_lines_of(instance)}


ENVIRONMENTS = _Environments(
    "environments",
    "environment",
    _("Environments"),
    Environment,
    EnvironmentForm,
    _("The images and commands that run."),
    _("New environment"),
    _("Archive the environment {name}?"),
    is_frozen_at_launch=True,
)
