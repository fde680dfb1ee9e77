"""Keeps what cannot be pushed, as a bundle or as an archive, and the repository within its bound."""

import os
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from .gitcommand import COMMAND_SECONDS, GitError, git
from .task import Task, TooLarge
from .tree import WorkTree

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def check_size(task: Task, more: int, what: str) -> None:
    """Raise TooLarge, with `what` became of it, when the repository on the volume would have more than it may."""
    if not task.largest:
        return
    size = (size_of(task.repository) + more) / 2**30
    if size > task.largest:
        raise TooLarge(
            f"{what}: the project's repository would have {size:.1f} GiB, and may have {task.largest} GiB. "
            "Ask an admin to raise that, or keep large files elsewhere: what is in the history stays there"
        )


def check_objects(task: Task, what: str) -> None:
    """Raise TooLarge, with `what` became of them, when the repository has no room for the objects of this execution."""
    check_size(task, size_of(task.git / "objects"), what)


def size_of(folder: Path) -> int:
    """Return the bytes of all that is in the folder."""
    size = 0
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            with suppress(OSError):  # gone meanwhile
                size += Path(place, name).lstat().st_size
    return size


def keep_bundle(task: Task, commit: str, began: str, *, at_home_first: bool = False) -> str:
    """Keep the commit as a bundle; return where: `repository`, `home`, or "" when nothing can be written."""
    places = (
        # What a server has may not be there when it is pushed again, so for that the bundle is whole, too.
        ("repository", task.repository / "unpushed", (f"^{began}",) if began and not task.remote else ()),
        ("home", task.home / "unpushed-files", ()),  # whole: perhaps the repository is what is broken
    )
    if task.remote:  # the bundle has all that the server has, and every run whose push fails leaves one
        try:
            check_objects(task, "")
        except TooLarge:
            at_home_first = True
    for place, folder, since in reversed(places) if at_home_first else places:
        try:
            git(task, "update-ref", "refs/heads/kept", commit)
            with _new_file(folder, f"{task.name}.bundle", is_shared=place == "repository") as file:
                git(task, "bundle", "create", "--quiet", "-", "refs/heads/kept", *since, output=file)
        except (GitError, OSError, subprocess.TimeoutExpired):
            continue
        return place
    return ""


def keep_copy(task: Task, *, only_at_home: bool = False) -> str:
    """Keep a copy of the files as an archive; return where: `home`, `copy` beside the branches, or "" when nothing can be written."""
    places = (("home", task.home / "unpushed-files"), ("copy", task.repository / "unpushed"))
    command = ["tar", "--ignore-failed-read", "--sparse", "-czf", "-", "."]
    for place, folder in places[:1] if only_at_home else places:
        with suppress(OSError, subprocess.TimeoutExpired), WorkTree(task.work) as tree:
            with _new_file(folder, f"{task.name}.tar.gz", is_shared=place == "copy") as file:
                done = subprocess.run(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    cwd=f"/proc/self/fd/{tree.folder('')}",  # below it tar opens folder by folder, and follows no link
                    start_new_session=True,
                    timeout=COMMAND_SECONDS,
                    check=False,
                )
                if done.returncode > 1:  # 1: a file changed meanwhile
                    raise OSError("tar failed")
            return place
    return ""


@contextmanager
def _new_file(folder: Path, name: str, *, is_shared: bool) -> Iterator[int]:
    """Yield the descriptor of a new file. It gets its name at the end if nothing is raised, in the place of what had it, even of a link. A
    program may write into the folder at the same time. Raise OSError, as where a link is in the place of the folder."""
    with ExitStack() as opened:
        above = os.open(folder.parent, _FOLDER)
        opened.callback(os.close, above)
        with suppress(FileExistsError):
            os.mkdir(folder.name, dir_fd=above)
        inside = os.open(folder.name, _FOLDER, dir_fd=above)
        opened.callback(os.close, inside)
        if is_shared:
            with suppress(PermissionError):
                os.fchmod(inside, 0o2770)  # the dashboard, another user of the same group, removes what it has taken in
        unfinished = f"{name}.{secrets.token_hex(8)}.unfinished"
        file = os.open(
            unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=inside
        )
        opened.callback(os.close, file)
        try:
            yield file
            os.rename(unfinished, name, src_dir_fd=inside, dst_dir_fd=inside)
        except BaseException:
            with suppress(OSError):
                os.unlink(unfinished, dir_fd=inside)
            raise
