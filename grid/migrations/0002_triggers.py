from django.db import migrations


class Migration(migrations.Migration):
    """Nothing but a step, after which `grid.database.triggers` makes what it is named after; so `migrate --check` says that it lacks."""

    dependencies = [("grid", "0001_foundation")]
    operations = []
