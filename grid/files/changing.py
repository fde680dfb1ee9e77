"""Changes a project's repository for a person at the dashboard: uploads files, or deletes or moves a file or folder, as one commit on the
main branch, without a working copy.

The working copy of a pod is a folder on a disk, where a name can mean more than a name; so what is accepted here can be checked out
everywhere. What somebody else has changed at a path since the commit that the page showed is refused; changes elsewhere are kept.
"""

import tempfile
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path

from grid.core.errors import GridError
from grid.core.gitnames import COMMIT, MAIN
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import listed, listed_up_to, plural
from grid.files import git
from grid.files.executor import identity, size_of
from grid.files.git import AnswerTooLong, GitFailed
from grid.files.repositories import Repository, TreeEntry, is_path

LONGEST_NAME = 200  # bytes; Django cuts longer names than 255 characters without a word
LONGEST_PATH = 1000
TRIES = 5
_TITLE_NAMES = 3
_NOTHING = "0" * 40  # what git calls a branch that is not there, and a path that is to be no more
_Files = list[tuple[str, bytes]]  # git's mode and object, and the path, which need not be UTF-8
# Characters that turn or hide text, and those that end a line: of no use in a name, but to deceive.
_HIDDEN = frozenset("\u200b\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")


class UploadRefused(GridError):
    """A file cannot be put where it was to go; the message is a sentence for the person."""


class AlreadyThere(UploadRefused):
    """Files of these paths exist, and nobody has said that they are to be replaced."""

    def __init__(self, paths: Sequence[str]) -> None:
        shown = listed_up_to(_TITLE_NAMES, paths)
        super().__init__(ngettext("{paths} exists already.", "{paths} exist already.", len(paths), paths=shown))


def problem_of_name(name: str) -> str | None:
    """Return why a file or folder cannot have this name, as a sentence; None when it can."""
    shown = name[:60].encode(errors="replace").decode() + ("…" if len(name) > 60 else "")
    if not name.strip():
        return _("A name cannot be empty.")
    if any(unicodedata.category(letter) in ("Cc", "Cs") or letter in _HIDDEN for letter in name):
        return _("A name cannot have control characters or invisible ones.")
    if "/" in name or "\\" in name:
        return _("“{shown}” cannot have a slash in it.", shown=shown)
    if name in (".", ".."):
        return _("“{shown}” is no name of a file.", shown=shown)
    if is_gits(name):
        return _("“{shown}” is a name that Git keeps for itself.", shown=shown)
    if len(name.encode()) > LONGEST_NAME:
        return _("“{shown}” is too long: a name has at most {most} bytes.", shown=shown, most=LONGEST_NAME)
    return None


def problem_of_folder(path: str) -> str | None:
    """Return why files cannot be put into this folder, below the root, as a sentence; None when they can, and for the root itself."""
    if not path:
        return None
    if path.startswith("/") or len(path) > LONGEST_PATH:
        sentence = _("Name a folder below the project's files, such as data/raw, with at most {most} characters.")
        return sentence.format(most=LONGEST_PATH)
    return next((problem for part in path.split("/") if (problem := problem_of_name(part))), None)


def is_gits(name: str) -> bool:
    """Return whether some file system takes it for .git, or the executor for a .git that it has to give its name back."""
    seen = "".join(letter for letter in name if unicodedata.category(letter) != "Cf").casefold().rstrip(". ")
    return seen in (".git", "git~1") or seen.startswith((".git.kept", ".git:", ".git::"))


