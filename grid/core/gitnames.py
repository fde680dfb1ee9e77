"""Names in Git that both the files of a project and the spec of an execution use."""

from grid.core.regexes import Expression

MAIN = "main"  # the branch that a project's repository begins with
COMMIT = Expression(r"[0-9a-f]{40}")  # the name of a commit, and of any other object
# git-check-ref-format(1). A name that begins with a dash or is a single @ would be read as something else by Git's commands.
_NOT_IN_A_BRANCH = ("..", "//", "/.", ".lock/", "@{", *" ~^:?*[\\")
_NOT_AT_ITS_BEGINNING, _NOT_AT_ITS_END = ("-", ".", "/"), (".lock", ".", "/")
LONGEST_BRANCH = 200  # characters


def is_revision(text: str) -> bool:
    """Return whether the text can name a branch or a commit."""
    if not text or text == "@" or len(text) > LONGEST_BRANCH or not text.isprintable():
        return False
    is_cut_off = text.startswith(_NOT_AT_ITS_BEGINNING) or text.endswith(_NOT_AT_ITS_END)
    return not is_cut_off and not any(part in text for part in _NOT_IN_A_BRANCH)


def repository_name(project_id: str) -> str:
    """Return the name of a project's repository in the volume of all repositories, made of the id, which never changes."""
    return f"{project_id}.git"
