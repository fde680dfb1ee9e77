"""Composition root of HTTP paths."""

from django.contrib import admin
from django.urls import include, path
from django.views.decorators.http import require_safe
from django.views.generic import RedirectView

from dashboard.accounts.views import account

urlpatterns = [
    path("", include("dashboard.urls")),
    # Passwords are entered in only two places, both throttled.
    path("admin/login/", account.admin_login),
    path("admin/logout/", account.logout),
    path("admin/password_change/", require_safe(RedirectView.as_view(pattern_name="password"))),
    path("admin/", admin.site.urls),
]

handler500 = "dashboard.shell.views.failing.failed"
