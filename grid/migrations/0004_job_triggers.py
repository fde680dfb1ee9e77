from django.db import migrations


class Migration(migrations.Migration):
    """Nothing but a step, after which `grid.database.triggers` makes those of jobs, too; so `migrate --check` says that they lack."""

    dependencies = [("grid", "0003_search")]
    operations = []
