"""A SQLite database that says for real what it says on a full disk."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection


@contextmanager
def full_database() -> Iterator[None]:
    """SQLite may take no further page, and says what it says on a full disk."""
    if connection.vendor != "sqlite":
        pytest.skip("a server's disk is not ours to fill")
    with connection.cursor() as cursor:
        # What other tests have deleted leaves pages that would be used first.
        cursor.execute("CREATE TABLE filler (bytes BLOB)")
        while cursor.execute("PRAGMA freelist_count").fetchone()[0]:
            cursor.execute("INSERT INTO filler VALUES (zeroblob(3000))")
        pages = cursor.execute("PRAGMA page_count").fetchone()[0]
        cursor.execute(f"PRAGMA max_page_count = {pages}")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA max_page_count = 1073741823")
            cursor.execute("DROP TABLE filler")
