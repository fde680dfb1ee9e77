"""Sessions: who is logged in, in which browser, since when."""

from django.conf import settings
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models


class Session(AbstractBaseSession):
    """One browser's session. `session_key` is a digest of the cookie's key, so that reading the table does not let anybody take a session
    over.

    `user`, `auth_hash`, `address` and `agent` repeat what the session's data say, so that many sessions are checked in one query.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="+")
    auth_hash = models.CharField(
        max_length=128, blank=True, help_text="Differs from the account's once its password is changed."
    )
    created_at = models.DateTimeField(db_index=True)
    seen_at = models.DateTimeField(db_index=True)
    address = models.CharField(max_length=45, blank=True)
    agent = models.CharField(max_length=200, blank=True, help_text="User-Agent of the browser, cleaned and cut.")
