"""Empties the database after a test that has transactions of its own.

Django's `flush` deletes from every table and then looks for content types and permissions to create, which takes longer than most of
these tests. Here only tables that have rows are emptied, and what Django's migrations wrote stays.
"""

from typing import Any

from django.db import connections, transaction
from django.test import TransactionTestCase

from grid.models.dataplane import make_local

KEPT = {"django_content_type", "auth_permission"}


def empty(using: str) -> None:
    """Delete all rows but those of Django's migrations, and leave the data plane that `flush` would create again."""
    connection = connections[using]
    names = [name for name in connection.introspection.django_table_names() if name not in KEPT]
    filled = " UNION ALL ".join(f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM {name})" for name in names)
    with transaction.atomic(using), connection.cursor() as cursor:  # references are checked when it ends
        cursor.execute(filled)
        for (name,) in cursor.fetchall():
            cursor.execute(f"DELETE FROM {name}")
    make_local(using)


def use() -> None:
    """Empty so after each test that has transactions of its own."""

    def teardown(case: Any) -> None:
        for using in case._databases_names(include_mirrors=False):
            empty(using)

    untyped: Any = TransactionTestCase
    untyped._fixture_teardown = teardown
