from contextlib import suppress
from importlib import import_module
from pathlib import Path

from django.apps import AppConfig
from django.conf import settings
from django.db import connection
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate, pre_migrate

from grid.database.threads import measure_statements
from grid.database.triggers import install, take_away


class GridConfig(AppConfig):
    name = "grid"
    verbose_name = "Compute Grid"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        make_database_folder()
        import_module("grid.checks")
        import_module("grid.composition").compose()
        make_local = import_module("grid.models.dataplane").make_local
        connection_created.connect(measure_statements, dispatch_uid="statements")
        if connection.vendor == "postgresql":  # its driver is imported nowhere else
            read_quickly = import_module("grid.database.timestamps").read_timestamps_quickly
            connection_created.connect(read_quickly, dispatch_uid="timestamps")
        pre_migrate.connect(take_away, sender=self, dispatch_uid="triggers")
        post_migrate.connect(install, sender=self, dispatch_uid="triggers")
        post_migrate.connect(make_local, sender=self, dispatch_uid="data planes")


def make_database_folder() -> None:
    """Make var/ where the database is a file in it, for its owner alone: in a fresh clone SQLite could open no file there."""
    if Path(settings.DATABASES["default"]["NAME"]).parent == settings.VAR_DIR:
        with suppress(OSError):  # where nothing can be written, the database says so itself
            settings.VAR_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)
