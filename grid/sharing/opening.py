"""Decides who may open an execution: reach its web page, and with it the files and the shell behind it.

Opening gives access to the project's files, so it takes a contributor of the project, whoever launched the execution. A workspace, app or
job is only its owner's; a cluster's web page shows no more than the work that it does, and can end it, so every contributor may open it. An
app shows what its owner made it show, so its owner may share it with any member of the project, by name (`sharing`).
Whether it still runs, and whether the session is logged in, is checked elsewhere.
"""

from collections.abc import Collection

from django.db.models import Q
from django.db.models.functions import Now

from grid.models import AppShare, Execution, Membership, PortShare, User
from grid.models.environment import Kind
from grid.models.execution import State

Pair = tuple[int, str]  # a user's id and an execution's, or a shared port's


def may_open(user_id: int, execution: Execution) -> bool:
    """Return True for the owner as a contributor, for contributors if it is a cluster, and for members with whom an app is shared."""
    pair = (user_id, execution.pk)
    return pair in openable([pair])


def openable(pairs: Collection[Pair]) -> set[Pair]:
    """Return those pairs for which `may_open` is True, in four queries however many there are."""
    users, ids = {user for user, _ in pairs}, {id for _, id in pairs}
    rows = Execution.objects.filter(pk__in=ids).values_list("pk", "kind", "owner_id", "project_id")
    executions = {id: (kind, owner, project) for id, kind, owner, project in rows}
    active, roles = _active_roles(users, {project for _, _, project in executions.values()})
    apps = {id for id, (kind, _, _) in executions.items() if kind == Kind.APP}
    shares = AppShare.objects.filter(execution_id__in=apps, user_id__in=active)
    shared = set(shares.values_list("user_id", "execution_id")) if apps else set()

    def may(user: int, id: str) -> bool:
        if id not in executions:
            return False
        kind, owner, project = executions[id]
        role = roles.get((project, user))
        contributes = role in Membership.CONTRIBUTING and (user == owner or kind == Kind.CLUSTER)
        return contributes or (role is not None and (user, id) in shared)

    return {(user, id) for user, id in pairs if may(user, id)}


def _active_roles(users: Collection[int], projects: Collection[str]) -> tuple[set[int], dict[tuple[str, int], str]]:
    active = set(User.objects.filter(pk__in=users, is_active=True).values_list("pk", flat=True))
    memberships = Membership.objects.filter(project_id__in=projects, user_id__in=active)
    rows = memberships.values_list("project_id", "user_id", "role")
    return active, {(project, user): role for project, user, role in rows}


def may_open_port(user_id: int, share: PortShare) -> bool:
    """Return True for the workspace's owner and those with whom the port is shared, while they are members of its project."""
    pair = (user_id, share.pk)
    return pair in openable_ports([pair])


def openable_ports(pairs: Collection[Pair]) -> set[Pair]:
    """Return those pairs for which `may_open_port` is True, in four queries however many there are. A share ends with its time, when the
    workspace is to stop, and while its owner does not contribute to the project any more."""
    users, ids = {user for user, _ in pairs}, {id for _, id in pairs}
    lasting = PortShare.objects.filter(Q(ends_at=None) | Q(ends_at__gt=Now()), pk__in=ids)
    running = lasting.filter(execution__state=State.RUNNING, execution__stop_requested_at=None)
    rows = running.values_list("pk", "execution__owner_id", "execution__project_id")
    shares = {id: (owner, project) for id, owner, project in rows}
    if not shares:
        return set()
    concerned = users | {owner for owner, _ in shares.values()}
    active, roles = _active_roles(concerned, {project for _, project in shares.values()})
    chosen = PortShare.members.through.objects.filter(portshare_id__in=shares, user_id__in=active)
    shared = set(chosen.values_list("user_id", "portshare_id"))

    def may(user: int, id: str) -> bool:
        if id not in shares:
            return False
        owner, project = shares[id]
        is_chosen = user == owner or (user, id) in shared
        return is_chosen and (project, user) in roles and roles.get((project, owner)) in Membership.CONTRIBUTING

    return {(user, id) for user, id in pairs if may(user, id)}
