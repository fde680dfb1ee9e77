"""Reads workspaces from the database, synchronously, as values for pages; the cost depends on the rows shown only."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Exists, OuterRef, QuerySet, Subquery

from dashboard.workspaces.viewmodels.workspaces import WorkspaceExecution, WorkspaceRecord
from grid.core.reasons import ANYBODY, Reader
from grid.executions.launchrequest import Offers
from grid.models import Execution, Membership, Workspace
from grid.workspaces.workspaces import why_not_as_launched

PER_PAGE = 24
EXECUTIONS_PER_PAGE = 20

_NEWEST_EXECUTION = Execution.objects.filter(workspace=OuterRef("pk")).order_by("-requested_at", "-pk").values("pk")[:1]


@dataclass(frozen=True, slots=True)
class WorkspacesPage:
    """A page of workspaces; `older` is the `before` of the next page, "" when there is none."""

    rows: Sequence[WorkspaceRecord]
    older: str = ""


@dataclass(frozen=True, slots=True)
class WorkspaceExecutionsPage:
    rows: Sequence[tuple[Execution, str]]  # with the cause in words
    older: str = ""


def read_workspace(workspace_id: str) -> WorkspaceRecord | None:
    """Return the workspace, in three queries; None when it is deleted or unknown."""
    workspace = _present().filter(pk=workspace_id).first()
    if workspace is None:
        return None
    roles = dict(Membership.objects.filter(project=workspace.project_id).values_list("user_id", "role"))
    return _records([workspace], {workspace.project_id: roles})[0]


def latest_of(owner_id: int, most: int) -> Sequence[WorkspaceRecord]:
    """Return at most `most` of a user's own workspaces, the last launched or resumed first; each has its owner's project role only."""
    return _own(_present().filter(owner=owner_id)[:most], owner_id)


def page_of(owner_id: int, before: str) -> WorkspacesPage:
    """Return the page of a user's workspaces that follows the one with the id `before`, or the first page when that is not theirs."""
    rows = _present().filter(owner=owner_id)
    last = Workspace.objects.filter(pk=before, owner=owner_id).first() if before else None
    if last is not None:
        rows = rows.filter(launched_at__lte=last.launched_at).exclude(launched_at=last.launched_at, pk__gte=last.pk)
    records = _own(rows[: PER_PAGE + 1], owner_id)
    return WorkspacesPage(records[:PER_PAGE], records[PER_PAGE - 1].id if len(records) > PER_PAGE else "")


def executions_of(workspace_id: str, before: str, reader: Reader = ANYBODY) -> WorkspaceExecutionsPage:
    """Return a page of a workspace's executions, newest first, that follows the execution with the id `before`."""
    rows = Execution.objects.filter(workspace=workspace_id)
    last = rows.filter(pk=before).first() if before else None
    if last is not None:
        rows = rows.filter(requested_at__lte=last.requested_at).exclude(requested_at=last.requested_at, pk__gte=last.pk)
    ordered = rows.order_by("-requested_at", "-pk").select_related("tier", "environment").defer("spec")
    executions = list(ordered[: EXECUTIONS_PER_PAGE + 1])
    return WorkspaceExecutionsPage(
        [(row, row.words(reader)) for row in executions[:EXECUTIONS_PER_PAGE]],
        executions[EXECUTIONS_PER_PAGE - 1].pk if len(executions) > EXECUTIONS_PER_PAGE else "",
    )


def has_stopped(owner_id: int) -> bool:
    execution = Execution.objects.unsettled().filter(workspace=OuterRef("pk"))
    return Workspace.objects.filter(~Exists(execution), owner=owner_id, deleted_at__isnull=True).exists()


def _present() -> QuerySet[Workspace]:
    present = Workspace.objects.filter(deleted_at__isnull=True).annotate(newest=Subquery(_NEWEST_EXECUTION))
    return present.select_related("owner", "project", "environment", "tier").order_by("-launched_at", "-pk")


def _own(rows: Iterable[Workspace], owner_id: int) -> Sequence[WorkspaceRecord]:
    rows = list(rows)
    mine = Membership.objects.filter(user=owner_id, project__in={row.project_id for row in rows})
    return _records(rows, {project: {owner_id: role} for project, role in mine.values_list("project", "role")})


def _records(rows: Sequence[Workspace], roles: Mapping[str, Mapping[int, str]]) -> Sequence[WorkspaceRecord]:
    newest = {row.pk: getattr(row, "newest") for row in rows}  # noqa: B009 - annotated
    columns = Execution.objects.only("state", "state_since", "reason", "reason_values", "message", "settled_at")
    executions = columns.in_bulk([pk for pk in newest.values() if pk])
    offers = {row.owner_id: Offers(row.owner) for row in rows}
    return [
        _record(row, roles.get(row.project_id, {}), executions.get(newest[row.pk]), offers[row.owner_id])
        for row in rows
    ]


def _record(row: Workspace, roles: Mapping[int, str], execution: Execution | None, offers: Offers) -> WorkspaceRecord:
    latest = problem = None
    if execution is None or execution.is_final:
        problem = why_not_as_launched(row, offers)
    if execution is not None:
        words = execution.words(Reader(row.owner.get_username(), is_owner=True))  # only its owner's pages show it
        is_settled = execution.settled_at is not None
        latest = WorkspaceExecution(execution.pk, execution.state, execution.state_since, words, is_settled)
    return WorkspaceRecord(
        name=str(row),
        owner_username=row.owner.get_username(),
        project_name=row.project.name,
        project_roles=roles,
        environment_name=row.environment.name,
        tier_name=row.tier.name,
        latest=latest,
        revision=row.environment_revision,
        is_restarting=row.restart_requested_at is not None,
        id=row.pk,
        title=row.title,
        owner_id=row.owner_id,
        project_id=row.project_id,
        environment_id=row.environment_id,
        tier_id=row.tier_id,
        created_at=row.created_at,
        launched_at=row.launched_at,
        restart_problem=row.restart_problem,
        why_not_as_launched=problem.message if problem else "",
    )
