"""Shares a running app with members of its project, whom its owner chooses by name. `opening` decides by it who may open the app.

Only an app: whoever opens a workspace has a shell as its owner, with the owner's HOME and secrets.
"""

from collections.abc import Collection
from datetime import datetime

from django.db import transaction

from grid.core.errors import Problem, Rejected
from grid.core.reasons import Reason
from grid.core.translation import gettext as _
from grid.executions.lifecycle import record_change
from grid.models import AppShare, Execution, Membership, User
from grid.models.environment import Kind


def members_to_share_with(execution: Execution) -> list[User]:
    """Return the other members of its project, viewers too, by name."""
    members = Membership.objects.filter(project=execution.project_id).values("user")
    return list(User.objects.filter(pk__in=members, is_active=True).exclude(pk=execution.owner_id).order_by("username"))


def share(execution_id: str, members: Collection[User], *, by: str, now: datetime) -> None:
    """Share the app with exactly these members of its project; the history says who came and who went. Doing it twice changes nothing.
    Raise Rejected for what is no running app, and for people who are no members of its project (any more)."""
    while not _shared(execution_id, {user.pk for user in members}, by, now):
        pass  # the controller has written the row meanwhile


def _shared(execution_id: str, chosen: set[int], by: str, now: datetime) -> bool:
    with transaction.atomic():
        execution = Execution.objects.select_for_update(no_key=True).get(pk=execution_id)
        offered = {user.pk: user.get_username() for user in members_to_share_with(execution)}
        problem = _why_not(execution, chosen, offered)
        if problem is not None:
            raise Rejected([problem])
        shares = AppShare.objects.filter(execution=execution)
        before = dict(shares.values_list("user_id", "user__username"))
        gone, added = sorted(before.keys() - chosen), sorted(chosen - before.keys())
        if not gone and not added:
            return True
        names = {"added": sorted(offered[pk] for pk in added), "gone": sorted(before[pk] for pk in gone)}
        if not record_change(execution, {}, Reason("Shared", {"by": by, **names}), by=by, now=now):
            return False
        shares.filter(user__in=gone).delete()
        AppShare.objects.bulk_create(AppShare(execution=execution, user_id=pk, created_at=now) for pk in added)
    return True


def _why_not(execution: Execution, chosen: Collection[int], offered: Collection[int]) -> Problem | None:
    if execution.kind != Kind.APP:
        return Problem("", _("Only an app can be shared: a workspace is a shell with its owner’s files."), "kind")
    if execution.is_final:
        return Problem("", _("It has ended. Launch it again, and share that."), "ended")
    if not set(chosen) <= set(offered):
        return Problem("members", _("Choose members of its project; somebody you chose is not one."), "member")
    return None
