"""Projects as their members see them: admins edit all, an owner the own ones, other members and observers look."""

from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.accounts.records import grace, work_in
from dashboard.accounts.viewmodel import member_sentences
from dashboard.administration.views import EditedKind, catalogue_edit, catalogue_list, latest_changes
from dashboard.projects.forms import MemberForm, OwnProjectForm
from dashboard.shell.access import (
    may_administer,
    may_contribute,
    may_manage_project,
    may_observe,
    may_see_project,
    user_of,
)
from dashboard.shell.viewmodels.listing import Confirmation
from dashboard.workspaces.viewmodels.shutdown import LIMIT_LABELS
from grid.audit import entries as audit
from grid.core.translation import gettext as _
from grid.core.wording import duration
from grid.models import AuditEntry, Membership, Project, User

_RANK = {role: rank for rank, role in enumerate(("owner", "contributor", "viewer"))}
HISTORY_LABELS = {
    "name": _("Name"),
    "description": _("Description"),
    **LIMIT_LABELS,
    "contributors": _("Contributors"),
    "viewers": _("Viewers"),
    "secret": _("Secret"),
    "files": _("Files"),
    "remote": _("Remote repository"),
}


@require_safe
async def projects(request: HttpRequest, catalogue: EditedKind) -> HttpResponse:
    """Show an admin all projects, everybody else the own ones."""
    if await sync_to_async(may_administer)(request.user):
        return await catalogue_list(request, catalogue)
    return await sync_to_async(_own_list)(request)


@require_http_methods(["GET", "HEAD", "POST"])
async def project(request: HttpRequest, catalogue: EditedKind, id: str) -> HttpResponse:
    if await sync_to_async(may_administer)(request.user):
        return await catalogue_edit(request, catalogue, id)
    return await sync_to_async(_own_project)(request, id)


@require_http_methods(["GET", "HEAD", "POST"])
def project_member(request: HttpRequest, id: str) -> HttpResponse:
    """Give one person a role in the project; a member another one, or none, after a question that says what that does. The owner stays."""
    form = MemberForm(request.POST if request.method == "POST" else request.GET)
    with transaction.atomic():
        project = _managed(request, id)
        before = audit.snapshot(project)
        if not form.is_valid():
            messages.error(request, " ".join(str(error) for errors in form.errors.values() for error in errors))
            return redirect("project", id)
        user, role = form.cleaned_data["username"], form.cleaned_data["role"]
        member = project.memberships.filter(user=user).first()
        if member is not None and member.role == Membership.Role.OWNER:
            messages.error(request, _("Only an admin changes the owner."))
            return redirect("project", id)
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
    return redirect("project", id)


def _own_list(request: HttpRequest) -> HttpResponse:
    memberships = Membership.objects.filter(user=user_of(request)).select_related("project")
    shown = sorted(memberships, key=lambda own: (own.project.is_archived, _RANK[own.role], own.project.name))
    return render(request, "projects/projects.html", {"memberships": shown})


def _own_project(request: HttpRequest, id: str) -> HttpResponse:
    form = None
    with transaction.atomic():
        if request.method == "POST":
            project = _managed(request, id)
            before = audit.snapshot(project)
            form = OwnProjectForm(request.POST, instance=project)
            if form.is_valid():
                form.save()
                audit.record(actor=user_of(request), instance=project, action=AuditEntry.Action.CHANGED, before=before)
                messages.success(request, _("{project} is saved.", project=project))
                return redirect("project", id)
        else:
            project = _seen(request, id)
    may_manage = may_manage_project(request.user, _roles(project))
    members = project.memberships.select_related("user").order_by("user__username")
    history = latest_changes(HISTORY_LABELS, object_type="project", object_id=id) if may_manage else []
    context: dict[str, Any] = {
        "project": project,
        "title": Project.objects.get(pk=id).name,  # the form's instance has the typed one
        "may_manage": may_manage,
        "may_contribute": may_contribute(request.user, _roles(project)),
        "may_browse": project.is_in_git and may_contribute(request.user, _roles(project)),
        "members": sorted(members, key=lambda member: _RANK[member.role]),
        "may_set_remote": may_manage and bool(settings.REPOSITORIES),
        "form": (form or OwnProjectForm(instance=project)) if may_manage else None,
        "roles": MemberForm.ROLES,
        "grace": duration(grace()),
        "history": history,
    }
    return render(request, "projects/project.html", context, status=400 if form is not None else 200)


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
        keep_url=reverse("project", args=[project.pk]),
        fields=(("username", username), ("role", role or "remove"), ("confirmed", "on")),
        is_danger=role != Membership.Role.CONTRIBUTOR,
    )


def _said(user: User, before: Membership | None, role: str) -> str:
    """Return what the change of a role means for what that person runs."""
    if role == Membership.Role.CONTRIBUTOR:
        return _("{user} is a contributor now.", user=user)
    change = _("{user} is a viewer now.", user=user) if role else _("{user} is no longer in the project.", user=user)
    if before is None or before.role == Membership.Role.VIEWER:
        return change
    lost = _("Their active executions in it are stopped after {grace}.", grace=duration(grace()))
    return f"{change} {lost}"


def _seen(request: HttpRequest, id: str, *, is_locked: bool = False) -> Project:
    """Return the project. Raise Http404 for who may not know that it exists."""
    rows = Project.objects.select_for_update(no_key=True) if is_locked else Project.objects.all()
    project = rows.filter(pk=id).first()
    if project is None or not may_see_project(request.user, _roles(project)):
        raise Http404
    return project


def _managed(request: HttpRequest, id: str) -> Project:
    """Return the locked project of its owner or of an admin; members and observers are refused, strangers do not learn of it."""
    project = _seen(request, id, is_locked=True)
    if not may_manage_project(request.user, _roles(project)):
        raise PermissionDenied(_("Only the owner of the project and admins change it."))
    return project


def _roles(project: Project) -> dict[int, str]:
    return dict(project.memberships.values_list("user_id", "role"))
