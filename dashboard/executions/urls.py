"""The URLs of this room's pages."""

from django.urls import URLPattern

from dashboard.executions.views import executions, launch, stopping
from dashboard.shell.routes import path

urlpatterns: list[URLPattern] = [
    path("launch/", launch.launch, name="launch"),
    path("launch/check/", launch.launch_check, name="launch-check"),
    path("launch/objects/", launch.launch_objects, name="launch-objects"),
    path("executions/", executions.executions, name="executions"),
    path("executions/message/", stopping.executions_message, name="executions-message"),
    path("executions/stop/", stopping.executions_stop, name="executions-stop"),
    path("executions/<id:id>/", executions.execution, name="execution"),
    path("executions/<id:id>/log/", executions.execution_log, name="execution-log"),
    path("executions/<id:id>/lifecycle/", executions.execution_lifecycle, name="execution-lifecycle"),
    path("executions/<id:id>/stop/", stopping.execution_stop, name="execution-stop"),
    path("executions/<id:id>/keep/", stopping.execution_keep, name="execution-keep"),
]
