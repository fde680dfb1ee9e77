"""Logging in and out, the user's own account, and the choice of theme."""

from collections.abc import Callable, Collection
from typing import Any

from django.contrib import auth, messages
from django.contrib.auth import views as auth_views
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.password_validation import password_validators_help_texts
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST, require_safe

from dashboard.accounts.forms import BUSY, JoinForm, LoginForm, OwnPasswordForm, ProfileForm, lock_met_by
from dashboard.accounts.people import set_password, set_profile
from dashboard.accounts.viewmodel import ROLE_WORDS, session_rows
from dashboard.notifications.records import channels_for, choice_rows, events_for, outward_channels_view, pending_view
from dashboard.shell.access import may_observe, role_of, user_of
from dashboard.shell.viewmodels.states import ROLE_TITLES
from grid.accounts import sessions
from grid.accounts.backend import may_log_in
from grid.accounts.lockouts import client_network
from grid.audit.entries import write_about, write_entry
from grid.core.errors import Rejected
from grid.core.translation import gettext as _
from grid.models import AuditEntry, EmailChange, Membership, User
from grid.notifications import channels

_BUSY_SECONDS = 5


class Login(auth_views.LoginView):
    """The login page. It responds with 503 when too many passwords are being checked at once, and with 429 to a locked-out user."""

    template_name = "accounts/login.html"
    authentication_form = LoginForm
    redirect_authenticated_user = True

    def get_default_redirect_url(self) -> str:
        """Return where to go without a `next`: those who watch the cluster see it first, everybody else their own work."""
        return reverse("overview" if may_observe(self.request.user) else "home")

    def form_valid(self, form: LoginForm) -> HttpResponse:  # type: ignore[override]
        user = form.get_user()
        with transaction.atomic():
            answer = super().form_valid(form)
            _write_login(self.request, user, AuditEntry.Action.LOGGED_IN)
        return answer

    def form_invalid(self, form: LoginForm) -> HttpResponse:  # type: ignore[override]
        return refused(self.request, super().form_invalid(form), form)


class Logout(auth_views.LogoutView):
    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        with transaction.atomic():
            if isinstance(request.user, User):
                _write_login(request, request.user, AuditEntry.Action.LOGGED_OUT)
            return super().post(request, *args, **kwargs)


def _write_login(request: HttpRequest, user: User, action: str) -> None:
    name = user.get_username()
    title = _("{name} at {address}", name=name, address=client_network(request))
    write_about(user, ("login", name, title), {}, action=action)


login = require_http_methods(["GET", "HEAD", "POST"])(Login.as_view())
logout = Logout.as_view()


@login_not_required
@require_GET
def admin_login(request: HttpRequest) -> HttpResponse:
    """Redirect Django's admin to the one login page: a second one would be another way to try passwords."""
    if request.user.is_authenticated:
        raise PermissionDenied(_("Only admins can see this page."))
    return auth_views.redirect_to_login(request.GET.get("next", "/admin/"))


@require_http_methods(["GET", "HEAD", "POST"])
def account(request: HttpRequest) -> HttpResponse:
    """Show the user's own profile, role, projects, notifications and sessions, and change the profile."""
    user, now = user_of(request), timezone.now()
    form = ProfileForm(request.POST if request.method == "POST" else None, user=user)
    if form.is_valid():
        try:
            changed = set_profile(user, **form.cleaned_data, now=now)
            messages.success(request, _profile_words(changed, form.cleaned_data["email"]))
            return redirect("account")
        except Rejected as refused:
            form.add_error("email", refused.sentences)
    offered = channels_for(user)
    context = {
        "form": form,
        "pending": pending_view(user, now),
        "role": f"{ROLE_TITLES[role_of(user)]}: {ROLE_WORDS[role_of(user)]}",
        "memberships": Membership.objects.filter(user=user).select_related("project").order_by("project__name"),
        "choices": choice_rows(user, offered, events_for(user)),
        "channels": offered.values(),
        "outward": outward_channels_view(user, now),
        "rows": session_rows(sessions.of_user(user, now), _this(request)),
        "now": now,
    }
    return render(request, "accounts/account.html", context, status=422 if form.is_bound else 200)


def _profile_words(changed: Collection[str], address: str) -> str:
    if "new_email" in changed:
        return _("A link was sent to {address}. Open it to use the address from then on.", address=address)
    return _("Your profile is saved.") if changed else _("Nothing was changed.")


@require_POST
def session_end(request: HttpRequest) -> HttpResponse:
    key = request.POST.get("session", "")
    if key == _this(request):
        return logout(request)
    ended = _end_sessions(user_of(request), lambda user: int(sessions.end(user, key)))
    messages.success(request, _("Session ended.") if ended else _("That session had already ended."))
    return redirect("account")


