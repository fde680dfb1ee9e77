"""Reads what a person's home shows besides the live executions, synchronously; the cost depends on the rows shown only."""

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.home.viewmodels.first_steps import SetupFacts, WorkFacts
from dashboard.home.viewmodels.my_executions import Launch, MyProject
from dashboard.workspaces.viewmodels.workspaces import WorkspaceRecord
from dashboard.workspaces.workspace_records import latest_of
from grid.configuration import MAXIMUM_EXECUTIONS_PER_USER, value_of
from grid.models import Environment, Execution, HardwareTier, Membership, Project, User, WorkspaceGrant

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
        launch = Launch(row.pk, row.title, row.kind, row.environment.name, row.tier.name)
        launches.setdefault(launch[1:], launch)
    members = Membership.objects.filter(user=user_id, project__is_archived=False).order_by("project__name")
    projects = members.values_list("project__name", "project_id", "role")[:PROJECTS_SHOWN]
    return HomeRecords(
        workspaces=latest_of(user_id, workspaces),
        maximum_slots=value_of(MAXIMUM_EXECUTIONS_PER_USER),
        launches=tuple(launches.values())[:LAUNCHES_SHOWN],
        projects=tuple(MyProject(*values) for values in projects),
    )


def read_work_facts(user_id: int) -> WorkFacts:
    """Return how far the user has come; each question stops at the first row that answers it."""
    members = Membership.objects.filter(user=user_id, project__is_archived=False).exclude(role=Membership.Role.VIEWER)
    project = members.order_by("project__name").values_list("project__name", flat=True)
    mine = Execution.objects.filter(owner=user_id)
    return WorkFacts(
        project=project.first() or "",
        has_launched=mine.exists(),
        has_opened=WorkspaceGrant.objects.filter(user=user_id, secret_hash__isnull=False).exists(),
        has_ended=mine.filter(ended_at__isnull=False).exists(),
    )


def read_setup_facts(user_id: int) -> SetupFacts:
    return SetupFacts(
        has_tier=HardwareTier.objects.filter(is_archived=False).exists(),
        has_environment=Environment.objects.filter(is_archived=False).exists(),
        has_project=Project.objects.filter(is_archived=False).exists(),
        has_people=User.objects.exclude(pk=user_id).exists(),
    )
