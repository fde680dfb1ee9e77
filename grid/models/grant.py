"""Grants: the right of one browser session to reach one running execution on the workspaces' origin.

The dashboard's cookie never goes to that origin, where user code answers. Instead the dashboard hands over a ticket that works
once and for seconds; the other origin exchanges it for a secret of its own. Only hashes are stored.
"""

from django.conf import settings
from django.db import models
from django.utils import timezone

from grid.core.translation import gettext as _
from grid.models.execution import Execution
from grid.models.share import PortShare


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
