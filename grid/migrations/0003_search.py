from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

# The expressions are those that `icontains` compares, so that it finds the index.
_INDEX = """
CREATE INDEX history_by_text ON grid_execution USING gin (
    upper(title::text) gin_trgm_ops, upper(id::text) gin_trgm_ops, upper(message::text) gin_trgm_ops, upper(node_name::text) gin_trgm_ops
) WHERE ended_at IS NOT NULL
"""


def make(apps: object, editor: BaseDatabaseSchemaEditor) -> None:
    if editor.connection.vendor == "postgresql":
        editor.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
        editor.execute(_INDEX)


def drop(apps: object, editor: BaseDatabaseSchemaEditor) -> None:
    if editor.connection.vendor == "postgresql":
        editor.execute("DROP INDEX history_by_text")


class Migration(migrations.Migration):
    """The text of what has ended is searched by trigrams on PostgreSQL; SQLite's search is bounded instead."""

    dependencies = [("grid", "0002_triggers")]
    operations = [migrations.RunPython(make, drop)]
