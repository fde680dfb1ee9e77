from django.apps import AppConfig


class GridConfig(AppConfig):
    name = "grid"
    verbose_name = "Compute Grid"
    default_auto_field = "django.db.models.BigAutoField"
