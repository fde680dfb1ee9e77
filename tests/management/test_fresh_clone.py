"""The first commands of docs/installation.md, where no var/ exists yet."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from grid.apps import make_database_folder


def test_database_folder_is_made_for_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    var = tmp_path / "clone" / "var"
    monkeypatch.setattr(settings, "VAR_DIR", var)
    monkeypatch.setitem(settings.DATABASES["default"], "NAME", "grid")  # as PostgreSQL names one
    make_database_folder()
    assert not var.exists()
    monkeypatch.setitem(settings.DATABASES["default"], "NAME", str(var / "grid.sqlite3"))
    make_database_folder()
    assert stat.S_IMODE(var.stat().st_mode) & 0o077 == 0


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_fresh_clone_can_be_migrated(tmp_path: Path) -> None:
    own = {"DJANGO_SETTINGS_MODULE": "grid.settings", "GRID_VAR": str(tmp_path / "var"), "GRID_SECRET_KEY": "k" * 64}
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"} | own
    for command in (["makemigrations", "--check", "--dry-run"], ["migrate", "--plan"]):
        done = subprocess.run(
            [sys.executable, "manage.py", *command],
            cwd=settings.BASE_DIR,
            env=environment,
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "var" / "grid.sqlite3").exists()
