"""The URLs of this room's pages."""

from django.urls import URLPattern

from dashboard.shell.routes import path
from dashboard.workspaces.views import workspaces

urlpatterns: list[URLPattern] = [
    path("workspaces/", workspaces.workspaces, name="workspaces"),
    path("workspaces/<id:id>/", workspaces.workspace, name="workspace"),
    path("workspaces/<id:id>/resume/", workspaces.workspace_resume, name="workspace-resume"),
    path("workspaces/<id:id>/restart/", workspaces.workspace_restart, name="workspace-restart"),
    path("workspaces/<id:id>/restart/cancel/", workspaces.restart_cancel, name="workspace-restart-cancel"),
    path("workspaces/<id:id>/rename/", workspaces.workspace_rename, name="workspace-rename"),
    path("workspaces/<id:id>/delete/", workspaces.workspace_delete, name="workspace-delete"),
]
