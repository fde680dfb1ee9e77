"""The product set up in a benchmark's process: on a SQLite file of its own, or on the empty PostgreSQL database that DATABASE_URL names."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def in_database(work: Callable[[], object]) -> None:
    """Do the work on a new, migrated database. What it imports of Django it has to import itself, because nothing is set up before."""
    with tempfile.TemporaryDirectory() as folder:
        set_up(folder)
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        work()


def set_up(folder: str) -> None:
    """Set Django up with the files of the product in the folder, which may be another process's."""
    os.environ |= {"GRID_VAR": folder, "GRID_SECRET_KEY": "benchmark", "GRID_LOG_LEVEL": "WARNING"}
    os.environ.setdefault("DATABASE_URL", f"sqlite:///{Path(folder) / 'grid.sqlite3'}")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "grid.settings")
    import django

    django.setup()
