"""Names in Git that both the files of a project and the spec of an execution use."""

from grid.core.regexes import Expression

MAIN = "main"  # the branch that a project's repository begins with
COMMIT = Expression(r"[0-9a-f]{40}")  # the name of a commit, and of any other object
_BRANCH = Expression(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,199}")
_NOT_IN_A_BRANCH, _NOT_AT_ITS_END = ("..", "//", "/.", ".lock/"), (".lock", ".", "/")


def is_revision(text: str) -> bool:
    """Return whether the text can name a branch or a commit."""
    is_plain = _BRANCH.fullmatch(text) and not text.endswith(_NOT_AT_ITS_END)
    return bool(is_plain) and not any(part in text for part in _NOT_IN_A_BRANCH)


def repository_name(project_id: str) -> str:
    """Return the name of a project's repository in the volume of all repositories.

    The name is made of the id, which never changes, and not of the project's name.
    """
    return f"{project_id}.git"
