"""The order of admission, stored so that no decision has to search the history for it."""

from django.conf import settings
from django.db import models

from grid.core.translation import gettext as _
from grid.models.tier import HardwareTier


class LastAdmission(models.Model):
    """The time at which a user was last admitted on a tier. A user without a row was never admitted there, and goes first."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    tier = models.ForeignKey(HardwareTier, on_delete=models.CASCADE, related_name="+")
    at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "tier"], name="one_last_admission_per_user_and_tier")]

    def __str__(self) -> str:
        return _("user {user_id} on {tier_id} at {at}", user_id=self.user_id, tier_id=self.tier_id, at=self.at)
