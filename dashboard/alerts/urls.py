"""The URLs of this room's pages."""

from django.urls import URLPattern

from dashboard.alerts.views import alerts, silences
from dashboard.shell.routes import path

urlpatterns: list[URLPattern] = [
    path("alerts/", alerts.alerts, name="alerts"),
    path("alerts/received/", alerts.alerts_received, name="alerts-received"),
    path("alerts/<int:id>/silence/", silences.alert_silence, name="alert-silence"),
    path("alerts/silences/<int:id>/end/", silences.silence_end, name="silence-end"),
    path("alerts/steps/<slug:id>/", alerts.runbook, name="runbook"),
]
