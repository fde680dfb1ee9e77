"""Access rules: every view, websocket and template asks this module. Each user has one platform role, as a superuser or by group, and
`PERMISSIONS` says what the role allows beyond the user's own executions and projects. What a member may do in a project depends on the role
there (`grid.models.Membership`). A `Viewer` is a user as a plain value, read from the database once per request or connection."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import StrEnum
from functools import partial, wraps
from typing import Any, Protocol, TypeVar

import msgspec
from asgiref.sync import sync_to_async
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, Group
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest

from grid.accounts.backend import OPERATORS
from grid.accounts.sessions import SessionUser
from grid.core.translation import gettext as _
from grid.models import Membership, Project, User

_View = TypeVar("_View", bound=Callable[..., Any])


class Role(StrEnum):
    ADMIN = "admin"
    OPERATOR = "operator"
    AUDITOR = "auditor"
    PRACTITIONER = "practitioner"


class Permission(StrEnum):
    OBSERVE = "observe"  # see the infrastructure and everybody's executions
    OPERATE = "operate"  # stop and change what others run
    READ_AUDIT = "read audit"  # see who did what
    ADMINISTER = "administer"  # edit tiers, environments, projects, settings


PERMISSIONS = {
    Role.ADMIN: frozenset(Permission),
    Role.OPERATOR: frozenset({Permission.OBSERVE, Permission.OPERATE}),
    Role.AUDITOR: frozenset({Permission.OBSERVE, Permission.READ_AUDIT}),
    Role.PRACTITIONER: frozenset[Permission](),
}
# A user in several groups has the first one's role; a superuser is an admin.
GROUPS = {OPERATORS: Role.OPERATOR, "auditors": Role.AUDITOR}


class Viewer(msgspec.Struct, frozen=True, gc=False):
    """A logged-in user as a plain value, safe to keep and to use on the event loop, where the database must not be queried."""

    id: int
    username: str
    role: Role


AnyUser = User | AnonymousUser | AbstractBaseUser | Viewer


class ExecutionLike(Protocol):
    """The common part of the runtime's `ExecutionRow`, a page's `ExecutionRecord` and a `WorkspaceRecord`."""

    @property
    def owner_id(self) -> int: ...

    @property
    def project_member_ids(self) -> Collection[int]: ...


def user_of(request: HttpRequest) -> User:
    """Return who asks, for a view that nobody reaches without a login."""
    assert isinstance(request.user, User)
    return request.user


def role_of(user: AnyUser) -> Role:
    """Return the user's highest role, by a query unless it is a viewer; an anonymous or inactive user has the practitioner's."""
    if isinstance(user, Viewer):
        return user.role
    if not isinstance(user, User) or not user.is_active:
        return Role.PRACTITIONER
    if user.is_superuser:
        return Role.ADMIN
    return _highest(user.groups.filter(name__in=GROUPS).values_list("name", flat=True))


def viewer_of(user: AnyUser) -> Viewer | None:
    """Return the user as a plain value; None for an anonymous or inactive user."""
    if isinstance(user, Viewer):
        return user
    if not isinstance(user, User) or not user.is_active:
        return None
    return Viewer(id=user.pk, username=user.get_username(), role=role_of(user))


def viewers_of(users: Collection[SessionUser]) -> dict[int, Viewer]:
    """Return the users as viewers by id, in one query."""
    # All members: they are few, and a query with a thousand ids in it takes longer than their rows.
    members = User.groups.through.objects.filter(group__name__in=GROUPS)
    groups: dict[int, list[str]] = {}
    for user_id, name in members.values_list("user_id", "group__name"):
        groups.setdefault(user_id, []).append(name)
    roles = {user_id: _highest(names) for user_id, names in groups.items()}
    roles |= {user.pk: Role.ADMIN for user in users if user.is_superuser}
    return {user.pk: Viewer(user.pk, user.username, roles.get(user.pk, Role.PRACTITIONER)) for user in users}


def viewer_in(user: SessionUser) -> Viewer:
    """Return the user of a session, which was read with `GROUPS`, as a viewer."""
    return Viewer(user.pk, user.username, Role.ADMIN if user.is_superuser else _highest(user.groups))


def assign_role(user: User, role: Role) -> None:
    """Give the user this role and no other. An admin also enters Django's own admin."""
    user.is_superuser = user.is_staff = role is Role.ADMIN
    user.save(update_fields=["is_superuser", "is_staff"])
    user.groups.remove(*Group.objects.filter(name__in=GROUPS))
    for name, granted in GROUPS.items():
        if granted is role:
            user.groups.add(Group.objects.get_or_create(name=name)[0])


