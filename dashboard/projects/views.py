"""Projects as their members see them: admins edit all, with their people, an owner the own ones, other members and observers look."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.accounts.people import grace, losses, work_in
from dashboard.accounts.viewmodel import member_sentences
from dashboard.administration.views import EditedKind, catalogue_edit, catalogue_list, latest_changes
from dashboard.projects.forms import MemberForm, OwnProjectForm, ProjectForm
from dashboard.shell.access import (
    may_administer,
    may_contribute,
    may_manage_project,
    may_observe,
    seen_project,
    user_of,
)
from dashboard.shell.viewmodels.format import either
from dashboard.shell.viewmodels.listing import Confirmation
from dashboard.workspaces.viewmodels.shutdown import LIMIT_LABELS
from grid.audit import entries as audit
from grid.core.translation import gettext as _
from grid.core.wording import duration
from grid.models import AuditEntry, Membership, Project, User


@dataclass(frozen=True, slots=True)
class PeopleWords:
    owner: str
    others: str


# The roles of a project's members by their field names in an audit entry.
_ROLES = {
    "owner": Membership.Role.OWNER,
    "contributors": Membership.Role.CONTRIBUTOR,
    "viewers": Membership.Role.VIEWER,
}


class _Projects(EditedKind):
    __slots__ = ()

    def words(self, instance: Any) -> PeopleWords:
        return people_words((member.user.get_username(), member.role) for member in instance.memberships.all())

    def doubts(self, form: Any) -> Sequence[str]:
        """Return whose executions in the project it stops."""
        return () if form.instance._state.adding else losses(form.instance, form.contributing())

    def restore_roles(self, instance: Project, entry: AuditEntry) -> None:
        """Give the members whose role the entry changed their old role back. Raise ValidationError when one has another role by now."""
        before, after = (
            _roles_in({name: entry.changes[name][at] for name in entry.changes.keys() & _ROLES.keys()}) for at in (0, 1)
        )
        present = _roles_in(instance.people())
        concerned = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
        if any(present.get(name) != after.get(name) for name in concerned):
            raise ValidationError(_("the people of the project have changed since. Change them here instead."))
        roles = {name: role for name, role in (present | before).items() if name not in concerned or name in before}
        # A new account may have the username of a deleted one.
        named_then = User.objects.filter(username__in=roles, date_joined__lte=entry.at)
        users = {user.get_username(): user for user in (*named_then, *instance.members.all())}
        if gone := sorted(roles.keys() - users.keys()):
            raise ValidationError(_("the account {gone} no longer exists.", gone=either(gone)))
        named: dict[str, list[User]] = {
            role: [users[name] for name in roles if roles[name] == role] for role in Membership.Role.values
        }
        if not named[Membership.Role.OWNER]:
            raise ValidationError(_("it had no owner then."))
        instance.assign(
            owner=named[Membership.Role.OWNER][0],
            contributors=named[Membership.Role.CONTRIBUTOR],
            viewers=named[Membership.Role.VIEWER],
        )


def _roles_in(people: Mapping[str, Any]) -> dict[str, str]:
    """Return the role by username; `people` is what `Project.people` returns, or a part of it."""
    roles: dict[str, str] = {}
    for name, role in _ROLES.items():
        chosen = people.get(name) or []
        roles |= dict.fromkeys([chosen] if isinstance(chosen, str) else chosen, role.value)
    return roles


PROJECTS = _Projects(
    "projects",
    "project",
    _("Projects"),
    Project,
    ProjectForm,
    _("Who works together, and where their files are."),
    _("New project"),
    _("Archive the project {name}?"),
    # The users joined: asked for apart, each would be a condition, and SQLite takes a thousand.
    related=(Prefetch("memberships", Membership.objects.select_related("user")),),
    roles=frozenset(_ROLES),
)


def people_words(members: Iterable[tuple[str, str]]) -> PeopleWords:
    """Return the members in words from their names and roles; viewers come last and are marked as such."""
    by_role: dict[str, list[str]] = {"owner": [], "contributor": [], "viewer": []}
    for name, role in members:
        by_role[role].append(name)
    viewers = [_("{name} (viewer)", name=name) for name in sorted(by_role["viewer"])]
    others = [*sorted(by_role["contributor"]), *viewers]
    return PeopleWords("".join(by_role["owner"]), ", ".join(others) or _("nobody else"))


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
            project, _of_people = seen_project(request, id)
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
    if role == Membership.Role.CONTRIBUTOR:
        return _("{user} is a contributor now.", user=user)
    change = _("{user} is a viewer now.", user=user) if role else _("{user} is no longer in the project.", user=user)
    if before is None or before.role == Membership.Role.VIEWER:
        return change
    lost = _("Their active executions in it are stopped after {grace}.", grace=duration(grace()))
    return f"{change} {lost}"


def _managed(request: HttpRequest, id: str) -> Project:
    """Return the locked project of its owner or of an admin; members and observers are refused, strangers do not learn of it."""
    project, roles = seen_project(request, id, is_locked=True)
    if not may_manage_project(request.user, roles):
        raise PermissionDenied(_("Only the owner of the project and admins change it."))
    return project


def _roles(project: Project) -> dict[int, str]:
    return dict(project.memberships.values_list("user_id", "role"))
