"""Reads from the database what decides about the queue: the facts of the gate, and the snapshot for `grid.queue.quota`."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Sum

from grid.announcements.maintenance import current_maintenance, reason_of
from grid.configuration import MAXIMUM_EXECUTIONS_PER_USER, value_of
from grid.core.errors import Problem
from grid.core.reasons import Reason
from grid.database.prepared import Prepared
from grid.models import DataPlane, Execution, HardwareTier, LastAdmission, QueueOrder, User
from grid.models.environment import Kind
from grid.models.execution import ExecutionQuerySet
from grid.projects.departures import departed_owners
from grid.queue.gate import GateFacts, held, refusal, why_not_launch, why_not_start
from grid.queue.quota import Holding, Part, QueuedUnit, QuotaSnapshot, tier_pair
from grid.queue.takeover import current_takeover, reason_of as takeover_reason
from grid.usage.budgets.closing import closed_projects

Unit = tuple[Execution, ...]
Holdings = Mapping[str, tuple[Holding, ...]]  # what holds slots, by data plane

_NO_ORDER = QueueOrder()  # which decides nothing
_Group = tuple[int, str, str | None, int, int]  # an owner, both tiers, how many executions, and their slots


def facts_of_queue(data_plane: str, projects: Collection[str], now: datetime) -> GateFacts:
    """Return the facts about all that waits in the data plane, which is of these projects."""
    maintenance, takeover = current_maintenance(now), current_takeover(now)
    by_maintenance = reason_of(maintenance) if maintenance is not None else None
    by_takeover = takeover_reason(takeover) if takeover is not None else None
    return GateFacts(by_maintenance, by_takeover, closed_projects(projects, now), departed_owners(data_plane))


def closed_to_launch(project_id: str, now: datetime) -> Reason | None:
    """Return why nothing is launched in the project now, but for a full queue. Whether somebody may launch in it at all is asked before: by
    the validation of a request, and of `departures.why_departed` for a resume or a schedule."""
    maintenance = current_maintenance(now)
    by_maintenance = reason_of(maintenance) if maintenance is not None else None
    return why_not_launch(GateFacts(by_maintenance, budgets=closed_projects([project_id], now)), None, project_id)


def why_closed(project_id: str, now: datetime) -> list[Problem]:
    """Return `closed_to_launch` as problems of a request; [] when nothing closes the gate."""
    reason = closed_to_launch(project_id, now)
    return [refusal(reason)] if reason is not None else []


@dataclass(frozen=True, slots=True)
class Queue:
    """The snapshot, and the queued units by the id of their first row: one row, or a workspace or job and its cluster. `orders` is what
    operators decided, also about executions that no longer wait, and `facts` what closes the gate to units."""

    snapshot: QuotaSnapshot
    units: dict[str, Unit]
    orders: dict[str, QueueOrder]
    facts: GateFacts


def lock_unchanged(data_plane: str, queue: Queue, admitted: Collection[str]) -> bool:
    """Lock the units that are to be admitted after a `peek`, in the transaction that admits them; return whether slots and limits are as
    that saw them. The data plane's row keeps two admissions apart: the second sees as holders what the first has admitted."""
    list(DataPlane.objects.select_for_update(no_key=True).filter(pk=data_plane).values_list("pk"))
    executions, units = Execution.objects.in_data_plane(data_plane), [queue.units[id] for id in admitted]
    rows = executions.filter(pk__in=[row.pk for unit in units for row in unit]).order_by("requested_at", "pk")
    list(rows.select_for_update(no_key=True).values_list("pk"))
    _lock_owners({unit[0].owner_id for unit in units})
    seen, maxima = queue.snapshot, tier_maxima()
    return (
        set(_holding(data_plane)) == set(seen.holding)
        and value_of(MAXIMUM_EXECUTIONS_PER_USER) == seen.slots_per_user
        and {tier: most for tier, (most, _) in maxima.items()} == dict(seen.tier_maximum)
    )


def peek(
    data_plane: str,
    extra: Sequence[Execution] = (),
    *,
    now: datetime,
    users: Collection[int] | None = None,
    holding: tuple[Holding, ...] | None = None,
    is_locked: bool = False,
) -> Queue:
    """Return the queue of the data plane now, or what these users have in it, with `extra` as if it were queued; what is `holding` slots is
    read if it is not given. Without locks it is for pages and estimates, which decide nothing."""
    executions = Execution.objects.in_data_plane(data_plane)
    # The columns that a decision reads and writes; a queue may be long, and rows are wide.
    rows = executions.queued().order_by().only(
        "kind", "owner_id", "tier_id", "head_tier_id", "attached_to_id", "slots", "requested_at", "project_id",
        "revision", "state", "state_since", "reason", "reason_values", "message",
    )  # fmt: skip
    if users is not None:
        rows = rows.filter(owner__in=users)
    if is_locked:
        rows = rows.select_for_update(no_key=True).order_by("requested_at", "pk")
    # Sorted here: asked for them in order, SQLite looks at all that runs rather than sort the few that wait.
    in_order = sorted(rows, key=lambda row: (row.requested_at, row.pk))
    units = {unit[0].pk: unit for unit in _units([*in_order, *extra])}
    owners = {unit[0].owner_id for unit in units.values()}
    if is_locked:
        _lock_owners(owners)
    # All rows: they are as few as what operators moved, and a join with executions would make SQLite scan the history.
    orders = {order.pk: order for order in QueueOrder.objects.all() if order.pk in units}
    facts = facts_of_queue(data_plane, {unit[0].project_id for unit in units.values()}, now)
    maxima = tier_maxima()
    served = LastAdmission.objects.filter(user_id__in=owners).values_list("user_id", "tier_id", "at")
    snapshot = QuotaSnapshot(
        waiting=tuple(queued_unit(unit, facts, orders.get(id)) for id, unit in units.items()),
        holding=_holding(data_plane) if holding is None else holding,
        slots_per_user=value_of(MAXIMUM_EXECUTIONS_PER_USER),
        tier_maximum={tier: most for tier, (most, _) in maxima.items()},
        tier_names={tier: name for tier, (_, name) in maxima.items()},
        last_served={(user, tier): at for user, tier, at in served},
    )
    return Queue(snapshot, units, orders, facts)


