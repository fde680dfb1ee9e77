"""The URLs of this room's pages."""

from django.urls import URLPattern

from dashboard.sharing.views import opening, sharing
from dashboard.shell.routes import path

urlpatterns: list[URLPattern] = [
    path("executions/<id:id>/share/", sharing.execution_share, name="execution-share"),
    path("executions/<id:id>/open/", opening.open_execution, name="execution-open"),
    path("executions/<id:id>/opening/", opening.continue_opening, name="execution-opening"),
    path("workspaces/<id:id>/share/", sharing.workspace_share, name="workspace-share"),
    path("workspaces/<id:id>/unshare/", sharing.workspace_unshare, name="workspace-unshare"),
]
