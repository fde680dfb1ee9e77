"""The URLs of this room's pages."""

from django.urls import URLPattern

from dashboard.servicelevels import views as service_levels
from dashboard.shell.routes import path

urlpatterns: list[URLPattern] = [
    path("service-levels/", service_levels.service_levels, name="service-levels"),
]
