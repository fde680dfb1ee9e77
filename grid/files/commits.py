"""Commits that the dashboard makes on the main branch for a person, without a working copy."""

import tempfile
from pathlib import Path

from grid.core.gitnames import COMMIT, MAIN
from grid.core.translation import gettext as _
from grid.files import git
from grid.files.executor import identity
from grid.files.git import GitFailed
from grid.files.repositories import Repository

TRIES = 5
_NOTHING = "0" * 40  # what git calls a branch that is not there


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
    """Return the name of the object that git has answered with."""
    object_id = answer.decode().strip()
    if not COMMIT.fullmatch(object_id):
        raise GitFailed(_("git named no object"))
    return object_id
