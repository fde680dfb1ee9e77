"""Deletes and moves a file or folder of a project's repository for a person at the dashboard, as one commit on the main branch. What
somebody else has changed at that path since the commit that the page showed is refused; changes elsewhere are kept."""

from collections.abc import Callable

from grid.core.gitnames import COMMIT, MAIN
from grid.core.translation import gettext as _
from grid.files import git
from grid.files.git import AnswerTooLong, GitFailed
from grid.files.repositories import Repository, is_path
from grid.files.uploading import (
    LONGEST_PATH,
    TRIES,
    UploadRefused,
    advance,
    check_folders,
    commit_on,
    is_gits,
    problem_of_folder,
)

_GONE = "0 " + "0" * 40  # what git calls a path that is to be no more
_Files = list[tuple[str, bytes]]  # git's mode and object, and the path, which need not be UTF-8


class FileChanged(UploadRefused):
    """Somebody has changed what the page showed."""


def count_files(repository: Repository, commit: str, path: str) -> int:
    """Return how many files a path of a commit has. Raise GitFailed."""
    return len(_files(repository, commit, path))


def delete(repository: Repository, path: str, *, shown: str, author: str) -> str:
    """Commit that the file or folder of the commit `shown` is no more; return the commit. Raise UploadRefused, GitFailed, OSError."""

    def lines(now: str) -> bytes:
        return _removed(_files_in(repository, now, path))

    return _change(repository, path, shown, lines, author=author, title=_("Delete {path}", path=path))


def move(repository: Repository, path: str, target: str, *, shown: str, author: str) -> str:
    """Commit that the file or folder has another path, and return the commit. Raise as `delete` does."""
    if problem := problem_of_folder(target) or (None if target else _("A name cannot be empty.")):
        raise UploadRefused(problem)
    if target == path:
        raise UploadRefused(_("That is its path already. Name another."))
    if target.startswith(f"{path}/"):
        raise UploadRefused(_("It cannot be moved into itself."))

    def lines(now: str) -> bytes:
        check_folders(repository, now, target.rpartition("/")[0])
        if repository.entry(now, target) is not None:
            raise UploadRefused(_("{target} exists already. Name another path, or delete that first.", target=target))
        old = _files_in(repository, now, path)
        new = [(facts, target.encode() + name[len(path.encode()) :]) for facts, name in old]
        _check_moved(old, new)
        return _removed(old) + b"".join(f"{facts}\t".encode() + name + b"\0" for facts, name in new)

    return _change(
        repository, path, shown, lines, author=author, title=_("Move {path} to {target}", path=path, target=target)
    )


def _change(
    repository: Repository, path: str, shown: str, lines: Callable[[str], bytes], *, author: str, title: str
) -> str:
    if not path or not is_path(path) or not COMMIT.fullmatch(shown) or repository.resolve(shown) is None:
        raise UploadRefused(_("There is no such file. Open it again from the list."))
    seen = repository.entry(shown, path)
    for _unused in range(TRIES):
        before = repository.resolve(MAIN)
        present = repository.entry(before, path) if before is not None else None
        if before is None or present is None:
            raise FileChanged(
                _("{path} is no longer on {branch}: somebody has deleted or moved it.", path=path, branch=MAIN)
            )
        if present != seen:
            raise FileChanged(
                _("{path} was changed since you opened this page. Look at it again, then decide.", path=path)
            )
        if advance(repository, before, commit := _commit(repository, before, lines, author=author, title=title)):
            return commit
    raise GitFailed(_("others push all the time"))


def _commit(repository: Repository, before: str, lines: Callable[[str], bytes], *, author: str, title: str) -> str:
    try:
        return commit_on(repository, before, lines(before), author=author, title=title)
    except AnswerTooLong as error:
        raise UploadRefused(_("These are too many files for this page. Do it in a workspace.")) from error


def _files(repository: Repository, commit: str, path: str) -> _Files:
    files: _Files = []
    for line in git.run(repository.path, "ls-tree", "-r", "-z", commit, "--", path).split(b"\0"):
        facts, _tab, name = line.partition(b"\t")
        if name:
            mode, _type, object_id = facts.decode().split()
            files.append((f"{mode} {object_id}", name))
    return files


def _files_in(repository: Repository, commit: str, path: str) -> _Files:
    """Return the files of a path; raise UploadRefused for a folder with none, which a commit made by hand can have."""
    if files := _files(repository, commit, path):
        return files
    raise UploadRefused(
        _("There is no file in {path}. It is gone with the next change of a file beside it.", path=path)
    )


def _removed(files: _Files) -> bytes:
    return b"".join(f"{_GONE}\t".encode() + name + b"\0" for _, name in files)


def _check_moved(old: _Files, new: _Files) -> None:
    """Raise UploadRefused for what may not have another path. The executor gives a saved `.git` its name back for the one person who is in
    its path's history. At a new path that would be who moved it, and git would obey a configuration that somebody else wrote."""
    longest = max(len(name) for _, name in new)
    if longest > max(LONGEST_PATH, *(len(name) for _, name in old)):
        raise UploadRefused(
            _("A path would have {longest} bytes; at most {most} are possible.", longest=longest, most=LONGEST_PATH)
        )
    for _unused, name in old:
        if any(is_gits(part) for part in name.decode(errors="replace").split("/")):
            raise UploadRefused(_("There is a Git repository of its own in it. Move it in a workspace."))
