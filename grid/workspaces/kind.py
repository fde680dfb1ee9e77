"""Workspaces as a kind of executions: a launch makes the workspace that later launches resume."""

from grid.clusters.request import cluster_settings
from grid.executions.launchrequest import LaunchRequest
from grid.executions.podkind import PodKind
from grid.executions.spec import launched_revision
from grid.models import Execution, Workspace


class WorkspaceKind(PodKind):
    """The kind of interactive programs, such as JupyterLab."""

    starts_at_home = True
    takes_cluster = True

    def store(self, execution: Execution, request: LaunchRequest) -> None:
        execution.workspace = request.workspace or Workspace.objects.create(
            id=execution.pk,
            title=execution.title,
            owner=execution.owner,
            project_id=execution.project_id,
            environment_id=execution.environment_id,
            environment_revision=launched_revision(execution),
            tier_id=execution.tier_id,
            cluster=cluster_settings(request.cluster) if request.cluster else None,
            created_at=execution.requested_at,
            launched_at=execution.requested_at,
        )
