"""Every page of the dashboard, in one list."""

from django.urls import URLPattern, path

from dashboard.views import account, home

urlpatterns: list[URLPattern] = [
    path("", home.home, name="home"),
    path("login/", account.login, name="login"),
    path("logout/", account.logout, name="logout"),
    path("theme/", account.choose_theme, name="theme"),
]
