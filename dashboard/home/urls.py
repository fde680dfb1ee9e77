"""The URLs of this room's pages."""

from django.urls import URLPattern

from dashboard.home import views as home
from dashboard.shell.routes import path

urlpatterns: list[URLPattern] = [
    path("", home.home, name="home"),
    path("first-steps/hide/", home.choose_first_steps, name="first-steps-hide"),
]
