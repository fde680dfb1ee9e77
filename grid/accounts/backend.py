"""Authentication. Demo accounts, whose passwords are printed, may log in only in demo mode and only from this machine."""

from typing import Any

from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.http import HttpRequest

from grid.core.origins import is_loopback
from grid.database.prepared import Prepared
from grid.models import User

DEMO_GROUP = "demo accounts"
OPERATORS = "operators"  # the group of those who may operate


_USER = Prepared(1, lambda id: User.objects.filter(pk=id).order_by())


class AccountBackend(ModelBackend):
    """Django's accounts, with the guard on demo accounts at login and at every request after it."""

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **kwargs: Any
    ) -> User | None:
        user = super().authenticate(request, username=username, password=password, **kwargs)
        if not isinstance(user, User):
            return None
        return user if not _is_demo(user) or _is_local(request) else None

    def get_user(self, user_id: int) -> User | None:
        user = next(iter(_USER(user_id)), None)
        user = user if user is not None and self.user_can_authenticate(user) else None
        return user if isinstance(user, User) and (settings.DEMO or not _is_demo(user)) else None


def may_log_in(user: User, request: HttpRequest) -> bool:
    """Return whether the account may log in from where the request comes from, whatever proves who asks."""
    return user.is_active and (not _is_demo(user) or _is_local(request))


def _is_demo(user: User) -> bool:
    return user.groups.filter(name=DEMO_GROUP).exists()


def _is_local(request: HttpRequest | None) -> bool:
    """Return True in demo mode, when the caller is on this machine and the server listens on loopback."""
    if not settings.DEMO or request is None:
        return False
    return all(is_loopback(request.META.get(name, "")) for name in ("REMOTE_ADDR", "SERVER_NAME"))
