"""Accounts: the people who log in, in which browsers since when, their new e-mail addresses that wait to be confirmed, and saved views."""

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models
from django.db.models import Q

from grid.core.translation import gettext as _
from grid.models.fields import Named


class User(AbstractUser):
    """A person's account; a model of our own because a project cannot replace Django's later."""


class Session(AbstractBaseSession):
    """One browser's session. `session_key` is a digest of the cookie's key, so that reading the table does not let anybody take a session
    over. `user`, `auth_hash`, `address` and `agent` repeat what the session's data say, so that many sessions are checked in one query."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="+")
    auth_hash = models.CharField(
        max_length=128, blank=True, help_text="Differs from the account's once its password is changed."
    )
    created_at = models.DateTimeField(db_index=True)
    seen_at = models.DateTimeField(db_index=True)
    address = models.CharField(max_length=45, blank=True)
    agent = models.CharField(max_length=200, blank=True, help_text="User-Agent of the browser, cleaned and cut.")


class EmailChange(models.Model):
    """The address that a person wants to have instead of the account's own, until the link in the letter to it is followed. The link is
    stored nowhere: `grid.notifications.channels` derives it from the row."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="email_change"
    )
    address = models.EmailField(max_length=254)
    asked_at = models.DateTimeField(help_text="When the link was asked for last; it works for three days.")

    def __str__(self) -> str:
        return _("new e-mail address of {user_id}", user_id=self.user_id)


class SavedView(Named):
    """The filters, the order and the hidden columns of one person's table. The page parses `query` again each time it is opened."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views")
    table = models.CharField(
        max_length=20, help_text="A key of VIEWED_TABLES in dashboard/shell/viewmodels/saved_views.py."
    )
    name = models.CharField(max_length=60)
    query = models.TextField(help_text="Query string of the page, beginning with a question mark.")
    hidden = models.CharField(max_length=60, blank=True, help_text="Numbers of the hidden columns, with dots between.")
    is_default = models.BooleanField(default=False, help_text="The page opens with it.")

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["user", "table", "name"], name="saved_view_named_once"),
            models.UniqueConstraint(fields=["user", "table"], condition=Q(is_default=True), name="one_default_view"),
        ]
