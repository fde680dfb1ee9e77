"""Reads the snapshot for `grid.queue.quota` from the database."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, F, Q, Sum

from grid.configuration import MAXIMUM_EXECUTIONS_PER_USER, value_of
from grid.core.reasons import Reason
from grid.models import DataPlane, Execution, HardwareTier, LastAdmission, QueueOrder, User
from grid.models.environment import Kind
from grid.models.execution import ExecutionQuerySet
from grid.queue.gate import Candidate, GateFacts, held, why_not_start
from grid.queue.gatefacts import facts_of_queue
from grid.queue.queue import Part, QueuedUnit
from grid.queue.quota import Holding, QuotaSnapshot

Unit = tuple[Execution, ...]

# The columns that a decision reads and writes; a queue may be long, and rows are wide.
_COLUMNS = (
    *("kind", "owner_id", "tier_id", "head_tier_id", "attached_to_id", "slots", "requested_at", "project_id"),
    *("revision", "state", "state_since", "reason", "reason_values", "message"),
)
_ON_ANOTHER_HEAD_TIER = Q(head_tier__isnull=False) & ~Q(head_tier=F("tier"))


@dataclass(frozen=True, slots=True)
class Queue:
    """The snapshot, and the queued units by the id of their first row: one row, or a workspace or job and its cluster. `orders` is what
    operators decided, also about executions that no longer wait, and `facts` what closes the gate to units."""

    snapshot: QuotaSnapshot
    units: dict[str, Unit]
    orders: dict[str, QueueOrder]
    facts: GateFacts


def take(
    data_plane: str, extra: Sequence[Execution] = (), *, now: datetime, users: Collection[int] | None = None
) -> Queue:
    """Return the queue of the data plane now, or what these users have in it, with `extra` as if it were queued. Call it in a transaction.

    The waiting rows are locked before the holders are read: on a database with row locks a second admission at the same time waits here,
    and then sees as holders what the first has admitted. Their owners are locked as well, for clusters that take more slots while they run.
    (SQLite has one writer at a time anyway.)
    """
    executions = Execution.objects.in_data_plane(data_plane)
    locked = executions.select_for_update(no_key=True).queued().order_by("requested_at", "pk").only(*_COLUMNS)
    if users is not None:
        locked = locked.filter(owner__in=users)
    units = {unit[0].pk: unit for unit in _units([*locked, *extra])}
    owners = {unit[0].owner_id for unit in units.values()}
    # Locked in the same order everywhere, so that two admissions cannot deadlock.
    list(User.objects.select_for_update(no_key=True).filter(pk__in=owners).order_by("pk").values_list("pk"))
    return _queue(data_plane, units, now)


def lock_unchanged(data_plane: str, queue: Queue, admitted: Collection[str]) -> bool:
    """Lock the units that are to be admitted after a `look`; return whether slots and limits are still as that saw them.

    Call it in the transaction that admits them. The data plane's row keeps two admissions apart: the second sees as holders what the first
    has admitted. A unit that changed has another revision, and stays.
    """
    list(DataPlane.objects.select_for_update(no_key=True).filter(pk=data_plane).values_list("pk"))
    executions, units = Execution.objects.in_data_plane(data_plane), [queue.units[id] for id in admitted]
    rows = executions.filter(pk__in=[row.pk for unit in units for row in unit]).order_by("requested_at", "pk")
    list(rows.select_for_update(no_key=True).values_list("pk"))
    owners = User.objects.filter(pk__in={unit[0].owner_id for unit in units}).order_by("pk")
    list(owners.select_for_update(no_key=True).values_list("pk"))
    seen, maxima = queue.snapshot, tier_maxima()
    return (
        set(_holding(executions)) == set(seen.holding)
        and value_of(MAXIMUM_EXECUTIONS_PER_USER) == seen.slots_per_user
        and {tier: most for tier, (most, _) in maxima.items()} == dict(seen.tier_maximum)
    )


def _queue(data_plane: str, units: dict[str, Unit], now: datetime) -> Queue:
    owners = {unit[0].owner_id for unit in units.values()}
    # All rows: they are as few as what operators moved, and a join with executions would make SQLite scan the history.
    orders = {one.pk: one for one in QueueOrder.objects.all() if one.pk in units}
    facts = facts_of_queue(data_plane, {unit[0].project_id for unit in units.values()}, now)
    maxima = tier_maxima()
    snapshot = QuotaSnapshot(
        waiting=tuple(queued_unit(unit, facts, orders.get(id)) for id, unit in units.items()),
        holding=tuple(_holding(Execution.objects.in_data_plane(data_plane))),
        slots_per_user=value_of(MAXIMUM_EXECUTIONS_PER_USER),
        tier_maximum={tier: most for tier, (most, _) in maxima.items()},
        tier_names={tier: name for tier, (_, name) in maxima.items()},
        last_served=_last_served(owners),
    )
    return Queue(snapshot, units, orders, facts)


def look(
    data_plane: str, extra: Sequence[Execution] = (), *, now: datetime, users: Collection[int] | None = None
) -> Queue:
    """Return the queue as `take` does, without locking anything: for pages and estimates, which decide nothing."""
    executions = Execution.objects.in_data_plane(data_plane)
    rows = executions.queued().order_by("requested_at", "pk").only(*_COLUMNS)
    if users is not None:
        rows = rows.filter(owner__in=users)
    return _queue(data_plane, {unit[0].pk: unit for unit in _units([*rows, *extra])}, now)


def _units(rows: Sequence[Execution]) -> Iterator[Unit]:
    """Yield the units. A cluster whose workspace or job no longer waits belongs to no unit: it never starts alone."""
    clusters = {row.attached_to_id: row for row in rows if row.attached_to_id}
    for row in rows:
        if not row.attached_to_id:
            yield (row, clusters[row.pk]) if row.pk in clusters else (row,)


def queued_unit(unit: Unit, facts: GateFacts, order: QueueOrder | None = None) -> QueuedUnit:
    """Return the unit as `quota` sees it, with what closes the gate to it; `order` is what operators decided about it."""
    first, parts = unit[0], tuple(_part(row) for row in unit)
    hold = hold_of(order) if order is not None else None
    rank = order.rank if order is not None else None
    candidate = Candidate(first.owner_id, first.project_id, hold, is_in_front=rank is not None)
    back_at = order.back_at if order is not None else None
    closed = why_not_start(facts, candidate)
    return QueuedUnit(first.owner_id, first.requested_at, parts, rank, back_at, closed)


def hold_of(order: QueueOrder) -> Reason | None:
    """Return who holds it and why; None when nobody does."""
    return held(order.held_by, order.held_reason) if order.held_at is not None else None


def _part(row: Execution) -> Part:
    return Part(row.pk, row.kind, tiers_of(row), row.slots)


def tiers_of(row: Execution) -> tuple[str, ...]:
    """Return the ids of the tiers that it takes a place on. The head's comes first, as the head starts first."""
    return tier_pair(row.head_tier_id if row.kind == Kind.CLUSTER else None, row.tier_id)


