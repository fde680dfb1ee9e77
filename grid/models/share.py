"""Shares: which members of the project may open somebody's running app."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from grid.models.execution import Execution


class AppShare(models.Model):
    """A member who may open the app beside its owner, until it ends, the member leaves, or the owner takes it back."""

    execution = models.ForeignKey(Execution, on_delete=models.CASCADE, related_name="shares")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["execution", "user"], name="shared_once_with_a_member")]

    def __str__(self) -> str:
        return f"share of {self.execution_id}"
