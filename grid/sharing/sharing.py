"""Shares a running app with members of its project, whom its owner chooses by name. `opening` decides by it who may open the app.

Only an app: whoever opens a workspace has a shell as its owner, with the owner's HOME and secrets. Of a running workspace a port is shared,
and so the program that its owner started there: members reach it on an origin of its own, and never the IDE.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from grid.audit.entries import write_entry
from grid.core.errors import Problem, Rejected
from grid.core.reasons import Reader, Reason, Sentence, Value, Values
from grid.core.translation import gettext as _
from grid.core.wording import listed
from grid.database.seam import Database
from grid.diagnosis.beside import FRONT_PORTS
from grid.executions.launchsettings import launch_settings
from grid.executions.lifecycle import record_change
from grid.models import AppShare, Environment, Execution, Membership, PortShare, State, User
from grid.models.environment import Kind
from grid.sharing.opening import openable_ports

_OWN_PORT = _(
    "That is the workspace’s own port: behind it is a shell with your files and secrets. Start your app on another."
)
LOWEST, HIGHEST = 1024, 65535
MOST = 10  # of one workspace


def members_to_share_with(execution: Execution) -> list[User]:
    """Return the other members of its project, viewers too, by name."""
    members = Membership.objects.filter(project=execution.project_id).values("user")
    return list(User.objects.filter(pk__in=members, is_active=True).exclude(pk=execution.owner_id).order_by("username"))


def share(execution_id: str, members: Collection[User], *, by: str, now: datetime) -> None:
    """Share the app with exactly these members of its project; the history says who came and who went. Doing it twice changes nothing.
    Raise Rejected for what is no running app, and for people who are no members of its project (any more)."""
    while not _share_once(execution_id, {user.pk for user in members}, by, now):
        pass  # the controller has written the row meanwhile


def _share_once(execution_id: str, chosen: set[int], by: str, now: datetime) -> bool:
    with transaction.atomic():
        execution = Execution.objects.select_for_update(no_key=True).get(pk=execution_id)
        offered = {user.pk: user.get_username() for user in members_to_share_with(execution)}
        problem = _why_no_app(execution, chosen, offered)
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


def _why_no_app(execution: Execution, chosen: Collection[int], offered: Collection[int]) -> Problem | None:
    if execution.kind != Kind.APP:
        return Problem("", _("Only an app can be shared: a workspace is a shell with its owner’s files."), "kind")
    if execution.is_final:
        return Problem("", _("It has ended. Launch it again, and share that."), "ended")
    if not set(chosen) <= set(offered):
        return Problem("members", _("Choose members of its project; somebody you chose is not one."), "member")
    return None


def port_problem(port: int, own: int) -> str:
    """Return why a port of a workspace whose own program listens on `own` is not shared, as a sentence; "" when it can be; pure."""
    if not LOWEST <= port <= HIGHEST:
        return _("Choose a port from {lowest} to {highest}.", lowest=LOWEST, highest=HIGHEST)
    if port == own:
        return _OWN_PORT
    if port in FRONT_PORTS:
        return _("This port is the platform’s. Start your app on another.")
    return ""


def shared_ports(execution: Execution, now: datetime) -> Sequence[PortShare]:
    lasting = PortShare.objects.filter(Q(ends_at=None) | Q(ends_at__gt=now), execution=execution)
    return list(lasting.prefetch_related("members").order_by("port"))


class StoredPorts:
    """Implements `policykeeper.Ports` on the database."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._clock = clock

    async def offered(self) -> frozenset[int]:
        return await self._database(offered_ports, self._clock())

    async def running(self) -> frozenset[int]:
        return await self._database(running_ports)


def offered_ports(now: datetime) -> frozenset[int]:
    """Return the ports that new programs answer on, and those that are shared of running workspaces."""
    lasting = PortShare.objects.filter(Q(ends_at=None) | Q(ends_at__gt=now))
    shared = lasting.filter(execution__state=State.RUNNING, execution__stop_requested_at=None)
    ports = shared.order_by().values_list("port")
    if (
        not settings.FRONT_IMAGE or launch_settings().any_front() is None
    ):  # asked every few seconds, so in as few statements
        ports = ports.union(Environment.objects.filter(port__gt=0).order_by().values_list("port"))
    return frozenset({*FRONT_PORTS, *(port for (port,) in ports)})


def running_ports() -> frozenset[int]:
    """Return the ports on which what runs is answered that was launched without a front; its environment may have another by now."""
    ports = Execution.objects.unsettled().order_by().values_list("spec__port", "spec__front__port").distinct()
    return frozenset(int(port) for port, front in ports if port and not front)


