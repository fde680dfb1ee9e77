"""The admins' pages of people: who may log in, with which role, since when; invitations, links, closed accounts, and locked logins."""

import ipaddress
from datetime import timedelta

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import SuspiciousOperation
from django.core.paginator import Page, Paginator
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_GET, require_http_methods, require_POST, require_safe

from dashboard.accounts import people as accounts, viewmodel
from dashboard.accounts.forms import InviteForm, PeopleFilterForm, RoleForm
from dashboard.administration.views import latest_changes
from dashboard.shell.access import PERMISSIONS, Role, admin_required, user_of
from dashboard.shell.viewmodels.listing import Confirmation, Paging
from dashboard.shell.viewmodels.states import ROLE_TITLES
from grid.accounts import lockouts, sessions
from grid.configuration import ACCESS_LOST_TIMEOUT, value_of
from grid.core.translation import gettext as _
from grid.models import AuditEntry, Execution, Membership, State, User
from grid.models.execution import ACTIVE_STATES

_PAGE_LENGTH = 50
_MADE = {
    Role.PRACTITIONER: _("Make {subject} a practitioner"),
    Role.AUDITOR: _("Make {subject} an auditor"),
    Role.OPERATOR: _("Make {subject} an operator"),
    Role.ADMIN: _("Make {subject} an admin"),
}
HISTORY_LABELS = {
    "role": _("Role"),
    "state": _("State"),
    "link": _("Link to set a password"),
    "password": _("Password"),
    "sessions": _("Sessions"),
    "name": _("Display name"),
    "email": _("E-mail address"),
    "secret": _("Secret"),
    "new_email": _("New e-mail address, to be confirmed"),
    "webhook": _("Webhook"),
    "notifications": _("Notifications"),
    "test": _("Test of notifications"),
    "file": _("File"),
    "filter": _("Filter"),
}


@require_safe
@admin_required
def people(request: HttpRequest) -> HttpResponse:
    form = PeopleFilterForm(request.GET)
    conditions = form.conditions()
    page = Paginator(accounts.matching(**conditions), _PAGE_LENGTH).get_page(request.GET.get("page"))
    shown = list(page)
    roles, projects = accounts.roles_of(shown), accounts.project_names(shown)
    context = {
        "form": form,
        "rows": [viewmodel.person_row(user, roles[user.pk], projects.get(user.pk, ())) for user in shown],
        "conditions": conditions,
        "chips": viewmodel.people_chips(conditions),
        "paging": _paging(page, conditions),
        "now": timezone.now(),
    }
    answer = render(request, "accounts/people.html", context)
    answer["HX-Push-Url"] = request.path + (f"?{urlencode(conditions)}" if conditions else "")
    return answer


@require_http_methods(["GET", "HEAD", "POST"])
@admin_required
def invite(request: HttpRequest) -> HttpResponse:
    """Make an account without a password, and show the link with which its owner sets one."""
    form = InviteForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        actor = user_of(request)
        try:
            with transaction.atomic():
                user = accounts.invite(form.instance, Role(form.cleaned_data["role"]), actor=actor)
        except IntegrityError:
            form.add_error("username", _("This name is taken."))
        else:
            return _link_page(request, *accounts.make_link(user.pk, actor=actor))
    return render(request, "accounts/person_invite.html", {"form": form}, status=400 if form.is_bound else 200)


