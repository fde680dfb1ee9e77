"""One migration for all test runs: who comes first sets up a database, and all others begin with a copy of it.

It is kept beside pytest's own files until any source changes that may have had a part in it. A run whose sources nobody ran before, as
each of CI's, migrates as an installation does.
"""

import fcntl
import hashlib
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.db import connection

from grid.core.translation import LANGUAGE

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".pytest_cache" / "migrated"


def share() -> None:
    """Have the tests' database in memory set up from the copy, or leave one for who comes later."""
    creation = connection.creation
    migrate = creation.create_test_db

    def create(**options: Any) -> str:
        with _alone() as copy:
            if copy.exists():
                name = _named()
                _begin_with(copy)
                return name
            name = migrate(**options)
            _keep(copy)
            return name

    setattr(creation, "create_test_db", create)  # noqa: B010 - a method, which mypy lets nobody assign


def migrate() -> None:
    """As `manage.py migrate`, for a process with a database of its own in a file."""
    if connection.introspection.table_names() or LANGUAGE != "en":  # a migration may store texts
        call_command("migrate", verbosity=0)
        return
    with _alone() as copy:
        if copy.exists():
            _begin_with(copy)
        else:
            call_command("migrate", verbosity=0)
            _keep(copy)


def put(file: Path) -> bool:
    """Put the copy in place of a database that is not there yet; return False when there is no copy."""
    with _alone() as copy:
        if copy.exists():
            shutil.copyfile(copy, file)
        return copy.exists()


@contextmanager
def _alone() -> Iterator[Path]:
    """Yield where the copy is or may be put, which nobody else does meanwhile."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("a") as lock:  # it ends with the process, if that is killed
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield FOLDER / f"{_digest()}.sqlite3"


def _digest() -> str:
    """Of all that may say what is in the database: migrations and models import from the rest, and triggers are made after a migration."""
    digest = hashlib.sha256(f"{version('django')} {version('django-axes')} {sqlite3.sqlite_version}".encode())
    for source in sorted((ROOT / "grid").rglob("*.py")):
        digest.update(str(source.relative_to(ROOT)).encode() + source.read_bytes())
    return digest.hexdigest()[:40]


def _named() -> str:
    """As `create_test_db` does: from now on the connection is to the tests' database."""
    untyped: Any = connection.creation
    name: str = untyped._get_test_db_name()
    connection.close()
    settings.DATABASES["default"]["NAME"] = connection.settings_dict["NAME"] = name
    return name


def _begin_with(copy: Path) -> None:
    connection.ensure_connection()
    with closing(sqlite3.connect(copy)) as source:
        source.backup(connection.connection)


def _keep(copy: Path) -> None:
    for former in FOLDER.glob("*.sqlite3"):
        former.unlink()
    being_made = copy.with_suffix(".new")
    being_made.unlink(missing_ok=True)
    with closing(sqlite3.connect(being_made)) as target:
        connection.connection.backup(target)
        target.execute("PRAGMA journal_mode = DELETE")  # one file, also of a database that has its log beside it
    being_made.rename(copy)
