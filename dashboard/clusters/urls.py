"""The URLs of this room's pages."""

from django.urls import URLPattern

from dashboard.clusters.views import clusters
from dashboard.shell.routes import path

urlpatterns: list[URLPattern] = [
    path("launch/estimate/", clusters.launch_estimate, name="launch-estimate"),
    path("launch/choices/", clusters.launch_choices, name="launch-choices"),
    path("executions/<id:id>/samples/", clusters.execution_samples, name="execution-samples"),
    path("executions/<id:id>/resize/", clusters.execution_resize, name="execution-resize"),
    path("executions/<id:id>/restart-head/", clusters.execution_restart_head, name="execution-restart-head"),
]