def upload(
    repository: Repository,
    folder: str,
    files: Mapping[str, bytes],
    *,
    author: str,
    replace: bool = False,
    largest: int = 0,
) -> str:
    """Commit the files to the folder of the main branch; return the commit, the present one when nothing differs. What others push
    meanwhile is kept. `largest` is how many GiB the repository may have, 0 for no bound. Raise UploadRefused, GitFailed, OSError."""
    _check_names(folder, files)
    _check_size(repository, files, largest)
    paths = {f"{folder}/{name}" if folder else name: content for name, content in files.items()}
    blobs: dict[str, str] = {}
    for _unused in range(TRIES):
        before = repository.resolve(MAIN)
        if before is None and (others := repository.branches()):
            sentence = _("The project's files have no branch {main}, only {name}.", main=MAIN, name=others[0].name)
            raise UploadRefused(sentence)
        known = {path: repository.entry(before, path) if before else None for path in paths}
        if before is not None:
            check_folders(repository, before, folder)
        _check_places(known, replace=replace)
        store = ("hash-object", "-w", "--stdin", "--no-filters")
        blobs = blobs or {path: id_of(git.run(repository.path, *store, given=file)) for path, file in paths.items()}
        if all(file is not None and file.id == blobs[path] for path, file in known.items()):
            return before or ""
        modes = {path: file.mode if file is not None else "100644" for path, file in known.items()}
        lines = b"".join(f"{modes[path]} {blobs[path]}\t{path}\0".encode() for path in paths)
        names = listed(paths) if len(paths) <= _TITLE_NAMES else plural(len(paths), "file", "files")
        commit = commit_on(repository, before, lines, author=author, title=_("Upload {paths}", paths=names))
        if advance(repository, before, commit):
            return commit
    raise GitFailed(_("others push all the time"))


def _check_names(folder: str, files: Mapping[str, bytes]) -> None:
    problems = [problem for problem in (problem_of_folder(folder), *map(problem_of_name, files)) if problem]
    if problems or not files:
        raise UploadRefused(problems[0] if problems else _("Choose at least one file."))
    longest = max(map(len, files)) + len(folder) + 1
    if longest > LONGEST_PATH:
        sentence = _("The path would have {longest} characters; at most {most} are possible.")
        raise UploadRefused(sentence.format(longest=longest, most=LONGEST_PATH))


def _check_size(repository: Repository, files: Mapping[str, bytes], largest: int) -> None:
    """Raise UploadRefused when the repository would have more than it may; the executor says the same of what it cannot push."""
    size = (size_of(repository.path) + sum(map(len, files.values()))) / 2**30 if largest else 0
    if size > largest:
        sentence = _(
            "Nothing was saved: the project's repository would have {size:.1f} GiB, and may have {largest} GiB. "
            "Ask an admin to raise that, or keep large files elsewhere: what is in the history stays there."
        )
        raise UploadRefused(sentence.format(size=size, largest=largest))


def check_folders(repository: Repository, commit: str, folder: str) -> None:
    """Raise UploadRefused when the path of a folder leads over a link or a file."""
    for path in accumulate(folder.split("/") if folder else (), "{}/{}".format):
        entry = repository.entry(commit, path)
        if entry is None:
            return
        if entry.is_link:
            raise UploadRefused(_("{path} is a link. Files are not put where a link leads.", path=path))
        if not entry.is_folder:
            raise UploadRefused(_("{path} is not a folder.", path=path))


def _check_places(known: Mapping[str, TreeEntry | None], *, replace: bool) -> None:
    there = {path: file for path, file in known.items() if file is not None}
    for path, file in there.items():
        if file.is_link:
            sentence = _("{path} is a link. It is not replaced by a file, nor is anything put where it leads.")
            raise UploadRefused(sentence.format(path=path))
        if not file.mode.startswith("100"):
            raise UploadRefused(_("{path} is a folder.", path=path))
    if there and not replace:
        raise AlreadyThere(list(there))


def commit_on(repository: Repository, before: str | None, lines: bytes, *, author: str, title: str) -> str:
    """Return a commit of the present files with these lines of `git update-index --index-info`, ended by NUL; no branch leads to it yet."""
    name, address = identity(author)
    with tempfile.TemporaryDirectory(prefix="commit-") as folder:
        variables = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        variables |= {f"GIT_{role}_NAME": name for role in ("AUTHOR", "COMMITTER")}
        variables |= {f"GIT_{role}_EMAIL": address for role in ("AUTHOR", "COMMITTER")}
        if before is not None:
            git.run(repository.path, "read-tree", before, variables=variables)
        git.run(repository.path, "update-index", "-z", "--index-info", given=lines, variables=variables)
        tree = id_of(git.run(repository.path, "write-tree", variables=variables))
        parents = ("-p", before) if before is not None else ()
        return id_of(git.run(repository.path, "commit-tree", tree, *parents, "-m", title, variables=variables))


