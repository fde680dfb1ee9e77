"""Who may see and do what: one place, asked by every view, websocket and template.

Each person has one platform role, as a superuser or by group, and `PERMISSIONS` says what that allows beyond what is his own and his
projects'. What a member of a project may do there depends on his role in it (`grid.models.Membership`). A `Viewer` is a person as one
value, read from the database once per request or connection.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from typing import Any, Protocol, TypeVar

from asgiref.sync import sync_to_async
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from grid.models import User

_View = TypeVar("_View", bound=Callable[..., Any])


class Role(StrEnum):
    ADMIN = "admin"
    OPERATOR = "operator"
    AUDITOR = "auditor"
    PRACTITIONER = "practitioner"


class Permission(StrEnum):
    OBSERVE = "observe"  # see the infrastructure and everybody's executions
    OPERATE = "operate"  # stop and change what others run
    ADMINISTER = "administer"  # edit tiers, environments, projects, settings


PERMISSIONS = {
    Role.ADMIN: frozenset(Permission),
    Role.OPERATOR: frozenset({Permission.OBSERVE, Permission.OPERATE}),
    Role.AUDITOR: frozenset({Permission.OBSERVE}),
    Role.PRACTITIONER: frozenset[Permission](),
}
# Whoever is in several has the first; a superuser is an admin.
GROUPS = {"operators": Role.OPERATOR, "auditors": Role.AUDITOR}


@dataclass(frozen=True, slots=True)
class Viewer:
    """A logged-in person; safe to keep and to use on the event loop, where the database may not be asked."""

    id: int
    username: str
    role: Role


AnyUser = User | AnonymousUser | AbstractBaseUser | Viewer


class ExecutionLike(Protocol):
    """What the runtime's `ExecutionRow`, a page's `ExecutionRecord` and a `WorkspaceRecord` can say."""

    @property
    def owner_id(self) -> int: ...

    @property
    def project_member_ids(self) -> Collection[int]: ...


def role_of(user: AnyUser) -> Role:
    """The highest role; asks the database for a user's groups, and nothing for a viewer. Nobody is a practitioner without rights."""
    if isinstance(user, Viewer):
        return user.role
    if not isinstance(user, User) or not user.is_active:
        return Role.PRACTITIONER
    if user.is_superuser:
        return Role.ADMIN
    return _highest(user.groups.filter(name__in=GROUPS).values_list("name", flat=True))


def viewer_of(user: AnyUser) -> Viewer | None:
    """The person as a value; None for nobody and for a closed account."""
    if isinstance(user, Viewer):
        return user
    if not isinstance(user, User) or not user.is_active:
        return None
    return Viewer(id=user.pk, username=user.get_username(), role=role_of(user))


def viewers_of(users: Collection[User]) -> dict[int, Viewer]:
    """The open accounts among these as values by their ids, in one query however many they are."""
    groups: dict[int, list[str]] = {}
    members = User.groups.through.objects.filter(user__in={user.pk for user in users}, group__name__in=GROUPS)
    for user_id, name in members.values_list("user_id", "group__name"):
        groups.setdefault(user_id, []).append(name)

    def role(user: User) -> Role:
        return Role.ADMIN if user.is_superuser else _highest(groups.get(user.pk, ()))

    return {
        user.pk: Viewer(id=user.pk, username=user.get_username(), role=role(user)) for user in users if user.is_active
    }


def _highest(groups: Iterable[str]) -> Role:
    names = set(groups)
    return next((role for name, role in GROUPS.items() if name in names), Role.PRACTITIONER)


def has_permission(user: AnyUser, permission: Permission) -> bool:
    return permission in PERMISSIONS[role_of(user)]


def may_observe(user: AnyUser) -> bool:
    return has_permission(user, Permission.OBSERVE)


def may_operate(user: AnyUser) -> bool:
    return has_permission(user, Permission.OPERATE)


def may_administer(user: AnyUser) -> bool:
    return has_permission(user, Permission.ADMINISTER)


def may_see_execution(user: AnyUser, row: ExecutionLike) -> bool:
    """That it is there, and how it is: whoever may read it, and its owner, who may have left the project."""
    viewer = viewer_of(user)
    return viewer is not None and (row.owner_id == viewer.id or may_read_execution(viewer, row))


def may_read_execution(user: AnyUser, row: ExecutionLike) -> bool:
    """Its log and its pods, which tell of the project's data: the project's members, and who observes all."""
    viewer = viewer_of(user)
    return viewer is not None and (viewer.id in row.project_member_ids or may_observe(viewer))


def may_see_workspace(user: AnyUser, workspace: ExecutionLike) -> bool:
    """Whoever may see its executions."""
    return may_see_execution(user, workspace)


def may_manage_workspace(user: AnyUser, workspace: ExecutionLike) -> bool:
    """Resume, rename and delete it: it starts as its owner, with the owner's files. (Who may stop it is told by its execution.)"""
    viewer = viewer_of(user)
    return viewer is not None and viewer.id == workspace.owner_id


def admin_required(view: _View) -> _View:
    """403 for everybody but admins."""

    def check(request: HttpRequest) -> None:
        if not may_administer(request.user):
            raise PermissionDenied("This page is for admins.")

    if asyncio.iscoroutinefunction(view):

        @wraps(view)
        async def guarded_async(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            await sync_to_async(check)(request)
            return await view(request, *args, **kwargs)

        return guarded_async  # type: ignore[return-value]

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        check(request)
        return view(request, *args, **kwargs)

    return guarded  # type: ignore[return-value]
