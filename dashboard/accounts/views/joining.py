"""The page behind a link that an admin made: a person sets a first or another password, and is logged in."""

from typing import Any

from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.password_validation import password_validators_help_texts
from django.contrib.auth.views import INTERNAL_RESET_SESSION_TOKEN, PasswordResetConfirmView
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from dashboard.accounts.forms.login import JoinForm
from dashboard.accounts.people import set_password
from dashboard.accounts.views.account import refused
from grid.accounts.backend import may_log_in
from grid.core.translation import gettext as _
from grid.models import User

_BACKEND = "grid.accounts.AccountBackend"


class Join(PasswordResetConfirmView):
    """Django's view, which keeps the token in the session instead of the address. A link that does not work is answered with 410."""

    form_class = JoinForm
    template_name = "accounts/join.html"
    user: User | None

    def get_user(self, uidb64: str) -> User | None:
        user = super().get_user(uidb64)
        return user if isinstance(user, User) and may_log_in(user, self.request) else None

    def get_form_kwargs(self) -> dict[str, Any]:
        return {**super().get_form_kwargs(), "request": self.request}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        joining = {"person": self.user, "rules": password_validators_help_texts()} if self.validlink else {}
        return super().get_context_data(**kwargs) | joining

    def render_to_response(self, context: dict[str, Any], **kwargs: Any) -> HttpResponse:
        return super().render_to_response(context, **{"status": 200 if self.validlink else 410, **kwargs})

    def form_invalid(self, form: JoinForm) -> HttpResponse:  # type: ignore[override]
        return refused(self.request, super().form_invalid(form), form)

    def form_valid(self, form: JoinForm) -> HttpResponseRedirect:  # type: ignore[override]
        """Store the password and log in, unless the link was used while the form was filled in."""
        user = form.user
        if not set_password(user, self.request.session.pop(INTERNAL_RESET_SESSION_TOKEN)):
            return redirect(self.request.path)
        login(self.request, user, _BACKEND)
        messages.success(self.request, _("Your password is set, and you are logged in."))
        return redirect("home")


join = require_http_methods(["GET", "HEAD", "POST"])(Join.as_view())