def ports_shared_with(user_id: int) -> Sequence[PortShare]:
    running = PortShare.objects.filter(execution__state=State.RUNNING, execution__stop_requested_at=None)
    shares = list(running.filter(members=user_id).select_related("execution__owner").order_by("name", "pk"))
    allowed = openable_ports({(user_id, share.pk) for share in shares}) if shares else set()
    return [share for share in shares if (user_id, share.pk) in allowed]


def share_port(
    execution_id: str, *, port: int, name: str, members: Collection[User], hours: int, by: User, now: datetime
) -> PortShare:
    """Share the port with these members for so many hours, or until the workspace stops (0), with an audit entry. Raise Rejected."""
    while True:
        with transaction.atomic():
            execution = Execution.objects.select_for_update(no_key=True).get(pk=execution_id)
            PortShare.objects.filter(execution=execution, ends_at__lte=now).delete()
            problem = _why_not(execution, port, name, members, by)
            if problem is not None:
                raise Rejected([problem])
            ends_at = now + timedelta(hours=hours) if hours else None
            share = PortShare(execution=execution, port=port, name=name, created_at=now, ends_at=ends_at)
            if not _is_recorded(execution, share, members, by, now):
                continue  # the controller has written the row meanwhile
            share.save()
            share.members.set(members)
            write_entry(by, execution.project, {"shared app": ["", _share_words(share, members)]})
        return share


def unshare_port(share: PortShare, *, by: User, now: datetime) -> None:
    """Take the port back: every grant for it goes with the row."""
    while True:
        with transaction.atomic():
            execution = Execution.objects.select_for_update(no_key=True).get(pk=share.execution_id)
            stored = PortShare.objects.filter(pk=share.pk).first()
            if stored is None:
                return
            if not _is_recorded(execution, share, (), by, now):
                continue
            write_entry(by, execution.project, {"shared app": [_share_words(stored, stored.members.all()), ""]})
            stored.delete()
        return


def _is_recorded(execution: Execution, share: PortShare, members: Collection[User], by: User, now: datetime) -> bool:
    """Write into the history with whom it is shared now; return False when somebody else has written the execution's row meanwhile."""
    who: dict[str, Value] = {"by": by.get_username(), "port": share.port, "name": share.name, "names": _names(members)}
    return record_change(execution, {}, Reason("Shared", who), by=by.get_username(), now=now)


def _share_words(share: PortShare, members: Iterable[User]) -> str:
    names = _names(members) or _("nobody")  # their accounts may be deleted
    return _("port {port} ({name}) with {names}", port=share.port, name=share.name, names=names)


def _names(members: Iterable[User]) -> str:
    names = sorted(user.get_username() for user in members)
    return listed(names) if names else ""


def _why_not(execution: Execution, port: int, name: str, members: Collection[User], by: User) -> Problem | None:
    role = Membership.objects.filter(project=execution.project_id, user=by).values_list("role", flat=True).first()
    if execution.kind != Kind.WORKSPACE or execution.owner_id != by.pk or role not in Membership.CONTRIBUTING:
        return Problem("", _("Only its owner, as a contributor of its project, shares an app of a workspace."), "owner")
    if execution.state != State.RUNNING or execution.stop_requested_at is not None:
        return Problem("", _("The workspace does not run. Resume it, start your app in it, and share that."), "ended")
    if problem := port_problem(port, int(execution.spec.get("port") or 0)):
        return Problem("port", problem, "port")
    if not name.strip():
        return Problem("name", _("Give it a name, by which the members find it."), "name")
    shares = PortShare.objects.filter(execution=execution)
    if shares.filter(port=port).exists():
        return Problem("port", _("This port is shared already. Stop sharing it first."), "port")
    if shares.count() >= MOST:
        many = _("At most {most} ports of a workspace are shared at a time. Stop sharing one first.", most=MOST)
        return Problem("", many, "most")
    offered = {user.pk for user in members_to_share_with(execution)}
    if not members or not {user.pk for user in members} <= offered:
        return Problem("members", _("Choose at least one member of its project, and nobody else."), "member")
    return None


def _shared(values: Values, reader: Reader) -> str:
    if "port" in values:
        return _port_shared(values)
    sentence = _("{by} shared it with {added} and stopped sharing it with {gone}.")
    if not values["gone"]:
        sentence = _("{by} shared it with {added}.")
    elif not values["added"]:
        sentence = _("{by} stopped sharing it with {gone}.")
    names = {which: listed(values[which]) for which in ("added", "gone") if values[which]}
    return sentence.format(by=values["by"], **names)


def _port_shared(values: Values) -> str:
    by, port, name = values["by"], values["port"], values["name"]
    if not values["names"]:
        return _("{by} stopped sharing its port {port} ({name}).", by=by, port=port, name=name)
    return _("{by} shared its port {port} ({name}) with {names}.", by=by, port=port, name=name, names=values["names"])


SENTENCES: dict[str, Sentence] = {"Shared": _shared}
