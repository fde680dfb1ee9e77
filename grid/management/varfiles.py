"""The files that var/ holds, as a table, and the refusal to start when one is damaged. `docs/repair.md` is the same table for people."""

from dataclasses import replace
from pathlib import Path

from django.conf import settings
from django.core.management.base import CommandError
from django.db import DEFAULT_DB_ALIAS, DatabaseError, InterfaceError, connection

from grid.checks import former_databases
from grid.core.data_files import LEAST_ROOM, SECRET_KEY, ManagedFile, damages, database_rows, json_of, lack_of_room
from grid.dataplanes import UnsupportedDataPlanes, data_planes
from grid.management.demo import DemoAccount
from grid.sandbox.data_files import KEPT_FILES as CLUSTER_FILES

DATABASE_FILES = database_rows(
    "grid.sqlite3",
    "accounts, tiers, projects, settings and the history of executions",
    "move its whole folder away and start afresh: all of it, and everything that runs, is then lost",
    "django_migrations",
)
KEPT_FILES: tuple[ManagedFile, ...] = (
    *DATABASE_FILES,
    SECRET_KEY,
    ManagedFile(
        "demo-users.json",
        "the passwords of the demo accounts as they were first printed",
        "move it away: the passwords stay as they are but are no longer printed, and GRID_DEMO=1 .venv/bin/python manage.py "
        "changepassword NAME sets one",
        json_of(list[DemoAccount]),
    ),
    ManagedFile("kubeconfig", "the way to reach the embedded cluster", made_anew=True),
    ManagedFile("run", "what is needed while Compute Grid runs", is_folder=True),
    ManagedFile("run/lock", "nothing: it shows that Compute Grid runs here", may_be_empty=True, is_written=True),
    ManagedFile("run/processes.json", "which programs run", may_be_empty=True, made_anew=True),
    ManagedFile("log", "what the programs printed", is_folder=True),
    ManagedFile("log/*.log*", "what a program printed", may_be_empty=True, is_written=True),
    ManagedFile("images", "pulled images", is_folder=True, is_free_below=True),
    ManagedFile("cluster", "the embedded cluster", is_folder=True),
    *(replace(kept, name=f"cluster/{kept.name}") for kept in CLUSTER_FILES),
)


def refuse_damage(folder: Path) -> None:
    """Raise CommandError with a line for each damaged file, or for a full disk, where not even reading is safe."""
    full = lack_of_room(folder, LEAST_ROOM)
    if problems := [full] if full else damages(folder, KEPT_FILES):
        raise CommandError("\n".join(problems))


def refuse_unusable_database() -> None:
    """Raise CommandError when the database of the settings cannot be used; for programs that need nothing else of var/."""
    database = settings.DATABASES["default"]
    if database["ENGINE"] == "django.db.backends.sqlite3":
        path = Path(database["NAME"])
        if not path.exists() and not path.is_symlink():
            raise CommandError(f"There is no database at {path}: make one with manage.py migrate, or set DATABASE_URL.")
        rows = [replace(kept, name=kept.name.replace("grid.sqlite3", path.name)) for kept in DATABASE_FILES]
        if problems := damages(path.parent, rows):
            raise CommandError("\n".join(problems))
    refuse_former_database()
    try:
        data_planes()
    except UnsupportedDataPlanes as error:
        raise CommandError(str(error)) from error
    finally:
        connection.close()


def refuse_former_database() -> None:
    """Raise CommandError for a database made by an earlier version; do nothing while the database does not answer."""
    try:
        errors = former_databases(None, databases=[DEFAULT_DB_ALIAS])
    except (DatabaseError, InterfaceError):
        return
    finally:
        connection.close()
    if errors:
        raise CommandError(f"{errors[0].msg} {errors[0].hint}")
