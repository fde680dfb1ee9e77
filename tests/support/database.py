"""The tests' database in a file, as in production: in memory, a writer does not wait for another but is refused."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connection, connections

ON_SQLITE = pytest.mark.skipif(connection.vendor != "sqlite", reason="about SQLite's file")
ON_POSTGRESQL = pytest.mark.skipif(connection.vendor != "postgresql", reason="about PostgreSQL's server")


@contextmanager
def database_on_file(path: Path) -> Iterator[None]:
    """With all that is in memory now. A server's database is shared by several writers as it is."""
    if connections["default"].vendor != "sqlite":
        yield
        return
    in_memory, settings = connections["default"], connections.settings["default"]
    in_memory.ensure_connection()
    copy = sqlite3.connect(path)
    in_memory.connection.backup(copy)
    # As each connection asks; of several that are the first to ask, SQLite tells all but one at once that the database is locked.
    copy.execute("PRAGMA journal_mode=WAL")
    copy.close()
    name, settings["NAME"] = settings["NAME"], str(path)
    connections["default"] = connections.create_connection("default")
    try:
        yield
    finally:
        connections["default"].close()
        settings["NAME"], connections["default"] = name, in_memory
