"""The list of projects, and their settings: admins edit all, with their people, an owner the own ones."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.accounts.people import losses
from dashboard.administration.views import EditedKind, catalogue_edit, catalogue_list, latest_changes
from dashboard.projects.forms import OwnProjectForm, ProjectForm
from dashboard.projects.project_records import RANK
from dashboard.projects.views.frame import frame, managed_project
from dashboard.shell.access import may_administer, user_of
from dashboard.shell.viewmodels.format import either
from dashboard.workspaces.viewmodels.shutdown import LIMIT_LABELS
from grid.audit import entries as audit
from grid.core.translation import gettext as _
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

    @property
    def form_name(self) -> str:
        return "project-settings"

    def frame(self, request: HttpRequest, instance: Any) -> dict[str, Any]:
        roles = dict(instance.memberships.values_list("user_id", "role"))
        return frame(request, instance, roles, self.form_name)

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
async def project_settings(request: HttpRequest, catalogue: EditedKind, id: str) -> HttpResponse:
    """Show or submit the form in which the owner and admins change the project; an admin's has more fields."""
    if await sync_to_async(may_administer)(request.user):
        return await catalogue_edit(request, catalogue, id)
    return await sync_to_async(_own_project)(request, id)


def _own_list(request: HttpRequest) -> HttpResponse:
    memberships = Membership.objects.filter(user=user_of(request)).select_related("project")
    shown = sorted(memberships, key=lambda own: (own.project.is_archived, RANK[own.role], own.project.name))
    return render(request, "projects/projects.html", {"memberships": shown})


def _own_project(request: HttpRequest, id: str) -> HttpResponse:
    with transaction.atomic():
        project = managed_project(request, id)
        title, before = project.name, audit.snapshot(project)
        form = OwnProjectForm(request.POST if request.method == "POST" else None, instance=project)
        if form.is_valid():
            form.save()
            audit.record(actor=user_of(request), instance=project, action=AuditEntry.Action.CHANGED, before=before)
            messages.success(request, _("{project} is saved.", project=project))
            return redirect("project-settings", id)
    roles = dict(project.memberships.values_list("user_id", "role"))
    context = frame(request, project, roles, "project-settings") | {
        "title": title,  # the form's instance has the typed one
        "form": form,
        "history": latest_changes(HISTORY_LABELS, object_type="project", object_id=id),
    }
    return render(request, "projects/settings.html", context, status=400 if form.errors else 200)
