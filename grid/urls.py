"""Composition root of HTTP paths."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("", include("dashboard.urls")),
    path("admin/", admin.site.urls),
]
