"""New e-mail addresses that wait to be confirmed."""

from django.conf import settings
from django.db import models

from grid.core.translation import gettext as _


class EmailChange(models.Model):
    """The address that a person wants to have instead of the account's own, until the link in the letter to it is followed. The link is
    stored nowhere: `grid.notifications.addresses` derives it from the row."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="email_change"
    )
    address = models.EmailField(max_length=254)
    asked_at = models.DateTimeField(help_text="When the link was asked for last; it works for three days.")

    def __str__(self) -> str:
        return _("new e-mail address of {user_id}", user_id=self.user_id)
