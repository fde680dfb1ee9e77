"""Reads the executions that somebody wants to stop together, in three queries, synchronously."""

from collections.abc import Collection

from dashboard.access import Viewer, may_observe, may_operate
from dashboard.ids import valid_ids
from dashboard.viewmodels.states import state_word
from dashboard.viewmodels.stopping import StopLine
from grid.models import Execution, Membership


def stoppable(viewer: Viewer, asked: Collection[str]) -> list[StopLine]:
    """Return those of the executions that the viewer may see, in the order of their launch. What is no id is left out."""
    ids = valid_ids(asked)
    roles = dict(Membership.objects.filter(user=viewer.id).values_list("project_id", "role"))
    rows = (
        Execution.objects.filter(pk__in=ids)
        .select_related("owner", "project")
        .defer("spec")
        .order_by("requested_at", "pk")
    )
    clusters = Execution.objects.filter(attached_to__in=ids, settled_at__isnull=True, ended_at__isnull=True)
    attached = {row.attached_to_id: str(row) for row in clusters}
    return [
        StopLine(
            id=row.pk,
            name=str(row),
            owner=row.owner.get_username(),
            project=row.project.name,
            state=state_word(row.state),
            is_own=row.owner_id == viewer.id,
            ends_too=attached.get(row.pk, ""),
            why_not=_why_not(viewer, row, roles.get(row.project_id)),
        )
        for row in rows
        if row.owner_id == viewer.id or row.project_id in roles or may_observe(viewer)
    ]


def _why_not(viewer: Viewer, row: Execution, role: str | None) -> str:
    if row.is_final:
        return "It has already ended."
    if row.owner_id == viewer.id or role == "owner" or may_operate(viewer):
        return ""
    return "Only its owner, the project's owner, operators and admins can stop it."
