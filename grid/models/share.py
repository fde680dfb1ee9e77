"""Who may open a running program: members of the project with whom it is shared, and the browser sessions that were let in.

The dashboard's cookie never goes to the origin of workspaces, where user code answers. Instead the dashboard hands over a ticket that works
once and for seconds; the other origin exchanges it for a secret of its own. Only hashes are stored."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from grid.core.translation import gettext as _
from grid.models.execution import Execution, new_execution_id
from grid.models.fields import Named


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


class PortShare(Named):
    """A port of a running workspace that its owner has shared with members of the project, until the workspace stops or `ends_at`. What is
    taken back is deleted, and every grant for it too."""

    id = models.CharField(primary_key=True, max_length=16, default=new_port_share_id, editable=False)
    execution = models.ForeignKey(Execution, on_delete=models.CASCADE, related_name="port_shares")
    port = models.PositiveIntegerField()
    name = models.CharField(max_length=80)
    members = models.ManyToManyField(settings.AUTH_USER_MODEL, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    ends_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["execution", "port"], name="port_shared_once")]


class WorkspaceGrant(models.Model):
    """One grant. It is worth as much as the dashboard session that it came from, and ends with that session or with the execution."""

    execution = models.ForeignKey(Execution, on_delete=models.CASCADE, related_name="grants")
    port_share = models.ForeignKey(
        PortShare,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        help_text="It reaches this port alone, and never the program of the execution.",
    )
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    session_key = models.CharField(max_length=40)
    ticket_hash = models.CharField(max_length=64, unique=True)
    secret_hash = models.CharField(max_length=64, unique=True, null=True)  # noqa: DJ001 - absent until exchanged, and unique
    created_at = models.DateTimeField(default=timezone.now)
    used_at = models.DateTimeField(
        null=True, blank=True, help_text="When its person last used the program, to a minute."
    )

    class Meta:
        indexes = [models.Index(fields=["created_at"], name="grants_by_age")]

    def __str__(self) -> str:
        return _("grant for {execution_id}", execution_id=self.execution_id)
