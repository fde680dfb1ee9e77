"""Decides who may open an execution: reach its web page, and with it the files and the shell behind it.

Opening gives access to the project's files, so it takes a contributor of the project, whoever launched the execution. A workspace, app or
job is only its owner's; a cluster's web page shows no more than the work that it does, and can end it, so every contributor may open it.
Whether it still runs, and whether the session is logged in, is checked elsewhere.
"""

from collections.abc import Collection

from grid.models import Execution, Membership, User
from grid.models.environment import Kind

Pair = tuple[int, str]  # a user's id and an execution's


def may_open(user_id: int, execution: Execution) -> bool:
    """Return True for an active account of the project's owner or a contributor; unless it is a cluster, only for its own owner."""
    pair = (user_id, execution.pk)
    return pair in openable([pair])


def openable(pairs: Collection[Pair]) -> set[Pair]:
    """Return those pairs for which `may_open` is True, in three queries however many there are."""
    users, ids = {user for user, _ in pairs}, {id for _, id in pairs}
    active = set(User.objects.filter(pk__in=users, is_active=True).values_list("pk", flat=True))
    found = {
        id: (kind, owner, project)
        for id, kind, owner, project in Execution.objects.filter(pk__in=ids).values_list(
            "pk", "kind", "owner_id", "project_id"
        )
    }
    contributors = set(
        Membership.objects.filter(
            project_id__in={project for _, _, project in found.values()},
            user_id__in=active,
            role__in=Membership.CONTRIBUTING,
        ).values_list("project_id", "user_id")
    )

    def may(user: int, id: str) -> bool:
        if id not in found:
            return False
        kind, owner, project = found[id]
        return (project, user) in contributors and (user == owner or kind == Kind.CLUSTER)

    return {(user, id) for user, id in pairs if may(user, id)}
