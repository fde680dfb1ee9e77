"""The URLs of this room's pages."""

from dashboard.shell.routes import path
from dashboard.usage.views import usage

urlpatterns = [
    path("usage/", usage.own_usage, name="usage"),
    path("usage/everybody/", usage.usage_of_everybody, name="usage-of-everybody"),
    path("usage/people/<int:id>/", usage.person_usage, name="person-usage"),
    path("projects/<name:id>/budget/", usage.project_budget, name="project-budget"),
]
