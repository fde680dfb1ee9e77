"""The database's active and lately ended executions, in memory, so that a page with a thousand viewers costs no queries.

Cheap queries each second (while somebody looks; seldom otherwise) ask whether anything changed; only then are the rows read
again. `hint()` makes that happen at once and may be called from any thread; a lost hint costs at most the second.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from asgiref.sync import sync_to_async
from django.db import close_old_connections
from django.db.models import Count, Max, Q, Sum

from grid.models import Execution, Membership
from grid.models.environment import Kind
from grid.models.execution import ExecutionQuerySet
from grid.watch.hub import Hub

logger = logging.getLogger(__name__)

TOPIC = "executions"
KEPT_AFTER_END = timedelta(hours=1)
PERIOD = 1.0  # while somebody looks
IDLE_PERIOD = 10.0
WHOLE_PERIOD = 30.0  # names can change without the execution's row being written


Ask = Callable[[Callable[[datetime], Any], datetime], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class ExecutionRow:
    """One execution as lists show it, with what decides who may see it."""

    id: str
    kind: str
    title: str
    owner_username: str
    owner_id: int
    project_id: str
    project_name: str
    project_roles: Mapping[int, str]  # by the member's id; frozen by nobody changing it
    tier_id: str
    tier_name: str
    environment_name: str
    state: str
    state_since: datetime
    reason: str
    message: str
    requested_at: datetime
    started_at: datetime | None
    object_name: str
    cost_per_hour: Decimal
    ended_at: datetime | None = None
    slots: int = 1
    head_tier_name: str = ""  # of a cluster; `tier` is its workers'
    framework: str = ""  # of a cluster
    attached_to: str = ""  # of a cluster: the workspace or job that it belongs to

    @property
    def project_member_ids(self) -> Collection[int]:
        return self.project_roles.keys()


async def _in_thread(read: Callable[[datetime], Any], now: datetime) -> Any:
    """Run a read of the ORM in Django's thread, giving back a connection that the database has closed meanwhile."""

    def reading() -> Any:
        close_old_connections()
        return read(now)

    run: Callable[[], Awaitable[Any]] = sync_to_async(reading)
    return await run()


class ActiveExecutions:
    """The snapshot. `run()` keeps it fresh; `refresh()` makes it fresh now."""

    def __init__(
        self,
        hub: Hub,
        *,
        clock: Callable[[], datetime],
        period: float = PERIOD,
        idle_period: float = IDLE_PERIOD,
        ask: Ask = _in_thread,
    ) -> None:
        self.version = 0
        self._hub = hub
        self._clock = clock
        self._ask = ask
        self._period = period
        self._idle_period = idle_period
        self._rows: dict[str, ExecutionRow] = {}
        self._mark: object = None
        self._read_whole_at = float("-inf")
        self._looked_at = float("-inf")
        self._looks = self._installed = 0  # numbered by when they began
        self._hinted = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def get(self, id: str) -> ExecutionRow | None:
        return self._rows.get(id)

    def values(self) -> Collection[ExecutionRow]:
        """Newest first."""
        return self._rows.values()

    def hint(self) -> None:
        """An execution was written: look at once. Safe from any thread, and when nothing runs."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._hinted.set)

    async def refresh(self) -> bool:
        """Look at the database; True, and the hub's topic published, when a row differs.

        Two may look at once, and the one that began later may be done first: then what the other has read is of the past.
        """
        self._looks += 1
        look, now, loop_time = self._looks, self._clock(), asyncio.get_running_loop().time()
        self._looked_at = loop_time
        mark = await self._ask(read_mark, now)
        if mark == self._mark and loop_time - self._read_whole_at < WHOLE_PERIOD:
            return False
        rows = await self._ask(read_rows, now)
        if look < self._installed:
            return False
        self._installed = look
        self._mark, self._read_whole_at = mark, loop_time
        return self.replace(rows)

    async def catch_up(self) -> None:
        """Look now, for somebody who asks for what is not here: another process may have made it a moment ago. Not more often than
        each period, whoever asks."""
        if asyncio.get_running_loop().time() - self._looked_at >= self._period:
            await self.refresh()

    def replace(self, rows: Iterable[ExecutionRow]) -> bool:
        """Become exactly these rows; True, and the hub's topic published, when one differs."""
        new = {row.id: row for row in rows}
        if list(new.items()) == list(self._rows.items()):
            return False
        self._rows = new
        self.version += 1
        self._hub.publish(TOPIC)
        return True

    async def run(self) -> None:
        """For ever: refresh when hinted, each period while somebody looks, and seldom otherwise."""
        self._loop = asyncio.get_running_loop()
        looked_at = float("-inf")
        while True:
            due = self._loop.time() - looked_at >= self._idle_period
            if due or self._hinted.is_set() or self._hub.is_watched(TOPIC):
                self._hinted.clear()
                looked_at = self._loop.time()
                try:
                    await self.refresh()
                except Exception:
                    logger.exception("executions not read; trying again")
            try:
                async with asyncio.timeout(self._period):
                    await self._hinted.wait()
            except TimeoutError:
                pass  # nobody hinted: look whether anybody looks


