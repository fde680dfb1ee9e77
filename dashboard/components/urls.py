"""The URLs of this room's pages."""

from dashboard.components.views import components
from dashboard.shell.routes import path

urlpatterns = [path("components/", components.components, name="components")]
