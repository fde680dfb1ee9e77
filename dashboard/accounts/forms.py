"""The forms of accounts. Passwords wait in a queue to be checked; a locked-out user's password is not checked at all."""

from contextlib import AbstractContextManager
from typing import Any

from axes.handlers.proxy import AxesProxyHandler
from django import forms
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm, SetPasswordForm, UsernameField
from django.contrib.auth.signals import user_login_failed
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils import timezone

from dashboard.accounts.viewmodel import ROLE_WORDS, STATE_TITLES, lock_sentence
from dashboard.shell.viewmodels.states import ROLE_TITLES
from grid.accounts.lockouts import Lock, client_network
from grid.core.hashing import TooBusy, hashing_queue
from grid.core.translation import gettext as _
from grid.database.computing import give_up_permit
from grid.models import User
from grid.notifications.channels import sends_mail

BUSY = "busy"
_BUSY_SENTENCE = _(
    "Too many people are logging in right now, so your password was not checked. Try again in a few seconds."
)


def _hashing_turn(request: HttpRequest) -> AbstractContextManager[None]:
    give_up_permit()  # hashing waits and takes a third of a second, for most of which Python's lock is free
    return hashing_queue.turn(client_network(request))


class LoginForm(AuthenticationForm):
    def clean(self) -> dict[str, Any]:
        name, password = self.cleaned_data.get("username"), self.cleaned_data.get("password")
        if not name or not password:
            return self.cleaned_data
        assert self.request is not None
        _refuse_locked_out(self.request, name)
        try:
            with _hashing_turn(self.request):
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
            with _hashing_turn(self._request):
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
                with _hashing_turn(self._request):
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
    if (lock := lock_met_by(request)) is None:
        return None
    return ValidationError(lock_sentence(lock.scope, lock.until - timezone.now()), code="locked")


_CONFIRMED = _(
    "For notifications. A new one is used once you have opened the link that is sent to it. Admins see it; leave it empty for none."
)
_UNCONFIRMED = _(
    "This installation sends no e-mail, so it is stored as you type it. Admins see it; leave it empty for none."
)


class ProfileForm(forms.Form):
    """What other people may call the user, and where notifications are sent. The display name is one field, kept as Django's first name."""

    name = forms.CharField(
        label=_("Display name"),
        max_length=150,
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "name", "dir": "auto"}),
        help_text=_("Shown with your username, which stays as it is. Leave it empty to show the username alone."),
    )
    email = forms.EmailField(
        label=_("E-mail address"),
        max_length=254,
        required=False,
        widget=forms.EmailInput(attrs={"autocomplete": "email", "spellcheck": "false"}),
    )

    def __init__(self, data: Any = None, *, user: User) -> None:
        super().__init__(data, initial={"name": user.get_full_name(), "email": user.email})
        self.fields["email"].help_text = _CONFIRMED if sends_mail() else _UNCONFIRMED

    def clean_name(self) -> str:
        """Return the name with single spaces. Refuse what cannot be seen, such as marks that turn the direction of writing."""
        name = " ".join(str(self.cleaned_data["name"]).split())
        if not name.isprintable():
            raise forms.ValidationError(_("Use visible characters, in one line."), code="invisible")
        return name


_ROLES = [(name, f"{ROLE_TITLES[name]}: {words}") for name, words in ROLE_WORDS.items()]


class RoleForm(forms.Form):
    role = forms.ChoiceField(label=_("Role"), choices=_ROLES)


class InviteForm(forms.ModelForm):  # type: ignore[type-arg]
    """A username as Django allows them, which no other account has in capitals or small letters, and a role."""

    role = forms.ChoiceField(label=_("Role"), choices=_ROLES, initial="practitioner")

    class Meta:
        model = User
        fields = ("username",)
        labels = {"username": _("Username")}
        field_classes = {"username": UsernameField}
        help_texts = {"username": _("Letters, digits and @ . + - _. Other people see it.")}

    def clean_username(self) -> str:
        name: str = self.cleaned_data["username"]
        if User.objects.filter(username__iexact=name).exists():
            raise forms.ValidationError(_("This name is taken."), code="unique")
        return name


class PeopleFilterForm(forms.Form):
    """The conditions of the list; what is not valid is no condition."""

    text = forms.CharField(label=_("Text"), max_length=150, required=False)
    role = forms.ChoiceField(label=_("Role"), choices=list(ROLE_TITLES.items()), required=False)
    state = forms.ChoiceField(label=_("State"), choices=list(STATE_TITLES.items()), required=False)

    def conditions(self) -> dict[str, str]:
        self.is_valid()
        return {name: value for name, value in self.cleaned_data.items() if value}
