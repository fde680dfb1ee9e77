"""Reads where a program writes, perhaps at this moment: each folder is opened from the one above it, and no link is followed."""

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

KEPT = ".kept"  # the ending of a saved .git
_LONGEST_PATH = 4095  # bytes; no system call takes more
_LARGEST_HOLES = (
    16 * 2**30
)  # bytes of a sparse file that are on no disk: to read them takes longer than there is time to save


class WorkFile(NamedTuple):
    """A file or link of the working copy: where it is, its size, and a stamp that changes with each change of it."""

    path: str
    size: int
    stamp: str


class WorkTree:
    """A folder in which a program writes, perhaps at this moment. Each folder in it is opened from the one above it, without following a
    link, and held, so what a program puts in the place of one is not read instead."""

    def __init__(self, root: Path) -> None:
        self._names: list[str] = []
        above = os.open(root.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._folders = [open_at(above, root.name, is_folder=True)]
        finally:
            os.close(above)

    def __enter__(self) -> "WorkTree":
        return self

    def __exit__(self, *_: object) -> None:
        self._close(0)
        os.close(self._folders.pop())

    def folder(self, path: str) -> int:
        """Return the descriptor of a folder, "" for the root; it is good until another is asked for. Raise OSError."""
        names = path.split("/") if path else []
        pairs = zip(names, self._names, strict=False)
        same = next((at for at, (new, old) in enumerate(pairs) if new != old), min(len(names), len(self._names)))
        self._close(same)
        for name in names[same:]:
            self._folders.append(open_at(self._folders[-1], name, is_folder=True))
            self._names.append(name)
        return self._folders[-1]

    def _close(self, depth: int) -> None:
        while len(self._names) > depth:
            self._names.pop()
            os.close(self._folders.pop())


def open_at(folder: int, name: str, *, is_folder: bool = False) -> int:
    """Open a file or a folder for reading, and give its owner the right to. Raise OSError; its number is ELOOP for a link. What is there
    is looked at before it is opened: a pipe would be waited for, and a device may do something."""
    place = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        mode = os.fstat(place).st_mode
        if stat.S_ISLNK(mode):
            raise OSError(errno.ELOOP, "It is a link")
        if not (stat.S_ISDIR(mode) if is_folder else stat.S_ISREG(mode)):
            raise OSError(errno.EINVAL, "It is no folder" if is_folder else "It is no file")
        itself, needed = f"/proc/self/fd/{place}", 0o500 if is_folder else 0o400
        if mode & needed != needed:
            with suppress(OSError):  # not ours
                Path(itself).chmod(stat.S_IMODE(mode) | needed)
        return os.open(itself, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    finally:
        os.close(place)


def scan(tree: WorkTree, below: str, left_out: dict[str, str], *, without: str = "") -> dict[str, WorkFile]:
    """Return files and links by the paths under which they are saved, but for the folder `without`; note what cannot be saved. Pipes,
    sockets and devices have nothing to save."""
    entries: dict[str, WorkFile] = {}
    waiting = [(below, below)]
    while waiting:
        path, saved = waiting.pop()
        try:
            statuses = list_folder(tree.folder(path))
        except OSError as error:
            if path == below:
                raise
            if not isinstance(error, FileNotFoundError):  # that one is gone meanwhile
                left_out[saved] = "it cannot be read"
            continue
        for name, status in statuses.items():
            here, there = _join(path, name), _join(saved, _saved_name(name, statuses))
            if here == without or not any(kind(status.st_mode) for kind in (stat.S_ISDIR, stat.S_ISREG, stat.S_ISLNK)):
                continue
            if why := _why_left_out(there, status):
                left_out[there] = why
            elif stat.S_ISDIR(status.st_mode):
                waiting.append((here, there))
            else:
                entries[there] = WorkFile(here, status.st_size, _stamp(status))
    return entries


def list_folder(folder: int) -> dict[str, os.stat_result]:
    statuses = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # gone meanwhile
                statuses[entry.name] = entry.stat(follow_symlinks=False)
    return statuses


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _saved_name(name: str, siblings: Mapping[str, object]) -> str:
    """Return the name under which it is saved: git never commits a .git, in any spelling, and leaves out whatever lies beside it."""
    if name.lower() == ".git":
        name += KEPT
        while name in siblings:
            name += KEPT
    return name


def with_parents(path: str) -> Iterator[str]:
    """Yield the path and those of the folders above it."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def _why_left_out(path: str, status: os.stat_result) -> str:
    if len(os.fsencode(path)) > _LONGEST_PATH:
        return f"its path has more than {_LONGEST_PATH} bytes"
    if stat.S_ISREG(status.st_mode) and status.st_size - 512 * status.st_blocks > _LARGEST_HOLES:
        return "most of it is on no disk"
    if stat.S_ISLNK(status.st_mode) and path.rpartition("/")[2].lower() == ".gitmodules":
        return "git takes no link of that name"
    return ""


def _stamp(status: os.stat_result) -> str:
    return f"{status.st_ino}.{status.st_size}.{status.st_mtime_ns}.{status.st_ctime_ns}"
