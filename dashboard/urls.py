"""Every page of the dashboard, in one list."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
