"""Names in Git that both the files of a project and the spec of an execution use."""

from grid.core.regexes import Expression

MAIN = "main"  # the branch that a project's repository begins with
COMMIT = Expression(r"[0-9a-f]{40}")  # the name of a commit, and of any other object


def repository_name(project_id: str) -> str:
    """Return the name of a project's repository in the volume of all repositories.

    The name is made of the id, which never changes, and not of the project's name.
    """
    return f"{project_id}.git"
