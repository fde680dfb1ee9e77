from dashboard.alerts import views
from dashboard.shell.routes import path

urlpatterns = [
    path("alerts/", views.alerts, name="alerts"),
    path("alerts/received/", views.alerts_received, name="alerts-received"),
    path("alerts/<int:id>/silence/", views.alert_silence, name="alert-silence"),
    path("alerts/silences/<int:id>/end/", views.silence_end, name="silence-end"),
    path("alerts/steps/<slug:id>/", views.runbook, name="runbook"),
]