def advance(repository: Repository, before: str | None, commit: str) -> bool:
    """Let the main branch lead to the commit; return False when others have pushed since `before`. Raise GitFailed."""
    try:
        git.run(repository.path, "update-ref", f"refs/heads/{MAIN}", commit, before or _NOTHING)
    except GitFailed:
        if repository.resolve(MAIN) == before:
            raise  # nobody has pushed meanwhile, so something else is wrong
        return False
    return True


def id_of(answer: bytes) -> str:
    object_id = answer.decode().strip()
    if not COMMIT.fullmatch(object_id):
        raise GitFailed(_("git named no object"))
    return object_id


class FileChanged(UploadRefused):
    """Somebody has changed what the page showed."""


def count_files(repository: Repository, commit: str, path: str) -> int:
    """Return how many files a path of a commit has. Raise GitFailed."""
    return len(_files(repository, commit, path))


def delete(repository: Repository, path: str, *, shown: str, author: str) -> str:
    """Commit that the file or folder of the commit `shown` is no more; return the commit. Raise UploadRefused, GitFailed, OSError."""
    title = _("Delete {path}", path=path)
    return _change(
        repository, path, shown, lambda now: _removed(_files_in(repository, now, path)), author=author, title=title
    )


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

    title = _("Move {path} to {target}", path=path, target=target)
    return _change(repository, path, shown, lines, author=author, title=title)


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
            gone = _("{path} is no longer on {branch}: somebody has deleted or moved it.", path=path, branch=MAIN)
            raise FileChanged(gone)
        if present != seen:
            changed = _("{path} was changed since you opened this page. Look at it again, then decide.", path=path)
            raise FileChanged(changed)
        try:
            commit = commit_on(repository, before, lines(before), author=author, title=title)
        except AnswerTooLong as error:
            raise UploadRefused(_("These are too many files for this page. Do it in a workspace.")) from error
        if advance(repository, before, commit):
            return commit
    raise GitFailed(_("others push all the time"))


def _files(repository: Repository, commit: str, path: str) -> _Files:
    lines = git.run(repository.path, "ls-tree", "-r", "-z", commit, "--", path).split(b"\0")
    entries = (line.partition(b"\t") for line in lines if line)
    return [(" ".join(facts.decode().split()[::2]), name) for facts, _tab, name in entries]


def _files_in(repository: Repository, commit: str, path: str) -> _Files:
    """Return the files of a path; raise UploadRefused for a folder with none, which a commit made by hand can have."""
    if files := _files(repository, commit, path):
        return files
    sentence = _("There is no file in {path}. It is gone with the next change of a file beside it.", path=path)
    raise UploadRefused(sentence)


def _removed(files: _Files) -> bytes:
    return b"".join(f"0 {_NOTHING}\t".encode() + name + b"\0" for _, name in files)


def _check_moved(old: _Files, new: _Files) -> None:
    """Raise UploadRefused for what may not have another path. The executor gives a saved `.git` its name back for the one person who is in
    its path's history. At a new path that would be who moved it, and git would obey a configuration that somebody else wrote."""
    longest = max(len(name) for _, name in new)
    if longest > max(LONGEST_PATH, *(len(name) for _, name in old)):
        sentence = _("A path would have {longest} bytes; at most {most} are possible.")
        raise UploadRefused(sentence.format(longest=longest, most=LONGEST_PATH))
    if any(is_gits(part) for _, name in old for part in name.decode(errors="replace").split("/")):
        raise UploadRefused(_("There is a Git repository of its own in it. Move it in a workspace."))
