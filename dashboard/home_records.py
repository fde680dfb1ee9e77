"""Reads what a person's home shows besides the live executions, synchronously; the cost depends on the rows shown only."""

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.viewmodels.my_side import Launch, MyProject
from dashboard.viewmodels.workspaces import WorkspaceRecord
from dashboard.workspace_records import latest_of
from grid.centralconfig import MAXIMUM_EXECUTIONS_PER_USER, value_of
from grid.models import Execution, Membership

LAUNCHES_READ = 30  # of which many may be the same
LAUNCHES_SHOWN = 5
PROJECTS_SHOWN = 8


@dataclass(frozen=True, slots=True)
class HomeRecords:
    workspaces: Sequence[WorkspaceRecord]
    maximum_slots: int
    launches: tuple[Launch, ...]
    projects: tuple[MyProject, ...]


def read_home(user_id: int, workspaces: int) -> HomeRecords:
    """Return at most so many workspaces of the user, the last one first, the latest different launches, and projects by name."""
    rows = Execution.objects.filter(owner=user_id, attached_to=None).select_related("environment", "tier")
    launches: dict[tuple[str, ...], Launch] = {}
    for row in rows.order_by("-requested_at")[:LAUNCHES_READ]:
        launch = _launch(row)
        launches.setdefault(launch[1:], launch)
    members = Membership.objects.filter(user=user_id, project__is_archived=False).select_related("project")
    return HomeRecords(
        workspaces=latest_of(user_id, workspaces),
        maximum_slots=value_of(MAXIMUM_EXECUTIONS_PER_USER),
        launches=tuple(launches.values())[:LAUNCHES_SHOWN],
        projects=tuple(
            MyProject(one.project.name, one.project_id, one.role)
            for one in members.order_by("project__name")[:PROJECTS_SHOWN]
        ),
    )


def _launch(row: Execution) -> Launch:
    return Launch(row.pk, row.title, row.kind, row.environment.name, row.tier.name)
