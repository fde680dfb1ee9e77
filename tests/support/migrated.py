"""One migration for all workers of a test run: the first sets up its database, and the others begin with a copy of it."""

import fcntl
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection


def share(folder: Path) -> None:
    """Set up the database in memory from the copy in the run's folder, or leave one there for who comes later."""
    copy, creation = folder / "database.sqlite3", connection.creation
    migrate = creation.create_test_db

    def create(**options: Any) -> str:
        with (folder / "database.lock").open("a") as lock:  # it ends with the process, if that is killed
            fcntl.flock(lock, fcntl.LOCK_EX)
            if copy.exists():
                return _begin_with(copy)
            name = migrate(**options)
            being_made = copy.with_suffix(".new")
            with closing(sqlite3.connect(being_made)) as target:
                connection.connection.backup(target)
            being_made.rename(copy)
            return name

    setattr(creation, "create_test_db", create)  # noqa: B010 - a method, which mypy lets nobody assign


def _begin_with(copy: Path) -> str:
    """As `create_test_db` does, with the tables of the copy instead of the migrations'."""
    untyped: Any = connection.creation
    name: str = untyped._get_test_db_name()
    connection.close()
    settings.DATABASES["default"]["NAME"] = connection.settings_dict["NAME"] = name
    connection.ensure_connection()
    with closing(sqlite3.connect(copy)) as source:
        source.backup(connection.connection)
    return name
