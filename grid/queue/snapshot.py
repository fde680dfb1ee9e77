"""Reads the snapshot for `grid.queue.quota` from the database."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import Count, F, Max, Q, Sum

from grid.announcements.gate import STANDING_ASIDE
from grid.announcements.rules import MAINTENANCE
from grid.configuration import MAXIMUM_EXECUTIONS_PER_USER, value_of
from grid.core.translation import gettext as _
from grid.core.translation import ngettext
from grid.models import DataPlane, Execution, HardwareTier, LastAdmission, QueueOrder, State, User
from grid.models.environment import Kind
from grid.models.execution import HOLDS_SLOTS, ExecutionQuerySet
from grid.queue.queue import NEVER, Part, QueuedUnit
from grid.queue.queuelimit import Batch, QueueLimits, others_left
from grid.queue.quota import Holding, QuotaSnapshot
from grid.queue.takeover import TAKEN_OVER
from grid.usage.budgets.closing import CLOSED

Unit = tuple[Execution, ...]

# The columns that a decision reads and writes; a queue may be long, and rows are wide.
_COLUMNS = (
    *("kind", "owner_id", "tier_id", "head_tier_id", "attached_to_id", "slots", "requested_at", "project_id"),
    *("revision", "state", "state_since", "reason", "message"),
)
_WAITS = Q(state=State.QUEUED)
_ON_ANOTHER_HEAD_TIER = Q(head_tier__isnull=False) & ~Q(head_tier=F("tier"))


@dataclass(frozen=True, slots=True)
class Queue:
    """The snapshot, and the queued units by the id of their first row: one row, or a workspace or job and its cluster. `orders` is what
    operators decided, also about executions that no longer wait."""

    snapshot: QuotaSnapshot
    units: dict[str, Unit]
    orders: dict[str, QueueOrder]


def take(data_plane: str, extra: Sequence[Execution] = (), *, users: Collection[int] | None = None) -> Queue:
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
    return _queue(data_plane, units)


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
    seen, maxima = queue.snapshot, _maxima()
    return (
        set(_holding(executions)) == set(seen.holding)
        and value_of(MAXIMUM_EXECUTIONS_PER_USER) == seen.slots_per_user
        and {tier: most for tier, (most, _) in maxima.items()} == dict(seen.tier_maximum)
    )


def _queue(data_plane: str, units: dict[str, Unit]) -> Queue:
    owners = {unit[0].owner_id for unit in units.values()}
    # All rows: they are as few as what operators moved, and a join with executions would make SQLite scan the history.
    orders = {one.pk: one for one in QueueOrder.objects.all() if one.pk in units}
    maxima = _maxima()
    snapshot = QuotaSnapshot(
        waiting=tuple(_waiting(unit, orders.get(id)) for id, unit in units.items()),
        holding=tuple(_holding(Execution.objects.in_data_plane(data_plane))),
        slots_per_user=value_of(MAXIMUM_EXECUTIONS_PER_USER),
        tier_maximum={tier: most for tier, (most, _) in maxima.items()},
        tier_names={tier: name for tier, (_, name) in maxima.items()},
        last_served=_last_served(owners),
    )
    return Queue(snapshot, units, orders)


def look(data_plane: str, extra: Sequence[Execution] = (), *, users: Collection[int] | None = None) -> Queue:
    """Return the queue as `take` does, without locking anything: for pages and estimates, which decide nothing."""
    executions = Execution.objects.in_data_plane(data_plane)
    rows = executions.queued().order_by("requested_at", "pk").only(*_COLUMNS)
    if users is not None:
        rows = rows.filter(owner__in=users)
    return _queue(data_plane, {unit[0].pk: unit for unit in _units([*rows, *extra])})


def why_queue_is_full(launch: Sequence[Execution], limits: QueueLimits, *, read: Callable[..., Queue] = take) -> str:
    """Return why `launch`, one unit not stored yet, has to be refused; "" when it may start at once or there is room to wait. `read` is
    `take` in the transaction that stores the launch, and `look` for a page."""
    data_plane, unit = launch[0].data_plane_id, _waiting(tuple(launch))
    executions = Execution.objects.in_data_plane(data_plane)
    # Those who will be admitted within the next second do not count as waiting, but looking closer is only worth it here.
    alone, of_owner, of_project = Q(attached_to=None), Q(owner=launch[0].owner_id), Q(project=launch[0].project_id)
    waiting = executions.queued().aggregate(
        everybody=Count("pk"),
        person=Count("pk", filter=alone & of_owner),
        project=Count("pk", filter=alone & of_project),
    )
    shared = _why_share_is_full(waiting["person"], waiting["project"], limits)
    if not shared and waiting["everybody"] < limits.everybody:
        return ""
    others = others_left(
        unit,
        list(_batches(executions)),
        slots_per_user=value_of(MAXIMUM_EXECUTIONS_PER_USER),
        tier_maximum={tier: most for tier, (most, _) in _maxima().items()},
        moved=_owners_of_moved(data_plane),
        one_by_one=lambda users: read(data_plane, launch if unit.user in users else (), users=users).snapshot,
    )
    if others is None:
        return ""
    if shared or others < limits.everybody:
        return shared
    # Those that are held wait like all others: they start some day, and then they are as many as before.
    held = executions.queued().filter(queue_order__held_at__isnull=False).count()
    of_them = ngettext(" ({count} is held by an operator)", " ({count} are held by an operator)", held) if held else ""
    return _(
        "{waiting} executions wait for a free slot already{held}, and the queue holds {limit}. "
        "Stop something that you no longer need, or try again later.",
        waiting=others,
        held=of_them,
        limit=limits.everybody,
    )


def _why_share_is_full(of_person: int, of_project: int, limits: QueueLimits) -> str:
    """Return why no more executions of a person or a project of whom so many wait may wait; "" when more may."""
    if of_person >= limits.person:
        return _(
            "{most:,} executions of yours wait for a free slot already, and no more of one person may. "
            "Stop something that you no longer need, try again later, or ask an admin for more.",
            most=limits.person,
        )
    if of_project >= limits.project:
        return _(
            "{most:,} executions of this project wait for a free slot already, and no more of one project may. "
            "Stop something that is no longer needed, try again later, or ask an admin for more.",
            most=limits.project,
        )
    return ""


def _owners_of_moved(data_plane: str) -> set[int]:
    """Return the users of whom an operator has moved or held something in the queue, or a used up budget or maintenance keeps something
    there."""
    moved = list(QueueOrder.objects.values_list("pk", flat=True))
    rows = (
        Execution.objects.in_data_plane(data_plane)
        .queued()
        .filter(Q(pk__in=moved) | Q(reason__in=[*STANDING_ASIDE, TAKEN_OVER]))
    )
    return set(rows.order_by().values_list("owner_id", flat=True))


def _batches(executions: ExecutionQuerySet) -> Iterator[Batch]:
    """Count who waits and who holds slots in one statement, so that nobody who is admitted meanwhile is counted as both."""
    alike = executions.unsettled().order_by().values_list("owner_id", "tier_id", "head_tier_id", "slots")
    counted = alike.annotate(
        waiting=Count("pk", filter=_WAITS & Q(attached_to__isnull=True)),
        as_clusters=Count("pk", filter=_WAITS & Q(attached_to__isnull=False)),
        holding=Count("pk", filter=HOLDS_SLOTS),
        latest=Max("requested_at", filter=_WAITS),
    )
    for user, tier, head_tier, slots, waiting, as_clusters, holding, latest in counted:
        yield Batch(user, _tiers(head_tier, tier), slots, waiting, as_clusters, holding, latest or NEVER)


def _units(rows: Sequence[Execution]) -> Iterator[Unit]:
    """Yield the units. A cluster whose workspace or job no longer waits belongs to no unit: it never starts alone."""
    clusters = {row.attached_to_id: row for row in rows if row.attached_to_id}
    for row in rows:
        if not row.attached_to_id:
            yield (row, clusters[row.pk]) if row.pk in clusters else (row,)


def _waiting(unit: Unit, order: QueueOrder | None = None) -> QueuedUnit:
    parts = tuple(_part(row) for row in unit)
    # As decided last; admission decides it anew.
    aside = {unit[0].reason: unit[0].message}
    asked = QueuedUnit(
        unit[0].owner_id,
        unit[0].requested_at,
        parts,
        maintenance=aside.get(MAINTENANCE, ""),
        taken_over=aside.get(TAKEN_OVER, ""),
        over_budget=aside.get(CLOSED, ""),
    )
    if order is None:
        return asked
    return replace(asked, rank=order.rank, back_at=order.back_at, hold=held_words(order))


def held_words(order: QueueOrder) -> str:
    """Return who holds it and why, as a sentence; "" when nobody does."""
    if order.held_at is None:
        return ""
    reason = order.held_reason.strip().rstrip(".")
    sentence = _("Held by {by}: {reason}.") if reason else _("Held by {by}.")
    return sentence.format(by=order.held_by, reason=reason)


def _part(row: Execution) -> Part:
    return Part(row.pk, row.kind, tiers_of(row), row.slots)


def tiers_of(row: Execution) -> tuple[str, ...]:
    """Return the ids of the tiers that it takes a place on. The head's comes first, as the head starts first."""
    return _tiers(row.head_tier_id if row.kind == Kind.CLUSTER else None, row.tier_id)


def _tiers(head_tier: str | None, tier: str) -> tuple[str, ...]:
    return (head_tier, tier) if head_tier and head_tier != tier else (tier,)


def _maxima() -> dict[str, tuple[int, str]]:
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
