"""The URLs of this room's pages."""

from django.urls import URLPattern

from dashboard.platformhealth.views import api_checks, platform_health
from dashboard.shell.routes import path

urlpatterns: list[URLPattern] = [
    path("platform-health/api-checks/", api_checks.api_checks, name="api-checks"),
    path("platform-health/api-checks/run/", api_checks.api_checks_run, name="api-checks-run"),
    path("platform-health/", platform_health.platform_health, name="platform-health"),
]
