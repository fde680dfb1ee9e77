"""The meter of a project's budget, on the project's pages."""

from typing import Any

from django import template
from django.template import Context
from django.utils import timezone

from dashboard.budget_records import budget_for
from grid.models import Project

register = template.Library()


@register.inclusion_tag("dashboard/fragments/budget.html", takes_context=True)
def budget_meter(context: Context, project: Project) -> dict[str, Any]:
    """Return what the fragment needs; it is empty for who may not see the budget, and without one."""
    return {"budget": budget_for(context["request"].user, project, timezone.now()), "project": project}
