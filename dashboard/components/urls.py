"""The URLs of this room's pages."""

from django.urls import URLPattern

from dashboard.components.views import components
from dashboard.shell.routes import path

urlpatterns: list[URLPattern] = [
    path("components/", components.components, name="components"),
]
