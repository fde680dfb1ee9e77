"""Reads the revisions of an environment from the database, synchronously."""

from dashboard.viewmodels.revisions import RevisionLine, revision_line
from grid.launch.revisions import uses_of
from grid.models import Environment, EnvironmentRevision

_SHOWN = 200


def revisions_of(environment: Environment) -> list[RevisionLine]:
    """Return the newest revisions, each with who uses it."""
    uses = uses_of(environment.pk)
    rows = environment.revisions.select_related("base").defer("log", "base__log")[:_SHOWN]
    current = environment.current_revision
    return [revision_line(row, base=base_of(row), current=current, uses=uses.get(row.number)) for row in rows]


def base_of(revision: EnvironmentRevision) -> int:
    """Return the number of the revision that it is built on; 0 for an image."""
    return revision.base.number if revision.base else 0


def bases_of(environment: Environment) -> list[tuple[int, str]]:
    """Return the revisions that others can be built on, as choices, the newest first."""
    ready = environment.revisions.filter(state=EnvironmentRevision.State.READY)
    return [(one.number, f"Revision {one.number}: {one.image}"[:120]) for one in ready.defer("log")[:_SHOWN]]