def _highest(groups: Iterable[str]) -> Role:
    names = set(groups)
    return next((role for name, role in GROUPS.items() if name in names), Role.PRACTITIONER)


def has_permission(user: AnyUser, permission: Permission) -> bool:
    return permission in PERMISSIONS[role_of(user)]


may_observe = partial(has_permission, permission=Permission.OBSERVE)
may_operate = partial(has_permission, permission=Permission.OPERATE)
may_read_audit = partial(has_permission, permission=Permission.READ_AUDIT)
may_administer = partial(has_permission, permission=Permission.ADMINISTER)


def may_see_execution(user: AnyUser, row: ExecutionLike) -> bool:
    """Return whether the user may see that it exists and its state: its readers, and its owner even after leaving the project."""
    viewer = viewer_of(user)
    return viewer is not None and (row.owner_id == viewer.id or may_read_execution(viewer, row))


def may_read_execution(user: AnyUser, row: ExecutionLike) -> bool:
    """Return whether the user may read its log and pods, which reveal the project's data: the project's members and all observers."""
    viewer = viewer_of(user)
    return viewer is not None and (viewer.id in row.project_member_ids or may_observe(viewer))


# The same rule as for their executions. What a job's runs ran with reveals the project's data, too.
may_see_workspace = may_see_job = may_see_execution


def may_see_project(user: AnyUser, roles: Mapping[int, str]) -> bool:
    """Return whether the user may see the project, its people and its budget (`roles` by user id): its members and all observers."""
    viewer = viewer_of(user)
    return viewer is not None and (viewer.id in roles or may_observe(viewer))


def seen_project(request: HttpRequest, id: str, *, is_locked: bool = False) -> tuple[Project, dict[int, str]]:
    """Return the project and the roles in it by user id. Raise Http404 for who may not know that it exists."""
    rows = Project.objects.select_for_update(no_key=True) if is_locked else Project.objects.all()
    project = rows.filter(pk=id).first()
    roles = dict(project.memberships.values_list("user_id", "role")) if project is not None else {}
    if project is None or not may_see_project(request.user, roles):
        raise Http404
    return project, roles


def may_see_usage(user: AnyUser, person_id: int) -> bool:
    """Return whether the user may see what a person used and what it cost: the person and all observers."""
    viewer = viewer_of(user)
    return viewer is not None and (viewer.id == person_id or may_observe(viewer))


def may_contribute(user: AnyUser, roles: Mapping[int, str]) -> bool:
    """Return whether the user launches in the project and uses its files (`roles` by user id): its owner and contributors."""
    viewer = viewer_of(user)
    return viewer is not None and roles.get(viewer.id) in Membership.CONTRIBUTING


def may_manage_project(user: AnyUser, roles: Mapping[int, str]) -> bool:
    """Return whether the user may rename the project and change its members: its owner and admins."""
    viewer = viewer_of(user)
    return viewer is not None and (roles.get(viewer.id) == Membership.Role.OWNER or may_administer(viewer))


def may_manage_workspace(user: AnyUser, workspace: ExecutionLike) -> bool:
    """Return whether the user may resume, rename and delete it: its owner only, because it runs as the owner with the owner's files.
    (Its execution decides who may stop it.)"""
    viewer = viewer_of(user)
    return viewer is not None and viewer.id == workspace.owner_id


may_manage_job = may_manage_workspace  # its runs are the owner's


def requires(permission: Permission, refusal: str) -> Callable[[_View], _View]:
    """Return a decorator of views that raises PermissionDenied (403) with `refusal` unless the user has the permission. Django's
    `user_passes_test` would read the user of an async view twice."""

    def check(request: HttpRequest) -> None:
        if not has_permission(request.user, permission):
            raise PermissionDenied(refusal)

    def decorate(view: _View) -> _View:
        @wraps(view)
        async def later(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            await sync_to_async(check)(request)
            return await view(request, *args, **kwargs)

        @wraps(view)
        def now(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            check(request)
            return view(request, *args, **kwargs)

        return later if asyncio.iscoroutinefunction(view) else now  # type: ignore[return-value]

    return decorate


admin_required = requires(Permission.ADMINISTER, _("Only admins can see this page."))
observer_required = requires(Permission.OBSERVE, _("Only operators, auditors and admins can see this page."))
