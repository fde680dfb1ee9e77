"""The URLs of this room's pages."""

from django.urls import URLPattern

from dashboard.platformhealth import views
from dashboard.shell.routes import path

urlpatterns: list[URLPattern] = [
    path("platform-health/api-checks/", views.api_checks, name="api-checks"),
    path("platform-health/api-checks/run/", views.api_checks_run, name="api-checks-run"),
    path("platform-health/", views.platform_health, name="platform-health"),
]
