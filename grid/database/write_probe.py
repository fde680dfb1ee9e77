"""Checks whether this installation can write: to its database, and to the folders that it and its libraries use.

A full disk lets the database go on answering reads, so reading proves nothing. A probe leaves nothing behind.
"""

import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, connection

from grid.core.translation import gettext as _

LEAST_FREE = 32 * 2**20  # bytes: room for SQLite's log between two checkpoints, and a few uploads


def problems() -> list[str]:
    """Return sentences that say why nothing can be written; [] when everything can."""
    return [*database_problems(), *folder_problems(folders())]


def database_problems() -> list[str]:
    """Return a sentence when PostgreSQL is read-only: a standby refuses every change, as after a wrong or failed-over address."""
    if connection.vendor != "postgresql":
        return []
    try:
        with connection.cursor() as cursor:
            cursor.execute("SHOW transaction_read_only")
            (read_only,) = cursor.fetchone()
    except DatabaseError as error:
        return [_("The database cannot be asked whether it can be written ({name}).", name=type(error).__name__)]
    sentence = _("The database can only be read: DATABASE_URL has to name the primary server.")
    return [sentence] if read_only == "on" else []


def folders() -> dict[str, Path]:
    """Return the folders that are written to besides a database server, by a name for people."""
    folders = {_("the temporary folder"): Path(tempfile.gettempdir())}
    name = str(settings.DATABASES["default"]["NAME"])
    if connection.vendor == "sqlite" and Path(name).is_absolute():
        folders[_("the database's folder")] = Path(name).parent
    return folders


def folder_problems(
    folders: Mapping[str, Path], *, free_bytes: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free
) -> list[str]:
    """Return one sentence for each folder that cannot be written to, or has hardly any space left."""
    sentences = []
    for name, path in folders.items():
        try:
            # Only writing reveals a quota or a read-only mount.
            with tempfile.TemporaryFile(dir=path) as file:
                file.write(bytes(4096))
            free = free_bytes(path)
        except OSError as error:
            sentences.append(_("Nothing can be written to {folder}: {reason}.", folder=name, reason=error.strerror))
            continue
        if free < LEAST_FREE:
            sentence = _(
                "The disk of {folder} is full: {free} MiB are free, and {least} MiB are needed. "
                "Delete files, or give it a larger disk."
            )
            sentences.append(sentence.format(folder=name, free=free // 2**20, least=LEAST_FREE // 2**20))
    return sentences
