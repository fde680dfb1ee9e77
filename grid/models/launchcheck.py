"""Requests of people to have a launch confirmed by the cluster before it happens, which the controller answers by a dry run: the web
process may create nothing in the cluster, not even as a dry run, for which alone Kubernetes knows no right."""

from django.conf import settings
from django.db import models
from django.db.models import Index, Q

from grid.core.translation import gettext as _


class CheckOutcome(models.TextChoices):
    ASKED = "asked", _("Asked")
    CONFIRMED = "confirmed", _("Confirmed")
    REFUSED = "refused", _("Refused")
    NOT_KNOWN = "not_known", _("Not known")


class LaunchCheck(models.Model):
    """One request and its answer. The id is the execution's that the same form would launch; `specs` are those of its objects."""

    id = models.CharField(primary_key=True, max_length=12)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    data_plane = models.CharField(max_length=63)
    specs = models.JSONField()
    asked_at = models.DateTimeField(db_index=True)
    answered_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=16, choices=CheckOutcome, default=CheckOutcome.ASKED)
    message = models.TextField(blank=True)
    evidence = models.TextField(blank=True)

    class Meta:
        indexes = [
            Index(fields=["data_plane", "asked_at"], name="launch_checks_unanswered", condition=Q(answered_at=None))
        ]

    def __str__(self) -> str:
        return _("check {id}: {outcome}", id=self.id, outcome=self.outcome)
