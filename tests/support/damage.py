"""Ways in which a file comes to harm, and which of them a row of a table of kept files says to notice."""

import contextlib
import ctypes
import os
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path

from grid.core.data_files import ManagedFile, anything

_PR_CAPBSET_DROP = 24
_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 1, 2


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _cut(path: Path) -> None:
    if path.read_bytes()[:6] == b"SQLite":  # what is still in its log would not be missed
        with contextlib.closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _garbage(path: Path) -> None:
    path.write_bytes(bytes((7 * number + 131) % 256 for number in range(max(512, path.stat().st_size))))


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _nowhere(path: Path) -> None:
    path.rename(path.with_name("moved elsewhere"))
    path.symlink_to(path.with_name("not there"))


def _unreadable(path: Path) -> None:
    path.chmod(0)


def _file(path: Path) -> None:
    shutil.rmtree(path)
    path.write_text("in the way")


DAMAGES: Mapping[str, Callable[[Path], None]] = {
    "empty": _empty,
    "cut": _cut,
    "garbage": _garbage,
    "folder": _folder,
    "nowhere": _nowhere,
    "unreadable": _unreadable,
    "file": _file,
}


def noticed(kept: ManagedFile) -> list[str]:
    """The damages that must be refused. What is made anew matters only where it stands in the way."""
    if kept.is_folder:
        return ["file", "nowhere"]
    if kept.made_anew:
        return ["folder", "nowhere"]
    content = [] if kept.check is anything else ["garbage"]
    if content and not kept.name.endswith("-wal"):  # a log that is cut short is what a crash leaves
        content.append("cut")
    return [*content, *([] if kept.may_be_empty else ["empty"]), "folder", "nowhere", "unreadable"]


def state(folder: Path) -> dict[str, str]:
    """Every path below a folder, and what is there; SQLite's index is its own, and changes when somebody looks."""
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.name.endswith("-shm"):
            continue
        with contextlib.suppress(OSError):
            content = sha256(path.read_bytes()).hexdigest() if path.is_file() else "not a file"
            files[str(path.relative_to(folder))] = content
    return files


def as_a_usual_user() -> None:
    """For a child process between fork and exec: root then minds the permissions of files, as everybody else does."""
    if os.geteuid() == 0:
        for capability in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
            ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
