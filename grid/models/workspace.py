"""Workspaces: programs that a person stops and resumes. Each run of a workspace is an execution of its own."""

from django.conf import settings
from django.db import models
from django.db.models import Index, Q
from django.utils import timezone

from grid.models.environment import Environment
from grid.models.project import Project
from grid.models.tier import HardwareTier


class Workspace(models.Model):
    """A launch request that is repeated when the workspace is resumed; tier and environment are references, so they apply as they are then.
    It has the id of its first execution, so that a launch that is sent twice creates both once. A deleted workspace stays as a row, because
    its executions stay in the history; one whose executions were deleted can still be resumed.
    """

    id = models.CharField(primary_key=True, max_length=16, editable=False)
    title = models.CharField(max_length=120, blank=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="workspaces")
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="workspaces")
    environment = models.ForeignKey(Environment, on_delete=models.PROTECT, related_name="workspaces")
    environment_revision = models.PositiveIntegerField(
        default=0, help_text="The revision that it was launched with last; 0: not known."
    )
    tier = models.ForeignKey(HardwareTier, on_delete=models.PROTECT, related_name="workspaces")
    cluster = models.JSONField(
        null=True, blank=True, help_text="What was asked for as its cluster: grid.clusters.request; null for none."
    )
    created_at = models.DateTimeField(default=timezone.now)
    launched_at = models.DateTimeField(default=timezone.now, help_text="When it was launched or resumed last.")
    deleted_at = models.DateTimeField(null=True, blank=True)
    restart_requested_at = models.DateTimeField(
        null=True, blank=True, help_text="The controller resumes it as soon as its execution has settled."
    )
    restart_problem = models.TextField(blank=True, help_text="Why the last restart ended without a launch.")

    class Meta:
        ordering = ["-launched_at", "-id"]
        indexes = [
            Index(
                fields=["owner", "launched_at", "id"], condition=Q(deleted_at__isnull=True), name="workspaces_by_owner"
            ),
            Index(
                fields=["restart_requested_at"],
                condition=Q(restart_requested_at__isnull=False),
                name="workspaces_to_restart",
            ),
        ]

    def __str__(self) -> str:
        return self.title or f"workspace-{self.id}"
