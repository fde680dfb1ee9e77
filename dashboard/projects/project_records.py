"""Reads who is in a project and what runs in it, synchronously; the cost depends on what runs, not on the history."""

from collections.abc import Sequence

from grid.models import Execution, Membership, Project
from grid.models.execution import ACTIVE_STATES

RANK = {role: rank for rank, role in enumerate(("owner", "contributor", "viewer"))}


def members_of(project: Project) -> Sequence[Membership]:
    """Return the members with their users: the owner, then the contributors, then the viewers, each by name."""
    members = project.memberships.select_related("user").order_by("user__username")
    return sorted(members, key=lambda member: RANK[member.role])


def active_in(project_id: str, most: int) -> Sequence[Execution]:
    """Return at most `most` active executions of all members, the last requested first. Clusters of other executions are left out."""
    rows = Execution.objects.unsettled().filter(project=project_id, attached_to=None, state__in=sorted(ACTIVE_STATES))
    return list(rows.select_related("owner", "tier").defer("spec").order_by("-requested_at", "-pk")[:most])
