"""The members of a project: the page with their roles, and giving a person a role in it."""

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from dashboard.accounts.people import grace, work_in
from dashboard.accounts.viewmodel import member_sentences
from dashboard.projects.forms import MemberForm
from dashboard.projects.project_records import members_of
from dashboard.projects.views.frame import frame, managed_project
from dashboard.shell.access import may_observe, seen_project, user_of
from dashboard.shell.viewmodels.listing import Confirmation
from grid.audit import entries as audit
from grid.core.translation import gettext as _
from grid.core.wording import duration
from grid.models import AuditEntry, Membership, Project, User


@require_http_methods(["GET", "HEAD", "POST"])
def project_member(request: HttpRequest, id: str) -> HttpResponse:
    """Show the members, or give one person a role. A member gets another one, or none, after a question that says what that does."""
    if request.method != "POST" and not request.GET:
        return _members(request, id)
    form = MemberForm(request.POST if request.method == "POST" else request.GET)
    with transaction.atomic():
        project = managed_project(request, id)
        before = audit.snapshot(project)
        if not form.is_valid():
            messages.error(request, " ".join(str(error) for errors in form.errors.values() for error in errors))
            return redirect("project-member", id)
        user, role = form.cleaned_data["username"], form.cleaned_data["role"]
        member = project.memberships.filter(user=user).first()
        if member is not None and member.role == Membership.Role.OWNER:
            messages.error(request, _("Only an admin changes the owner."))
            return redirect("project-member", id)
        is_change = member is not None and member.role != role
        if request.method != "POST" or (is_change and "confirmed" not in request.POST):
            return render(request, "shell/question.html", {"question": _question(project, user, member, role)})
        sentence = _said(user, member, role)
        if role:
            project.memberships.update_or_create(user=user, defaults={"role": role})
        else:
            project.memberships.filter(user=user).delete()
        audit.record(actor=user_of(request), instance=project, action=AuditEntry.Action.CHANGED, before=before)
    messages.success(request, sentence)
    return redirect("project-member", id)


def _members(request: HttpRequest, id: str) -> HttpResponse:
    project, roles = seen_project(request, id)
    context = frame(request, project, roles, "project-member") | {
        "members": members_of(project),
        "roles": MemberForm.ROLES,
        "grace": duration(grace()),
    }
    return render(request, "projects/members.html", context)


_ASKED = {
    Membership.Role.CONTRIBUTOR.value: (_("Make {subject} a contributor"), _("Make contributor")),
    Membership.Role.VIEWER.value: (_("Make {subject} a viewer"), _("Make viewer")),
    "": (_("Remove {subject} from {project}"), _("Remove")),
}


def _question(project: Project, user: User, member: Membership | None, role: str) -> Confirmation:
    username = user.get_username()
    sentences = member_sentences(
        username,
        before=member.role if member is not None else "",
        after=role,
        work=work_in(project, user),
        grace=grace(),
        sees_all=may_observe(user),
    )
    title, answer = _ASKED[role]
    return Confirmation(
        title.format(subject="{subject}", project=project),
        username,
        sentences,
        action_url=reverse("project-member", args=[project.pk]),
        answer=answer,
        keep=_("Change nothing"),
        keep_url=reverse("project-member", args=[project.pk]),
        fields=(("username", username), ("role", role or "remove"), ("confirmed", "on")),
        is_danger=role != Membership.Role.CONTRIBUTOR,
    )


def _said(user: User, before: Membership | None, role: str) -> str:
    if role == Membership.Role.CONTRIBUTOR:
        return _("{user} is a contributor now.", user=user)
    change = _("{user} is a viewer now.", user=user) if role else _("{user} is no longer in the project.", user=user)
    if before is None or before.role == Membership.Role.VIEWER:
        return change
    lost = _("Their active executions in it are stopped after {grace}.", grace=duration(grace()))
    return f"{change} {lost}"
