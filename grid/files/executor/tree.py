"""Reads where a program writes, perhaps at this moment: each folder is opened from the one above it, and no link is followed."""

import errno
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, NamedTuple

from .gitcommand import GitError, git
from .task import Task

KEPT = ".kept"  # the ending of a saved .git
_LONGEST_PATH = 4095  # bytes; no system call takes more
# Bytes of a sparse file that are on no disk: to read them takes longer than there is time to save.
_LARGEST_HOLES = 16 * 2**30


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
    """Return files and links (no pipes or devices), but for the folder `without`, by their paths when saved; note what cannot be saved."""
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


_BATCH = 200  # files that are open at a time
_LONGEST_RULES_PATH, _LARGEST_RULES = 1000, 2**20  # bytes, of a .gitignore that is obeyed


def ignored_paths(task: Task, tree: WorkTree, entries: Mapping[str, WorkFile], asked: Iterable[str]) -> list[str]:
    """Return which of the paths a .gitignore names. Git reads copies of these, not the program's own."""
    with tempfile.TemporaryDirectory(dir=task.state) as rules:
        for path, entry in entries.items():
            folder, _, name = path.rpartition("/")
            if name == ".gitignore" and len(path) <= _LONGEST_RULES_PATH and entry.size <= _LARGEST_RULES:
                Path(rules, folder).mkdir(parents=True, exist_ok=True)
                above = entry.path.rpartition("/")[0]
                with suppress(OSError), os.fdopen(open_at(tree.folder(above), name), "rb") as file:
                    Path(rules, path).write_bytes(file.read(_LARGEST_RULES))
        paths = os.fsencode("".join(f"./{path}\0" for path in asked))
        here = {"GIT_WORK_TREE": rules, "GIT_LITERAL_PATHSPECS": "0"}
        command = ("-C", rules, "check-ignore", "-z", "--stdin", "--no-index")
        try:
            answer = git(task, *command, given=paths, variables=here)
        except GitError as error:
            if error.code != 1:  # none
                raise
            return []
    return [path.removeprefix("./") for path in answer.split("\0")]


def store_files(
    task: Task, tree: WorkTree, entries: Mapping[str, WorkFile], left_out: dict[str, str]
) -> dict[str, str]:
    """Have git store files and links; return mode and object by path, and note what could not be read."""
    stored: dict[str, str] = {}
    paths = list(entries)
    waiting = [paths[start : start + _BATCH] for start in range(0, len(paths), _BATCH)]
    while waiting:
        batch = waiting.pop()
        with ExitStack() as opened:
            files: dict[str, tuple[int, str]] = {}
            for path in batch:
                try:
                    file, mode = _content(task, tree, entries[path].path)
                    files[path] = opened.enter_context(file).fileno(), mode
                except FileNotFoundError:  # gone meanwhile
                    continue
                except OSError:
                    left_out[path] = "it cannot be read"
            numbers = [number for number, _ in files.values()]
            given = "".join(f"/proc/self/fd/{number}\n" for number in numbers).encode()
            store = ("hash-object", "-w", "--no-filters", "--stdin-paths")
            try:
                ids = git(task, *store, given=given, descriptors=numbers).split()
            except GitError:  # a file that becomes shorter while it is read fails, and all that are stored with it
                if len(batch) > 1:
                    waiting += [[path] for path in files]
                else:
                    left_out[batch[0]] = "it cannot be read"
                    # Raises where nothing can be stored.
                    git(task, "hash-object", "-w", "--stdin", given=os.urandom(16))
                continue
        stored |= {path: f"{mode} {id}" for (path, (_, mode)), id in zip(files.items(), ids, strict=True)}
    return stored


def _content(task: Task, tree: WorkTree, path: str) -> tuple[IO[bytes], str]:
    """Return an open file with what git stores of the file or link, and git's mode. Raise OSError."""
    above, _, name = path.rpartition("/")
    folder = tree.folder(above)
    try:
        number = open_at(folder, name)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        target = os.fsencode(os.readlink(name, dir_fd=folder))
        file = tempfile.TemporaryFile(dir=task.state)  # noqa: SIM115 - who asks for it closes it
        file.write(target)
        file.flush()
        return file, "120000"
    return os.fdopen(number, "rb"), "100755" if os.fstat(number).st_mode & 0o100 else "100644"


def make_tree(task: Task, files: Mapping[str, str]) -> str:
    """Return git's tree of these; where one is a folder of another, the later one is in it."""
    git(task, "read-tree", "--empty")
    lines = "".join(f"{facts}\t{path}\0" for path, facts in files.items())
    git(task, "update-index", "-z", "--index-info", given=os.fsencode(lines))
    return git(task, "write-tree")


def list_left_out(left_out: Mapping[str, str]) -> str:
    some = sorted(left_out.items())[:3]
    short = ((path if len(path) <= 60 else f"{path[:30]}…{path[-29:]}", why) for path, why in some)
    shown = [f"{path.encode(errors='replace').decode()} ({why})" for path, why in short]
    return ", ".join([*shown, *(["…"] if len(left_out) > 3 else [])])
