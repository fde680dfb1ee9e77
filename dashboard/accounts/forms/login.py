"""Forms that ask for a password. Passwords wait in a queue to be checked; a locked-out user's password is not checked at all."""

from typing import Any

from axes.handlers.proxy import AxesProxyHandler
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm, SetPasswordForm
from django.contrib.auth.signals import user_login_failed
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils import timezone

from dashboard.accounts.viewmodels.logins import lock_sentence
from grid.accounts.lockouts import Lock, client_network
from grid.core.hashing import TooBusy, hashing_queue
from grid.core.translation import gettext as _
from grid.models import User

BUSY = "busy"
_BUSY_SENTENCE = _(
    "Too many people are logging in right now, so your password was not checked. Try again in a few seconds."
)


class LoginForm(AuthenticationForm):
    """A username and a password."""

    def clean(self) -> dict[str, Any]:
        name, password = self.cleaned_data.get("username"), self.cleaned_data.get("password")
        if not name or not password:
            return self.cleaned_data
        assert self.request is not None
        _refuse_locked_out(self.request, name)
        try:
            with hashing_queue.turn(client_network(self.request)):
                return super().clean() or self.cleaned_data
        except TooBusy:
            raise ValidationError(_BUSY_SENTENCE, code=BUSY) from None

    def get_invalid_login_error(self) -> ValidationError:
        return _locked_error(self.request) or super().get_invalid_login_error()


class OwnPasswordForm(PasswordChangeForm):
    """The old and the new password. A wrong old one counts like a wrong password on the login page."""

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        assert isinstance(request.user, User)
        super().__init__(request.user, *args, **kwargs)
        self._request = request

    def clean_old_password(self) -> str:
        credentials = {"username": self.user.get_username()}
        _refuse_locked_out(self._request, credentials["username"])
        try:
            with hashing_queue.turn(client_network(self._request)):
                return super().clean_old_password()
        except TooBusy:
            raise ValidationError(_BUSY_SENTENCE, code=BUSY) from None
        except ValidationError as error:
            user_login_failed.send(sender=__name__, credentials=credentials, request=self._request)
            raise _locked_error(self._request) or error from None


class JoinForm(SetPasswordForm):  # type: ignore[type-arg]
    """A first or another password, set through a link. A valid form's `user` has the new password, hashed and not stored yet."""

    def __init__(self, user: User, *args: Any, request: HttpRequest, **kwargs: Any) -> None:
        super().__init__(user, *args, **kwargs)
        self._request = request

    def clean(self) -> dict[str, Any]:
        data = super().clean() or self.cleaned_data
        if not self.errors:
            try:
                with hashing_queue.turn(client_network(self._request)):
                    self.user.set_password(data["new_password1"])
            except TooBusy:
                raise ValidationError(_BUSY_SENTENCE, code=BUSY) from None
        return data


def lock_met_by(request: HttpRequest | None) -> Lock | None:
    """Return the lock that keeps this request's password from being checked, or None."""
    return getattr(request, "login_lock", None)


def _refuse_locked_out(request: HttpRequest, name: str) -> None:
    """Raise ValidationError when the user is locked out; called before waiting in the queue."""
    if not AxesProxyHandler.is_allowed(request, {"username": name}):
        raise _locked_error(request) or AssertionError("locked by no lock")


def _locked_error(request: HttpRequest | None) -> ValidationError | None:
    """Return the error for a locked-out request; None when it is not locked out."""
    lock = lock_met_by(request)
    if lock is None:
        return None
    return ValidationError(lock_sentence(lock.scope, lock.until - timezone.now()), code="locked")
