"""Requirements of Python packages as people type them: names and versions, and nothing that pip takes as an option or a place; pure."""

from collections.abc import Iterator

from packaging.requirements import InvalidRequirement, Requirement

from grid.core.errors import Problem
from grid.core.regexes import RepeatedExpression
from grid.core.translation import gettext as _

BUILT_HERE = "compute-grid-built/"  # begins the names of images that the embedded cluster builds
MOST_LINES = 200
LONGEST_LINE = 500
_HASH = RepeatedExpression(r"\s--hash[= ]\S+")
_COMMENT = RepeatedExpression(r"(^|\s)#.*$")
# What pip takes for a file when one of that name lies in its folder.
_ARCHIVES = (".whl", ".zip", ".tar", ".tgz", ".tbz", ".txz", ".tlz", ".gz", ".bz2", ".xz", ".lzma", ".egg")
_SHOWN = 60


def parse_requirements(text: str) -> tuple[tuple[str, ...], tuple[Problem, ...]]:
    """Return the requirements, each as pip's argument, and the problems of the lines; comments and empty lines are left out."""
    lines = [(number, line) for number, line in _joined(text) if line]
    if not lines:
        return (), (Problem("requirements", _("Give at least one requirement, such as polars==1.9.0."), "required"),)
    if len(lines) > MOST_LINES:
        sentence = _("Use at most {most} requirements; these are {lines:,}.", most=MOST_LINES, lines=len(lines))
        return (), (Problem("requirements", sentence, "too_many"),)
    requirements, problems = [], []
    for number, line in lines:
        if why := why_refused(line):
            shown = line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"
            sentence = _("Line {number}, “{shown}”: {why}", number=number, shown=shown, why=why)
            problems.append(Problem("requirements", sentence, "requirement"))
        else:
            requirements.append(str(Requirement(line)))
    return tuple(requirements), tuple(problems)


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Yield each requirement with the number of its first line, as pip reads a file: a backslash at a line's end joins the next one, and
    comments count for nothing. The hashes that pip-compile writes are left out: packages come from one index, which the admin chose."""
    first, parts = 0, list[str]()
    for number, raw in enumerate(text.removeprefix("\ufeff").replace("\t", " ").splitlines(), 1):
        line = _COMMENT.sub("", raw).strip()
        first = first or number
        parts.append(line.removesuffix("\\").strip())
        if not line.endswith("\\"):
            yield first, _HASH.sub("", " ".join(parts)).strip()
            first, parts = 0, []
    yield first, _HASH.sub("", " ".join(parts)).strip()


def why_refused(line: str) -> str:
    """Return why the line is no requirement that may be installed, as a sentence; "" when it is one."""
    if len(line) > LONGEST_LINE:
        return _("Use at most {most} characters in a line.", most=LONGEST_LINE)
    if not line.isprintable():
        return _("Use visible characters only.")
    if line.startswith("-"):
        return _("Options of pip are not allowed here, only packages; the cluster's admin chooses the package index.")
    try:
        requirement = Requirement(line)
    except (InvalidRequirement, RecursionError):  # it reads nested parentheses by recursion
        if "/" in line or "\\" in line or line.startswith("."):
            return _("Files, folders and addresses are not allowed; name a package of the index.")
        return _("This is no requirement. Write a package with its version, such as polars==1.9.0.")
    if requirement.url is not None:
        return _("Files, folders and addresses are not allowed; name a package of the index.")
    if requirement.name.lower().endswith(_ARCHIVES):
        return _("This names a file; name a package of the index.")
    return ""
