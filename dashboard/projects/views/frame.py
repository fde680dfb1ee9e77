"""What every page of a project has in common: its name, its tabs, and what the person may do in it."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.urls import reverse

from dashboard.projects.viewmodels.overview import tabs_for
from dashboard.shell.access import may_contribute, may_manage_project, seen_project
from grid.core.translation import gettext as _
from grid.models import Project


def frame(request: HttpRequest, project: Project, roles: Mapping[int, str], tab: str) -> dict[str, Any]:
    """Return the context of a page of the project; `tab` is the name of the page's URL, and `roles` are by user id."""
    contributes, manages = may_contribute(request.user, roles), may_manage_project(request.user, roles)
    may_browse = contributes and project.is_in_git and bool(settings.REPOSITORIES)
    tabs = tabs_for(may_browse=may_browse, may_manage=manages)
    return {
        "project": project,
        "title": project.name,
        "tab_title": tabs.get(tab, ""),
        "tabs": [(reverse(name, args=[project.pk]), title, name == tab) for name, title in tabs.items()],
        "may_manage": manages,
        "may_contribute": contributes,
        "may_set_remote": manages and bool(settings.REPOSITORIES),
    }


def managed_project(request: HttpRequest, id: str) -> Project:
    """Return the project, locked where a form is sent. Raise PermissionDenied unless the person may change it, Http404 for a stranger."""
    project, roles = seen_project(request, id, is_locked=request.method == "POST")
    if not may_manage_project(request.user, roles):
        raise PermissionDenied(_("Only the owner of the project and admins change it."))
    return project