def _shown(now: datetime) -> tuple[ExecutionQuerySet, ExecutionQuerySet]:
    """The unsettled, and the settled that ended lately: apart, because each has its index and either-or has none."""
    lately = Execution.objects.filter(settled_at__isnull=False, ended_at__gt=now - KEPT_AFTER_END)
    return Execution.objects.unsettled(), lately


def read_mark(now: datetime) -> object:
    """Differs whenever an execution that is shown was written, made or deleted, and when somebody has joined or left a project,
    which decides what he sees; three cheap queries."""
    found = [rows.order_by().aggregate(Count("pk"), Max("updated_at"), Sum("revision")) for rows in _shown(now)]
    # Joining, leaving and another role each move one of these; two people who change places in one statement would not.
    of_role = {role: Q(role=role) for role in Membership.Role.values}
    sums = {role: Sum("pk", filter=condition) for role, condition in of_role.items()}
    members = Membership.objects.aggregate(Count("pk"), Max("pk"), **sums)
    return *(tuple(rows.values()) for rows in found), *members.values()


def read_rows(now: datetime) -> list[ExecutionRow]:
    """All executions that are shown, newest first, in three queries."""
    joined = ("owner", "project", "environment", "tier")
    found = [row for rows in _shown(now) for row in rows.select_related(*joined)]
    found.sort(key=lambda row: (row.requested_at, row.pk), reverse=True)
    roles = _roles({row.project_id for row in found})
    return [_row(execution, roles[execution.project_id]) for execution in found]


def _roles(project_ids: Collection[str]) -> Mapping[str, Mapping[int, str]]:
    found: dict[str, dict[int, str]] = {id: {} for id in project_ids}
    rows = Membership.objects.filter(project_id__in=project_ids).values_list("project_id", "user_id", "role")
    for project, user, role in rows:
        found[project][user] = role
    return found


def _row(execution: Execution, roles: Mapping[int, str]) -> ExecutionRow:
    return ExecutionRow(
        id=execution.pk,
        kind=execution.kind,
        title=execution.title,
        owner_username=execution.owner.username,
        owner_id=execution.owner_id,
        project_id=execution.project_id,
        project_name=execution.project.name,
        project_roles=roles,
        tier_id=execution.tier_id,
        tier_name=execution.tier.name,
        environment_name=execution.environment.name,
        state=execution.state,
        state_since=execution.state_since,
        reason=execution.reason,
        message=execution.message,
        requested_at=execution.requested_at,
        started_at=execution.started_at,
        ended_at=execution.ended_at,
        object_name=execution.object_name,
        cost_per_hour=_cost(execution),
        slots=execution.slots,
        head_tier_name=str(_head_tier(execution).get("name", "")),
        framework=str(_cluster(execution).get("framework", "")),
        attached_to=execution.attached_to_id or "",
    )


def _cost(execution: Execution) -> Decimal:
    """An hour as it was at launch, the tier's present cost where the launch did not record one; of a cluster, its head and the
    fewest workers that it keeps, because how many there are now is for Kubernetes to say."""
    recorded: Any = (execution.spec or {}).get("tier", {}).get("cost_per_hour")
    each = _amount(recorded, execution.tier.cost_per_hour)
    if execution.kind != Kind.CLUSTER:
        return each * execution.slots
    head = _amount(_head_tier(execution).get("cost_per_hour"), Decimal(0))
    return head + each * int(_cluster(execution).get("workers_minimum") or 1)


def _amount(recorded: Any, otherwise: Decimal) -> Decimal:
    try:
        return otherwise if recorded is None else Decimal(str(recorded))
    except InvalidOperation:
        return otherwise


def _cluster(execution: Execution) -> dict[str, Any]:
    return (execution.spec or {}).get("cluster") or {}


def _head_tier(execution: Execution) -> dict[str, Any]:
    return _cluster(execution).get("head_tier") or {}
