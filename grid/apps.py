from importlib import import_module

from django.apps import AppConfig
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate, pre_migrate

from grid.database.threads import measure_statements
from grid.database.triggers import install, take_away


class GridConfig(AppConfig):
    name = "grid"
    verbose_name = "Compute Grid"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        import_module("grid.checks")
        import_module("grid.models.lookups")
        import_module("grid.composition").compose()
        make_local = import_module("grid.models.dataplane").make_local
        connection_created.connect(measure_statements, dispatch_uid="statements")
        pre_migrate.connect(take_away, sender=self, dispatch_uid="triggers")
        post_migrate.connect(install, sender=self, dispatch_uid="triggers")
        post_migrate.connect(make_local, sender=self, dispatch_uid="data planes")
