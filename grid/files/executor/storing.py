"""Has git store files of the working copy, which it gets as descriptors and never opens by itself."""

import errno
import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO

from .gitcommand import GitError, git
from .task import Task
from .tree import WorkFile, WorkTree, open_at

_BATCH = 200  # files that are open at a time
_LONGEST_RULES_PATH, _LARGEST_RULES = 1000, 2**20  # bytes, of a .gitignore that is obeyed


def ignored_paths(task: Task, tree: WorkTree, entries: Mapping[str, WorkFile], asked: Iterable[str]) -> list[str]:
    """Return which of the paths a .gitignore names. Git reads copies of these, not the program's own."""
    with tempfile.TemporaryDirectory(dir=task.state) as rules:
        for path, entry in entries.items():
            folder, _, name = path.rpartition("/")
            if name == ".gitignore" and len(path) <= _LONGEST_RULES_PATH and entry.size <= _LARGEST_RULES:
                Path(rules, folder).mkdir(parents=True, exist_ok=True)
                with (
                    suppress(OSError),
                    os.fdopen(open_at(tree.folder(entry.path.rpartition("/")[0]), name), "rb") as file,
                ):
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
            try:
                ids = git(
                    task, "hash-object", "-w", "--no-filters", "--stdin-paths", given=given, descriptors=numbers
                ).split()
            except GitError:  # a file that becomes shorter while it is read fails, and all that are stored with it
                if len(batch) > 1:
                    waiting += [[path] for path in files]
                else:
                    left_out[batch[0]] = "it cannot be read"
                    git(
                        task, "hash-object", "-w", "--stdin", given=os.urandom(16)
                    )  # raises where nothing can be stored
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
    """Return some of the paths, each with the reason."""
    shown = []
    for path, why in sorted(left_out.items())[:3]:
        text = path if len(path) <= 60 else f"{path[:30]}…{path[-29:]}"
        shown.append(f"{text.encode(errors='replace').decode()} ({why})")
    return ", ".join([*shown, *(["…"] if len(left_out) > len(shown) else [])])
