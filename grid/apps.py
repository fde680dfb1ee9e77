from importlib import import_module

from django.apps import AppConfig


class GridConfig(AppConfig):
    name = "grid"
    verbose_name = "Compute Grid"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        import_module("grid.checks")
