"""The URLs of this room's pages."""

from django.urls import URLPattern

from dashboard.configuration import views as configuration
from dashboard.shell.routes import path

urlpatterns: list[URLPattern] = [
    path("configuration/", configuration.configuration, name="configuration"),
]
