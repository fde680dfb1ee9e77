"""The URLs of this room's pages."""

from dashboard.shell.routes import path
from dashboard.shell.script_texts import script_texts
from dashboard.shell.views import health, preferences, saved_views

urlpatterns = [
    path("table-view/", preferences.choose_table_view, name="table-view"),
    path("views/", saved_views.view_save, name="view-save"),
    path("views/<int:id>/", saved_views.view_open, name="view-open"),
    path("views/<int:id>/default/", saved_views.view_default, name="view-default"),
    path("views/<int:id>/delete/", saved_views.view_delete, name="view-delete"),
    path("theme/", preferences.choose_theme, name="theme"),
    path("help/", preferences.help_page, name="help"),
    path("favicon.ico", preferences.favicon, name="favicon"),
    path("script-texts/<slug:language>/<slug:version>.js", script_texts, name="script-texts"),
    path("healthz", health.alive, name="healthz"),
    path("readyz", health.ready, name="readyz"),
    path("freshz", health.fresh, name="freshz"),
]
