"""The meter of a project's budget, on the project's pages."""

from typing import Any

from django import template
from django.utils import timezone

from dashboard.usage.usage_records import budget_of_project
from grid.models import Project

register = template.Library()


@register.inclusion_tag("usage/fragments/budget.html")
def budget_meter(project: Project) -> dict[str, Any]:
    """Return what the fragment needs; it is empty without a budget. Whoever sees the project may see it."""
    return {"budget": budget_of_project(project, timezone.now()), "project": project}
