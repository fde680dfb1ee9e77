"""The files that programs keep on disk, as rows of a table: what each holds, how damage shows, and what to do about it.

They are checked before anything is started or written, so that a damaged file is left as it was found. Nothing here writes.
"""

import os
import shutil
import sqlite3
import stat
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec

from grid.core.decoding import prepared
from grid.core.translation import gettext as _

# Returns what is wrong with a readable file, as the end of a sentence that begins with its name; "" when nothing is.
Check = Callable[[Path], str]

# More than readiness asks for (`grid.database.write_probe`), or a start would wait in vain for its programs.
LEAST_ROOM = 64 * 2**20

_MAGIC = b"SQLite format 3\0"
_WAL_MAGIC = 0x377F0682  # its last bit says in which byte order the checksums are
_WAL_HEADER = 32


def anything(path: Path) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class ManagedFile:
    """A file or folder. `name` is relative to the table's folder, with * for any part of a name; `advice` follows "restore it, or".
    `is_free_below` is for folders whose content is checked elsewhere. A file that is `made_anew` is only a cache, so that its content does
    not matter."""

    name: str
    holds: str
    advice: str = _("move it away: it is created again")
    check: Check = anything
    may_be_empty: bool = False
    is_written: bool = False
    is_folder: bool = False
    is_free_below: bool = False
    made_anew: bool = False

    def covers(self, name: str) -> bool:
        """Return True when a path below the table's folder belongs to this row."""
        return fnmatchcase(name, self.name) or (self.is_free_below and fnmatchcase(name, f"{self.name}/*"))


def damages(folder: Path, table: Sequence[ManagedFile]) -> list[str]:
    sentences = []
    for kept in table:
        # Dangling links included: what is written through one would appear elsewhere.
        for path in sorted(folder.glob(kept.name)) if "*" in kept.name else [folder / kept.name]:
            if os.path.lexists(path) and (problem := damage(path, kept)):
                remedy = _("restore it from a backup, or {advice}", advice=kept.advice)
                if "Permission denied" in problem:
                    remedy = _(
                        "give it to the user who starts this (chown, chmod u+rw), or {advice}", advice=kept.advice
                    )
                elif kept.made_anew or kept.may_be_empty:
                    remedy = kept.advice
                about = {"holds": kept.holds, "problem": problem, "remedy": remedy}
                sentences.append(_("{path}, which holds {holds}, {problem}: {remedy}.", path=path, **about))
    return sentences


def damage(path: Path, kept: ManagedFile) -> str:
    """Return what is wrong with one file; "" when nothing is."""
    try:
        file = path.stat()
        if kept.is_folder:
            return "" if stat.S_ISDIR(file.st_mode) else _("is no folder")
        if stat.S_ISDIR(file.st_mode):
            return _("is a folder and no file")
        if not stat.S_ISREG(file.st_mode):
            return _("is no ordinary file")
        if kept.made_anew:
            return ""
        with path.open("rb"):
            pass
        if kept.is_written and not os.access(path, os.W_OK):
            return _("cannot be written ({reason})", reason="Permission denied")
        if not file.st_size:
            return "" if kept.may_be_empty else _("is empty")
        return kept.check(path)
    except FileNotFoundError:
        # SQLite removes its -wal and -shm when the last process closes them, which may be between the look at the folder and this one.
        return _("is a link that leads nowhere") if os.path.lexists(path) else ""
    except OSError as error:
        return _("cannot be read ({reason})", reason=error.strerror)


def lack_of_room(folder: Path, needed: int) -> str:
    """Return a sentence when fewer than `needed` bytes are free on the disk of the folder, or of its nearest existing parent; else ""."""
    disk = next((shutil.disk_usage(parent) for parent in (folder, *folder.parents) if parent.is_dir()), None)
    if disk is None or disk.total == 0 or disk.free >= needed:  # no disk has a size of 0: /proc and the like
        return ""
    sentence = _(
        "The disk of {folder} is full ({free:.1f} MiB are left, {needed:.0f} MiB are needed): "
        "make room and start again; nothing was changed."
    )
    return sentence.format(folder=folder, free=disk.free / 2**20, needed=needed / 2**20)