@require_POST
def sessions_end_others(request: HttpRequest) -> HttpResponse:
    _end_sessions(user_of(request), lambda user: sessions.end_others(user, _this(request)))
    messages.success(request, _("All your other sessions were ended."))
    return redirect("account")


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters()
def password(request: HttpRequest) -> HttpResponse:
    form = OwnPasswordForm(request, request.POST or None)
    if form.is_valid():
        with transaction.atomic():
            user = form.save()
            auth.update_session_auth_hash(request, user)
            sessions.end_others(user, _this(request))
            channels.call_off(user)
            write_entry(user, user, {"password": [_("old"), _("changed")]})
        messages.success(request, _("Your password was changed, and all your other sessions were ended."))
        return redirect("account")
    page = render(request, "accounts/password.html", {"form": form, "rules": password_validators_help_texts()})
    return refused(request, page, form)


def refused(request: HttpRequest, page: HttpResponse, form: LoginForm | OwnPasswordForm | JoinForm) -> HttpResponse:
    """Return the page with status 429 (locked) or 503 (busy) and the seconds to wait, if one applies; its form says why."""
    lock = lock_met_by(request)
    if lock is not None:
        page.status_code = 429
        page["Retry-After"] = str(max(1, round((lock.until - timezone.now()).total_seconds())))
    elif any(form.has_error(field, code=BUSY) for field in form.errors):
        page.status_code = 503
        page["Retry-After"] = str(_BUSY_SECONDS)
    return page


@transaction.atomic
def _end_sessions(user: User, end: Callable[[User], int]) -> int:
    count = end(user)
    if count:
        write_entry(user, user, {"sessions": [_("{count} open", count=count), _("ended")]})
    return count


def _this(request: HttpRequest) -> str:
    return sessions.stored_key(request.session.session_key or "")


class Join(auth_views.PasswordResetConfirmView):
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
        if not set_password(user, self.request.session.pop(auth_views.INTERNAL_RESET_SESSION_TOKEN)):
            return redirect(self.request.path)
        auth.login(self.request, user, "grid.accounts.AccountBackend")
        messages.success(self.request, _("Your password is set, and you are logged in."))
        return redirect("home")


join = require_http_methods(["GET", "HEAD", "POST"])(Join.as_view())
# The token is moved from the address into the visitor's session before anything is shown, so it is in no history and no `Referer`; and
# only the person whose address it is, logged in, can confirm it, by a POST: no program does that looks at links.
_LINK = "email_link"
_OTHERS_LINK = _(
    "This link is for another account. Log out, then open it again and log in as the person who asked for it."
)


@login_not_required
@require_safe
def email_link(request: HttpRequest, id: int, token: str) -> HttpResponse:
    """Keep the token in the session, and lead to the page that asks; 410 for a link that does not work."""
    if channels.change_of_link(id, token, now=timezone.now()) is None:
        return _confirm_page(request, None)
    request.session[_LINK] = [id, token]
    return redirect("email-confirm")


@require_http_methods(["GET", "HEAD", "POST"])
def email_confirm(request: HttpRequest) -> HttpResponse:
    """Ask whether the address is right, then use it; 403 for somebody else's link."""
    user, now = user_of(request), timezone.now()
    id, token = request.session.get(_LINK, [0, ""])
    pending = channels.change_of_link(id, token, now=now)
    if pending is None:
        return _confirm_page(request, None)
    if id != user.pk:
        raise PermissionDenied(_OTHERS_LINK)
    if request.method != "POST":
        return _confirm_page(request, pending)
    del request.session[_LINK]
    if not channels.confirm(user, token, now=now):
        return _confirm_page(request, None)
    messages.success(request, _("Your e-mail address is {address} now.", address=pending.address))
    return redirect("account")


@require_POST
def email_send_again(request: HttpRequest) -> HttpResponse:
    try:
        is_sent = channels.send_again(user_of(request), now=timezone.now())
        if is_sent:
            messages.success(request, _("Another link is being sent. The earlier one no longer works."))
    except Rejected as refused:
        messages.error(request, refused.sentences)
    return redirect("account")


@require_POST
def email_cancel(request: HttpRequest) -> HttpResponse:
    if channels.call_off(user_of(request)):
        messages.success(request, _("Your e-mail address stays as it is."))
    return redirect("account")


def _confirm_page(request: HttpRequest, pending: EmailChange | None) -> HttpResponse:
    """Ask whether to use the address; 410 without one, because the link does not work."""
    return render(request, "accounts/email_confirm.html", {"pending": pending}, status=200 if pending else 410)
