"""The URLs of this room's pages."""

from django.urls import URLPattern

from dashboard.shell.routes import path
from dashboard.starts import views as startup

urlpatterns: list[URLPattern] = [
    path("startup/", startup.startup, name="startup"),
    path("startup/days/", startup.startup_days, name="startup-days"),
]
