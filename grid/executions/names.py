"""Names that are suggested for launches whose person typed none: of what is launched, with a number while another one has the name."""

from collections.abc import Collection
from itertools import count

from grid.core.regexes import Expression
from grid.models import Execution, Job, User, Workspace

_NUMBER = Expression(r"(.*\S) [0-9]{1,9}")


def free_name(base: str, taken: Collection[str]) -> str:
    """Return the name, or with the first number that makes it another one than those `taken`: "JupyterLab", "JupyterLab 2"; "" for ""."""
    used = {name.casefold() for name in taken}
    numbered = (f"{base} {number}" if number > 1 else base for number in count(1))
    return next(name for name in numbered if name.casefold() not in used) if base else ""


def unnumbered(name: str) -> str:
    """Return the name without its number, so that launches of the same thing are found together."""
    parts = _NUMBER.fullmatch(name)
    return parts[1] if parts is not None else name


def names_in_use(user: User, base: str) -> set[str]:
    """Return the titles, of those that begin with `base`, of the person's running and waiting executions, workspaces and jobs."""
    running = Execution.objects.filter(owner=user, title__istartswith=base).unsettled().order_by()
    kept = (
        rows.filter(owner=user, deleted_at=None, title__istartswith=base) for rows in (Workspace.objects, Job.objects)
    )
    return set(
        running.values_list("title", flat=True).union(
            *(rows.order_by().values_list("title", flat=True) for rows in kept)
        )
    )