def tier_pair(head_tier: str | None, tier: str) -> tuple[str, ...]:
    return (head_tier, tier) if head_tier and head_tier != tier else (tier,)


def tier_maxima() -> dict[str, tuple[int, str]]:
    """Return the maximum and the name of each tier that has a maximum."""
    limited = HardwareTier.objects.filter(maximum_simultaneous__isnull=False)
    rows = limited.values_list("pk", "maximum_simultaneous", "name")
    return {tier: (most, name) for tier, most, name in rows if most is not None}


def _holding(executions: ExecutionQuerySet) -> Iterator[Holding]:
    holders = executions.holding_slots().order_by()
    for user, tier, count, slots in holders.values_list("owner_id", "tier_id").annotate(Count("pk"), Sum("slots")):
        yield Holding(user, tier, count, slots)
    heads = holders.filter(_ON_ANOTHER_HEAD_TIER)
    for user, tier, count in heads.values_list("owner_id", "head_tier_id").annotate(Count("pk")):
        yield Holding(user, tier or "", count, 0)


def _last_served(users: set[int]) -> dict[tuple[int, str], datetime]:
    rows = LastAdmission.objects.filter(user_id__in=users).values_list("user_id", "tier_id", "at")
    return {(user, tier): at for user, tier, at in rows}
