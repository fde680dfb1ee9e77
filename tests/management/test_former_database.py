"""A database that an earlier version made is recognised by every command that would use it, and left as it is."""

import hashlib
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings


@pytest.fixture
def former(tmp_path: Path, first: str) -> Path:
    """What the first migration of the versions before left, as far as anybody looks; the second was written anew once."""
    path = tmp_path / "grid.sqlite3"
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute(
            "CREATE TABLE django_migrations (id INTEGER PRIMARY KEY, app varchar(255), name varchar(255), applied datetime)"
        )
        for app, name in (("auth", "0001_initial"), ("grid", first)):
            database.execute(
                "INSERT INTO django_migrations (app, name, applied) VALUES (?, ?, '2026-11-01')", (app, name)
            )
    database.close()
    return path


@pytest.mark.slow
@pytest.mark.parametrize(("first", "command"), [("0001_initial", "web"), ("0001_foundation", "up")])
def test_database_of_earlier_version_is_refused_with_advice(former: Path, command: str) -> None:
    before = hashlib.sha256(former.read_bytes()).digest()
    answer = subprocess.run(
        [sys.executable, "manage.py", command],
        cwd=settings.BASE_DIR,
        env=os.environ
        | {
            "DJANGO_SETTINGS_MODULE": "grid.settings",
            "GRID_VAR": str(former.parent),
            "GRID_DEMO": "1",
            "DATABASE_URL": f"sqlite:///{former}",
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert answer.returncode == 1
    assert f"The database {former} was created by an earlier version of Compute Grid" in answer.stderr
    assert "docs/repair.md says how to start afresh" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert hashlib.sha256(former.read_bytes()).digest() == before