def take(
    data_plane: str, extra: Sequence[Execution] = (), *, now: datetime, users: Collection[int] | None = None
) -> Queue:
    """Return what `peek` does, locked. Call it in a transaction.

    The waiting rows are locked before the holders are read: on a database with row locks a second admission at the same time waits here,
    and then sees as holders what the first has admitted. Their owners are locked as well, for clusters that take more slots while they run.
    (SQLite has one writer at a time anyway.)"""
    return peek(data_plane, extra, now=now, users=users, is_locked=True)


def _lock_owners(ids: Collection[int]) -> None:
    """Lock the users, in the same order everywhere, so that two admissions cannot deadlock."""
    list(User.objects.select_for_update(no_key=True).filter(pk__in=ids).order_by("pk").values_list("pk"))


def _units(rows: Sequence[Execution]) -> Iterator[Unit]:
    """Yield the units. A cluster whose workspace or job no longer waits belongs to no unit: it never starts alone."""
    clusters = {row.attached_to_id: row for row in rows if row.attached_to_id}
    for row in rows:
        if not row.attached_to_id:
            yield (row, clusters[row.pk]) if row.pk in clusters else (row,)


def queued_unit(unit: Unit, facts: GateFacts, order: QueueOrder | None = None) -> QueuedUnit:
    """Return the unit as `quota` sees it, with what closes the gate to it; `order` is what operators decided about it."""
    first, parts = unit[0], tuple(Part(row.pk, row.kind, tiers_of(row), row.slots) for row in unit)
    order = order or _NO_ORDER
    hold = held(order.held_by, order.held_reason) if order.held_at is not None else None
    closed = why_not_start(facts, first.owner_id, first.project_id, hold, is_in_front=order.rank is not None)
    return QueuedUnit(first.owner_id, first.requested_at, parts, order.rank, order.back_at, closed)


def tiers_of(row: Execution) -> tuple[str, ...]:
    """Return the ids of the tiers that it takes a place on. The head's comes first, as the head starts first."""
    return tier_pair(row.head_tier_id if row.kind == Kind.CLUSTER else None, row.tier_id)


def tier_maxima() -> dict[str, tuple[int, str]]:
    """Return the maximum and the name of each tier that has a maximum."""
    return {tier: (most, name) for tier, most, name in _limited_tiers() if most is not None}


def held_slots(owner: int | None = None) -> Holdings:
    """Return what holds slots, of everybody or of one person: for a page that says several things of it."""
    groups: dict[str, list[_Group]] = {}
    for data_plane, *group in _all_groups() if owner is None else _own_groups(owner):
        groups.setdefault(data_plane, []).append(tuple(group))
    return {data_plane: _holdings(of_plane) for data_plane, of_plane in groups.items()}


def _holding(data_plane: str) -> tuple[Holding, ...]:
    return _holdings(_groups(data_plane))


def _holdings(groups: Iterable[_Group]) -> tuple[Holding, ...]:
    executions, slots = Counter[tuple[int, str]](), Counter[tuple[int, str]]()
    for user, tier, head_tier, count, total in groups:
        executions.update(dict.fromkeys({(user, tier), (user, head_tier or tier)}, count))
        slots[user, tier] += total
    return tuple([Holding(user, tier, count, slots[user, tier]) for (user, tier), count in executions.items()])


def _grouped(held: ExecutionQuerySet, *columns: str) -> Any:
    alike = held.order_by().values_list(*columns, "owner_id", "tier_id", "head_tier_id")
    return alike.annotate(Count("pk"), Sum("slots"))


_groups = Prepared(1, lambda plane: _grouped(Execution.objects.in_data_plane(plane).holding_slots()))
_all_groups = Prepared(0, lambda: _grouped(Execution.objects.holding_slots(), "data_plane_id"))
_own_groups = Prepared(
    1, lambda owner: _grouped(Execution.objects.holding_slots().filter(owner=owner), "data_plane_id")
)
_limited_tiers = Prepared(
    0, lambda: HardwareTier.objects.exclude(maximum_simultaneous=None).values_list("pk", "maximum_simultaneous", "name")
)
