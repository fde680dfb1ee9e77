"""Reads from the database what `grid.launch.quota` decides on."""

from dataclasses import dataclass

from django.db.models import Count, Max, Sum

from grid.centralconfig import GLOBAL_QUEUE_LIMIT, MAXIMUM_EXECUTIONS_PER_USER, value_of
from grid.launch.queue import Waiting
from grid.launch.quota import Holding, Snapshot, admit
from grid.models import Execution, HardwareTier, State


@dataclass(frozen=True, slots=True)
class Queue:
    """The snapshot, and the rows that wait by id."""

    snapshot: Snapshot
    rows: dict[str, Execution]


def take(extra: Execution | None = None) -> Queue:
    """The queue now, with `extra` as if it stood in it.

    The waiting rows are locked before the holders are read: on a database with row locks a second admission at the same
    time waits here, and then sees as holders what the first has admitted. (SQLite has one writer at a time anyway.)
    Call it in a transaction.
    """
    locked = Execution.objects.select_for_update().filter(state=State.QUEUED).order_by("pk")
    rows = {row.pk: row for row in locked.defer("spec", "final_log")}
    standing = [*rows.values(), *([extra] if extra is not None else [])]
    holders = Execution.objects.filter(slots_reserved_at__isnull=False, slots_freed_at__isnull=True).order_by()
    held = holders.values_list("owner_id", "tier_id").annotate(Count("pk"), Sum("slots"))
    served = (
        Execution.objects.filter(owner_id__in={row.owner_id for row in standing}, slots_reserved_at__isnull=False)
        .order_by()
        .values_list("owner_id", "tier_id")
        .annotate(Max("slots_reserved_at"))
    )
    limited = HardwareTier.objects.filter(maximum_simultaneous__isnull=False)
    maxima = list(limited.values_list("pk", "maximum_simultaneous", "name"))
    snapshot = Snapshot(
        waiting=tuple(_waiting(row) for row in standing),
        holding=tuple(Holding(user, tier, count, slots) for user, tier, count, slots in held),
        slots_per_user=value_of(MAXIMUM_EXECUTIONS_PER_USER),
        tier_maximum={tier: most for tier, most, _ in maxima if most is not None},
        tier_names={tier: name for tier, _, name in maxima},
        last_served={(user, tier): at for user, tier, at in served},
    )
    return Queue(snapshot, rows)


def why_queue_is_full(launch: Execution) -> str:
    """Why `launch`, not stored yet, has to be refused; "" when it may start at once or there is room to wait."""
    limit = value_of(GLOBAL_QUEUE_LIMIT)
    # Those who will be admitted within the next second do not count as waiting, but looking closer is only worth it here.
    if Execution.objects.filter(state=State.QUEUED).count() < limit:
        return ""
    decisions = admit(take(extra=launch).snapshot)
    if launch.pk in decisions.admitted or len(decisions.refused) <= limit:
        return ""
    return (
        f"{len(decisions.refused) - 1} executions wait for a free slot already, and the queue holds {limit}. "
        "Stop something that you do not need any more, or try again later."
    )


def _waiting(row: Execution) -> Waiting:
    return Waiting(row.pk, row.owner_id, row.tier_id, row.slots, row.requested_at)
