"""The URLs of this room's pages."""

from django.urls import URLPattern

from dashboard.palette import views as palette
from dashboard.shell.routes import path

urlpatterns: list[URLPattern] = [
    path("palette/", palette.palette, name="palette"),
]
