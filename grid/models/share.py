"""Shares: which members of the project may open somebody's running app, or a program that somebody started in a workspace."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from grid.core.translation import gettext as _
from grid.models.execution import Execution, new_execution_id


class AppShare(models.Model):
    """A member who may open the app beside its owner, until it ends, the member leaves, or the owner takes it back."""

    execution = models.ForeignKey(Execution, on_delete=models.CASCADE, related_name="shares")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["execution", "user"], name="shared_once_with_a_member")]

    def __str__(self) -> str:
        return _("share of {execution_id}", execution_id=self.execution_id)


def new_port_share_id() -> str:
    """Return an id that no execution has, because it is longer; both are names of origins."""
    return f"port{new_execution_id()}"


class PortShare(models.Model):
    """A port of a running workspace that its owner has shared with members of the project, until the workspace stops or `ends_at`.

    What is taken back is deleted, and every grant for it too.
    """

    id = models.CharField(primary_key=True, max_length=16, default=new_port_share_id, editable=False)
    execution = models.ForeignKey(Execution, on_delete=models.CASCADE, related_name="port_shares")
    port = models.PositiveIntegerField()
    name = models.CharField(max_length=80)
    members = models.ManyToManyField(settings.AUTH_USER_MODEL, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    ends_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["execution", "port"], name="port_shared_once")]

    def __str__(self) -> str:
        return self.name