@require_safe
@admin_required
def person(request: HttpRequest, id: int) -> HttpResponse:
    user = get_object_or_404(User, pk=id)
    now = timezone.now()
    role = accounts.roles_of([user])[user.pk]
    context = {
        "person": user,
        "now": now,
        "x": viewmodel.person_row(user, role, ()),
        "is_own": user == request.user,
        "form": RoleForm(initial={"role": role.value}),
        "memberships": Membership.objects.filter(user=user).select_related("project").order_by("project__name"),
        "sessions": viewmodel.session_rows(sessions.of_user(user, now), ""),
        "history": latest_changes(HISTORY_LABELS, object_type="user", object_id=str(id)),
    }
    return render(request, "accounts/person.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@admin_required
def person_role(request: HttpRequest, id: int) -> HttpResponse:
    """Give the person another role, after a question that says what it gives and takes."""
    form = RoleForm(request.POST if request.method == "POST" else request.GET)
    if not form.is_valid():
        raise SuspiciousOperation(_("There is no such role."))
    role = Role(form.cleaned_data["role"])
    if request.method != "POST":
        question = _role_question(get_object_or_404(User, pk=id), role)
        return render(request, "shell/question.html", {"question": question})
    try:
        user = accounts.change_role(id, role, actor=user_of(request))
        messages.success(request, _("{user} has the role {role} now.", user=user, role=ROLE_TITLES[role].lower()))
    except accounts.OwnAccount:
        messages.error(request, _("You cannot change your own role. Ask another admin."))
    return redirect("person", id)


@require_http_methods(["GET", "HEAD", "POST"])
@admin_required
def person_link(request: HttpRequest, id: int) -> HttpResponse:
    """Ask, then make a link to set a password, and show it once: it is stored nowhere."""
    user = get_object_or_404(User, pk=id, is_active=True)
    if request.method == "POST":
        return _link_page(request, *accounts.make_link(id, actor=user_of(request)))
    return _link_page(request, user)


@require_http_methods(["GET", "HEAD", "POST"])
@admin_required
def person_deactivate(request: HttpRequest, id: int) -> HttpResponse:
    user = get_object_or_404(User, pk=id)
    if request.method != "POST":
        context = {"person": user, "is_own": user == request.user, "consequences": _consequences(user)}
        return render(request, "accounts/person_deactivate.html", context)
    try:
        accounts.set_active(id, False, actor=user_of(request))
        messages.success(request, _("{user} is deactivated and logged out everywhere.", user=user))
    except accounts.OwnAccount:
        messages.error(request, _("You cannot deactivate yourself. Ask another admin."))
    return redirect("person", id)


@require_POST
@admin_required
def person_activate(request: HttpRequest, id: int) -> HttpResponseRedirect:
    try:
        user = accounts.set_active(id, True, actor=user_of(request))
    except accounts.OwnAccount:
        return redirect("person", id)
    messages.success(request, _("{user} may log in again.", user=user))
    return redirect("person", id)


@require_POST
@admin_required
def person_sessions_end(request: HttpRequest, id: int) -> HttpResponseRedirect:
    """End one session by its stored key, or all without a key."""
    ended = accounts.end_sessions(id, request.POST.get("session", "").replace("\0", ""), actor=user_of(request))
    messages.success(request, _("Ended sessions: {ended}.", ended=ended) if ended else _("No session was open."))
    return redirect("person", id)


def _role_question(user: User, role: Role) -> Confirmation:
    before = accounts.roles_of([user])[user.pk]
    return Confirmation(
        _MADE[role],
        user.get_username(),
        viewmodel.role_sentences(PERMISSIONS[before], PERMISSIONS[role]),
        action_url=reverse("person-role", args=[user.pk]),
        answer=_("Change role"),
        keep=_("Keep {role}", role=ROLE_TITLES[before].lower()),
        keep_url=reverse("person", args=[user.pk]),
        fields=(("role", role.value),),
        is_danger=bool(PERMISSIONS[before] ^ PERMISSIONS[role]),
    )


def _link_page(request: HttpRequest, user: User, link: str = "") -> HttpResponse:
    context = {"person": user, "link": link, "valid_for": viewmodel.valid_for(settings.PASSWORD_RESET_TIMEOUT)}
    return render(request, "accounts/person_link.html", context)


def _consequences(user: User) -> list[str]:
    active = Execution.objects.unsettled().filter(owner=user, state__in=ACTIVE_STATES)
    waiting = active.filter(state=State.QUEUED).count()
    owned = Membership.objects.filter(user=user, role=Membership.Role.OWNER, project__is_archived=False)
    return viewmodel.deactivation_sentences(
        sessions=sessions.of_user(user, timezone.now()).count(),
        waiting=waiting,
        running=active.count() - waiting,
        grace=timedelta(seconds=value_of(ACCESS_LOST_TIMEOUT)),
        owned=list(owned.order_by("project__name").values_list("project__name", flat=True)),
    )


def _paging(page: "Page[User]", conditions: dict[str, str]) -> Paging:
    link = f"?{urlencode(conditions)}{'&' if conditions else ''}page="
    shown = {"first": page.start_index(), "last": page.end_index(), "total": page.paginator.count}
    return Paging(
        _("{first:,} to {last:,} of {total:,}", **shown),
        f"{link}{page.previous_page_number()}" if page.has_previous() else "",
        f"{link}{page.next_page_number()}" if page.has_next() else "",
    )


@require_GET
@admin_required
def logins(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    history = latest_changes({"failures": _("Wrong passwords")}, action=AuditEntry.Action.UNLOCKED)
    context = {"rows": viewmodel.lock_rows(lockouts.locks(now)), "now": now, "history": history}
    return render(request, "accounts/logins.html", context)


@require_POST
@admin_required
def unlock(request: HttpRequest) -> HttpResponse:
    """End one lock. It is no error when the lock has expired in the meantime."""
    name, address = request.POST.get("name", ""), request.POST.get("address", "")
    try:
        if address:
            ipaddress.ip_address(address)  # PostgreSQL rejects anything else for that column
        ended = lockouts.unlock(lockouts.Scope(request.POST.get("scope", "")), name, address, actor=user_of(request))
    except ValueError:
        raise SuspiciousOperation(_("There is no such kind of lock.")) from None
    outcome = _("Unlocked: logging in is possible again.") if ended else _("That lock had already ended.")
    messages.success(request, outcome)
    return redirect("logins")
