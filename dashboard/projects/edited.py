"""Projects as admins edit them: with their people, whose roles a change may take away."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Prefetch

from dashboard.accounts.records import losses
from dashboard.administration.views import EditedKind
from dashboard.projects.forms import ProjectForm
from dashboard.shell.viewmodels.format import either
from grid.core.translation import gettext as _
from grid.models import AuditEntry, Membership, Project, User


@dataclass(frozen=True, slots=True)
class PeopleWords:
    """The members of a project: its owner, and all others in one text."""

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
        return people_words(
            (membership.user.get_username(), membership.role) for membership in instance.memberships.all()
        )

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
        users = {
            user.get_username(): user for user in User.objects.filter(username__in=roles, date_joined__lte=entry.at)
        }
        users |= {user.get_username(): user for user in instance.members.all()}
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
