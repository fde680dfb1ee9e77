"""Logs somebody in without a login form: `force_login` of Django's test client, at a seventh of the cost.

Django's own goes through all that a right password sets off, in 18 statements: a session that is thrown away, the throttling of logins, the
time of the last login. Thousands of tests begin with it. What a login sets off is tested with passwords.
"""

from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.test import Client

from grid.accounts.sessions import SessionStore
from grid.models import User

BACKEND = settings.AUTHENTICATION_BACKENDS[-1]


def force_login(client: Client, user: User, backend: str = BACKEND) -> None:
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = backend
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    client.cookies[settings.SESSION_COOKIE_NAME] = session.session_key or ""


def use() -> None:
    """Log in so in all tests; asynchronous clients do as Django does."""
    untyped: Any = Client
    untyped.force_login = force_login
