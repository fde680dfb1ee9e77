"""The URLs of this room's pages."""

from dashboard.shell.routes import path
from dashboard.support.views import support

urlpatterns = [
    path("overview/support/", support.platform_support, name="platform-support"),
    path("executions/<id:id>/support/", support.execution_support, name="execution-support"),
]