# --- Checks ---


def sqlite_database(*tables: str) -> Check:
    """Return a check that the database is whole, and has one of the tables unless it was just created and has none."""

    def check(path: Path) -> str:
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                return _("is no SQLite database")
        companions = [path.with_name(f"{path.name}-{end}") for end in ("wal", "shm")]
        if any(os.path.lexists(companion) and not companion.is_file() for companion in companions):
            return ""  # the companion's own row reports it
        # Opening without `immutable` would create a log where there is none; and without a log nobody has the database open.
        how = "mode=ro" if companions[0].exists() else "mode=ro&immutable=1"
        try:
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True)) as database:
                verdict = str(database.execute("PRAGMA quick_check(1)").fetchone()[0])
                present = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        except sqlite3.Error as error:
            is_busy = error.sqlite_errorname == "SQLITE_BUSY"  # another process is recovering or closing it
            return "" if is_busy else _("is damaged ({error})", error=error)
        if verdict != "ok":
            return _("is damaged ({error})", error=verdict.strip().splitlines()[-1])
        return _("is a database of another program") if present and not present & set(tables) else ""

    return check


def write_ahead_log(path: Path) -> str:
    """Check the log's header: SQLite ignores and overwrites a log whose header it does not recognize. A log that is truncated after its
    header is what a crash leaves: SQLite recovers all committed transactions that are whole."""
    with path.open("rb") as file:
        head = file.read(_WAL_HEADER)
    words = [int.from_bytes(head[at : at + 4], "big") for at in range(0, len(head), 4)]
    if len(head) < _WAL_HEADER or words[0] & ~1 != _WAL_MAGIC:
        return _("is no log of a SQLite database")
    order = "big" if words[0] & 1 else "little"
    first = second = 0
    for at in range(0, _WAL_HEADER - 8, 8):
        first = (first + int.from_bytes(head[at : at + 4], order) + second) & 0xFFFFFFFF  # type: ignore[arg-type]
        second = (second + int.from_bytes(head[at + 4 : at + 8], order) + first) & 0xFFFFFFFF  # type: ignore[arg-type]
    return "" if [first, second] == words[6:8] else _("is damaged (its head has another checksum)")


def json_of(shape: Any) -> Check:

    def check(path: Path) -> str:
        try:
            msgspec.json.decode(path.read_bytes(), type=prepared(shape))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return _("cannot be understood ({error})", error=error)
        return ""

    return check


def one_secret(least: int) -> Check:
    """Return a check that the file is one line of at least `least` printable characters."""

    def check(path: Path) -> str:
        text = path.read_bytes().strip()
        if not all(33 <= byte < 127 for byte in text):
            return _("is not one line of letters, digits and signs")
        few = _("has {length} characters, and at least {least} are needed", length=len(text), least=least)
        return few if len(text) < least else ""

    return check


def database_rows(name: str, holds: str, advice: str, *tables: str) -> tuple[ManagedFile, ...]:
    """Return the rows of a SQLite database in WAL mode and its two companion files."""
    newest = _("move it away: the newest changes, which were not yet taken over into the database, are then lost")
    return (
        ManagedFile(f"{name}-wal", _("the newest changes of {name}", name=name), newest, write_ahead_log, True, True),
        ManagedFile(f"{name}-shm", _("an index into {name}-wal", name=name), may_be_empty=True, made_anew=True),
        ManagedFile(name, holds, advice, sqlite_database(*tables), is_written=True),
    )


# Read by the settings, so before anything else; the least length is Django's own measure (its check security.W009).
SECRET_KEY = ManagedFile(
    "secret-key",
    _("the key that signs logins and opens workspaces"),
    _(
        "move it away: a new one is created, everybody has to log in again, and workspaces that run have to be launched again"
    ),
    one_secret(50),
)
