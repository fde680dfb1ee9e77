"""Reads the revisions of an environment from the database, synchronously."""

from collections.abc import Collection, Sequence

from dashboard.environments.viewmodels.revisions import ImageFacts, RevisionLine, revision_line
from grid.core.translation import gettext as _
from grid.diagnosis.nodeimages import on_nodes
from grid.environments.revisions import RevisionUses, uses_of
from grid.kube.objects import Node
from grid.models import Environment, EnvironmentRevision
from grid.queue.wait_estimate.reading import recent_pace, usual_pull

_SHOWN = 200


def revisions_of(environment: Environment, nodes: Collection[Node]) -> list[RevisionLine]:
    """Return the newest revisions, each with who uses it and what nodes report of its image."""
    rows = list(environment.revisions.select_related("base").defer("log", "base__log")[:_SHOWN])
    return lines_of(environment, rows, nodes)


def lines_of(
    environment: Environment, rows: Sequence[EnvironmentRevision], nodes: Collection[Node]
) -> list[RevisionLine]:
    uses = uses_of(environment.pk)
    current = environment.current_revision
    images = {row.image for row in rows} | {row.base.image for row in rows if row.base}
    seen, pace = on_nodes(images, nodes), usual_pull(1, recent_pace())
    lines = []
    for row in rows:
        facts = ImageFacts(seen[row.image], seen[row.base.image].size if row.base else None, pace)
        used = uses.get(row.number, RevisionUses())
        lines.append(revision_line(row, current=current, uses=used, image=facts))
    return lines


def bases_of(environment: Environment) -> list[tuple[int, str]]:
    """Return the revisions that others can be built on, as choices, the newest first."""
    ready = environment.revisions.filter(state=EnvironmentRevision.State.READY)
    return [
        (row.number, _("Revision {number}: {image}", number=row.number, image=row.image)[:120])
        for row in ready.defer("log")[:_SHOWN]
    ]
