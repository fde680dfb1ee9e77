"""A launch before it is stored: whether the gate is closed to it, the queue full, and where it would stand in line.
`grid.executions.request.submit` asks `why_not_launch` in the transaction that stores the launch, a page asks `look_ahead`, and both decide
by the same facts and rules as admission does a moment later."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from django.db.models import Count, Max, Q, QuerySet

from grid import configuration as central
from grid.configuration import value_of, values_of
from grid.core.errors import Problem
from grid.core.reasons import Reader, Reason
from grid.core.translation import gettext as _
from grid.database.prepared import Prepared
from grid.diagnosis.launchfit import QueuePlace
from grid.models import Execution, QueueOrder, State
from grid.models.execution import HOLDS_SLOTS
from grid.queue import gate, snapshot
from grid.queue.gate import QUEUE_FULL, GateFacts, why_not_start
from grid.queue.quota import NEVER, QueuedUnit, QuotaSnapshot, admit, tier_pair
from grid.queue.snapshot import Holdings, Queue, closed_to_launch, facts_of_queue

_SOONER = {
    "over_user_slots": _("Stop something that you no longer need, and it starts sooner."),
    "over_tier_maximum": _("Choose another tier to start sooner."),
}
_WAITS = Q(state=State.QUEUED)


@dataclass(frozen=True, slots=True)
class Batch:
    """So many executions of one user that are alike. `waiting` have a unit of their own, the last of them requested at `latest`; `attached`
    wait for a workspace or job; `holding` hold slots. `is_closed` says that the gate is closed to those that wait."""

    user: int
    tiers: tuple[str, ...]
    slots: int
    waiting: int = 0
    attached: int = 0
    holding: int = 0
    latest: datetime = NEVER
    is_closed: bool = False


def others_left(
    launch: QueuedUnit,
    batches: Sequence[Batch],
    *,
    slots_per_user: int,
    tier_maximum: Mapping[str, int],
    moved: Collection[int] = (),
    behind: Collection[str] = (),
    one_by_one: Callable[[Collection[int]], QuotaSnapshot],
) -> int | None:
    """Return how many units the next admission leaves waiting beside `launch`, which stands in line with them; None when it admits it.

    It says what `grid.queue.quota.admit` would, without a look at each of a thousand: for most users numbers of alike executions tell how
    many of their line are admitted. Decided one by one are those who stand before a tier with too few places, whose line has several sizes
    or pairs, or of whom an operator has moved or held something.

    `batches` are without `launch`. `moved` are the users in whose line it is not only the time that counts, and none of whose batches is
    called closed. `behind` are the tiers of what was moved to the back: whether it still stands there depends on all who wait for one of
    them. `one_by_one` returns the snapshot of these users alone, with `launch` if it is of one of them.
    """
    places = _free_places(batches, tier_maximum)
    standing = [replace(batch, waiting=0, attached=0) if batch.is_closed else batch for batch in batches]
    if launch.closed is None:
        standing += _batches_of(launch)
    lines = _hopeful_lines(standing, slots_per_user, places)
    wanted: Counter[str] = Counter()
    for line in lines.values():
        wanted.update(line.wanted)
    contested = {tier for tier, free in places.items() if wanted[tier] > free}
    unclear = {
        user for user, line in lines.items() if user in moved or line.admitted is None or contested & line.wanted.keys()
    }
    unclear |= {
        batch.user for batch in standing if batch.waiting + batch.attached and not {*behind}.isdisjoint(batch.tiers)
    }
    own = lines.get(launch.user) if launch.closed is None else None
    if own is not None and launch.user not in unclear and own.may_start(launch):
        if own.admitted == own.count:
            return None
        if not own.ends_with(launch):
            unclear.add(launch.user)
    # Of the unclear ones the snapshot alone counts: it may be a moment later than the numbers.
    left = sum(batch.waiting for batch in batches if batch.user not in unclear)
    left -= sum(line.admitted or 0 for user, line in lines.items() if user not in unclear)
    if unclear:
        decisions = admit(one_by_one(unclear))
        if launch.execution_id in decisions.admitted:
            return None
        left += len(decisions.refused.keys() - {launch.execution_id})
    return left


def _batches_of(launch: QueuedUnit) -> list[Batch]:
    first, *clusters = launch.parts
    return [
        Batch(launch.user, first.tiers, first.slots, waiting=1, latest=launch.requested_at),
        *(Batch(launch.user, part.tiers, part.slots, attached=1) for part in clusters),
    ]


def _free_places(batches: Sequence[Batch], tier_maximum: Mapping[str, int]) -> dict[str, int]:
    held: Counter[str] = Counter()
    for batch in batches:
        held.update(dict.fromkeys(batch.tiers, batch.holding))
    return {tier: most - held[tier] for tier, most in tier_maximum.items()}


def _hopeful_lines(batches: Sequence[Batch], most: int, places: Mapping[str, int]) -> dict[int, "_Line"]:
    """Return the lines by user, without those of which nothing can start: they are in nobody's way."""
    of_user: dict[int, list[Batch]] = {}
    for batch in batches:
        of_user.setdefault(batch.user, []).append(batch)
    lines = {user: _Line(own, most, places) for user, own in of_user.items()}
    return {user: line for user, line in lines.items() if line.is_hopeful}


class _Line:
    """What numbers tell of one user's line, as long as no tier becomes full that has a place now."""

    def __init__(self, batches: Sequence[Batch], most: int, places: Mapping[str, int]) -> None:
        self._batches = batches
        self._free = most - sum(batch.slots * batch.holding for batch in batches)
        # What is larger than the limit is passed by the others. What waits for a full tier may still hold them up, for slots.
        self._standing = [batch for batch in batches if batch.waiting and not batch.slots > most > 0]
        self._startable = [batch for batch in self._standing if all(places.get(tier, 1) > 0 for tier in batch.tiers)]
        self.count = sum(batch.waiting for batch in self._startable)
        self.is_hopeful = any(batch.slots <= self._free for batch in self._startable)
        self.admitted = self._admitted()
        self.wanted = self._wanted(places)

    def may_start(self, launch: QueuedUnit) -> bool:
        """Return whether it is among those that start when their turn comes; `launch` is in this line and has one part."""
        return any((batch.tiers, batch.slots) == (launch.tiers, launch.slots) for batch in self._startable)

    def ends_with(self, launch: QueuedUnit) -> bool:
        """Return whether no other in this line was requested at the same time or later."""
        return sum(batch.waiting > 0 and batch.latest >= launch.requested_at for batch in self._batches) == 1

    def _wanted(self, places: Mapping[str, int]) -> Counter[str]:
        """Return at most how many places it wants on each tier that may become full."""
        wanted: Counter[str] = Counter()
        for batch, count in [
            *((batch, batch.waiting) for batch in self._startable),
            *((batch, batch.attached) for batch in self._batches if batch.attached),
        ]:
            wanted.update({tier: count for tier in batch.tiers if tier in places})
        return wanted

    def _admitted(self) -> int | None:
        """Return how many are admitted; None when that depends on their order, or on who is whose cluster."""
        if any(batch.attached for batch in self._batches):
            return None
        if sum(batch.slots * batch.waiting for batch in self._standing) <= self._free:
            return self.count
        sizes = {batch.slots for batch in self._standing}
        return min(self.count, self._free // sizes.pop()) if len(sizes) == 1 else None


@dataclass(frozen=True, slots=True)
class LaunchOutlook:
    """What a launch would meet now: why it would be refused, and where it would stand in the `queue`; None for each that it would not."""

    closed: Reason | None
    place: QueuePlace | None
    queue: Queue


def why_not_launch(unit: Sequence[Execution], now: datetime) -> list[Problem]:
    """Return why a launch, one unit not stored yet, is refused; [] when it is taken. Call it in the transaction that stores the launch."""
    reason = closed_to_launch(unit[0].project_id, now) or why_queue_is_full(unit, now)
    return [gate.refusal(reason)] if reason is not None else []


def look_ahead(unit: Sequence[Execution], now: datetime, *, holding: Holdings | None = None) -> LaunchOutlook:
    """Return what the launch would meet, without locking anything: for pages, which decide nothing. What is `holding` slots in each data
    plane is read if it is not given."""
    first = unit[0]
    held = None if holding is None else holding.get(first.data_plane_id, ())
    queue = snapshot.peek(first.data_plane_id, unit, now=now, holding=held)
    closed = gate.why_not_launch(queue.facts, first.owner_id, first.project_id)
    closed = closed or why_queue_is_full(unit, now, read=snapshot.peek)
    return LaunchOutlook(closed, _place(queue, unit), queue)


def _place(queue: Queue, unit: Sequence[Execution]) -> QueuePlace | None:
    refused = admit(queue.snapshot).refused.get(unit[0].pk)
    if refused is None:
        return None
    taken = Counter(tier for row in unit for tier in snapshot.tiers_of(row))
    maxima = queue.snapshot.tier_maximum
    is_beyond_tier = any(count > maxima.get(tier, count) for tier, count in taken.items())
    for_good = refused.position > 0 and (refused.code == "larger_than_limit" or is_beyond_tier)
    sooner = "" if queue.snapshot.slots_per_user == 0 or for_good else _SOONER.get(refused.code, "")
    return QueuePlace(refused.position, refused.words(Reader("", is_owner=True)), sooner, for_good)


@partial(Prepared, 3)
def _waiting(data_plane: Any, owner: Any, project: Any) -> "QuerySet[Any, tuple[int, int, int]]":
    """How many wait: of everybody, and without attached clusters of a person and of a project; nothing while nobody does."""
    queued = Execution.objects.in_data_plane(data_plane).queued().order_by().values("data_plane")
    alone = Q(attached_to=None)
    of_person, of_project = alone & Q(owner=owner), alone & Q(project=project)
    of_both = {"of_person": Count("pk", filter=of_person), "of_project": Count("pk", filter=of_project)}
    return queued.annotate(of_all=Count("pk"), **of_both).values_list("of_all", "of_person", "of_project")


def why_queue_is_full(
    launch: Sequence[Execution], now: datetime, *, read: Callable[..., Queue] = snapshot.take
) -> Reason | None:
    """Return why no more may wait; None when the launch may start at once or there is room to wait."""
    of_everybody, of_person, of_project = values_of(
        central.GLOBAL_QUEUE_LIMIT, central.WAITING_PER_PERSON, central.WAITING_PER_PROJECT
    )
    data_plane, owner, project = launch[0].data_plane_id, launch[0].owner_id, launch[0].project_id
    # Those who will be admitted within the next second do not count as waiting, but looking closer is only worth it here.
    waiting = next(iter(_waiting(data_plane, owner, project)), (0, 0, 0))
    share = None
    if waiting[1] >= of_person:
        share = Reason(QUEUE_FULL, {"of": "person", "limit": of_person})
    elif waiting[2] >= of_project:
        share = Reason(QUEUE_FULL, {"of": "project", "limit": of_project})
    if share is None and waiting[0] < of_everybody:
        return None
    others = _others_left(launch, now, read)
    if others is None:
        return None
    if others < of_everybody:
        return share
    # Those that are held wait like all others: they start some day, and then they are as many as before.
    queued = Execution.objects.in_data_plane(data_plane).queued()
    held = queued.filter(queue_order__held_at__isnull=False).count()
    return Reason(QUEUE_FULL, {"of": "everybody", "limit": of_everybody, "waiting": others, "held": held})


def _others_left(launch: Sequence[Execution], now: datetime, read: Callable[..., Queue]) -> int | None:
    data_plane = launch[0].data_plane_id
    queued = Execution.objects.in_data_plane(data_plane).queued().order_by()
    projects = {launch[0].project_id, *queued.values_list("project_id", flat=True).distinct()}
    facts = facts_of_queue(data_plane, projects, now)
    unit = snapshot.queued_unit(tuple(launch), facts)
    orders = dict(QueueOrder.objects.values_list("pk", "back_at"))
    moved = set(queued.filter(pk__in=list(orders)).values_list("owner_id", flat=True))
    back = [id for id, back_at in orders.items() if back_at is not None]
    moved_back = queued.filter(Q(pk__in=back) | Q(attached_to__in=back)).values_list("head_tier_id", "tier_id")
    return others_left(
        unit,
        list(_batches(data_plane, facts, moved)),
        slots_per_user=value_of(central.MAXIMUM_EXECUTIONS_PER_USER),
        tier_maximum={tier: most for tier, (most, _name) in snapshot.tier_maxima().items()},
        moved=moved,
        behind={tier for pair in moved_back for tier in pair if tier},
        one_by_one=lambda users: read(data_plane, launch if unit.user in users else (), now=now, users=users).snapshot,
    )


def _batches(data_plane: str, facts: GateFacts, moved: set[int]) -> Iterator[Batch]:
    """Count who waits and who holds slots in one statement, so that nobody who is admitted meanwhile is counted as both."""
    alike = Execution.objects.in_data_plane(data_plane).unsettled().order_by()
    counted = alike.values_list("owner_id", "project_id", "tier_id", "head_tier_id", "slots").annotate(
        waiting=Count("pk", filter=_WAITS & Q(attached_to__isnull=True)),
        as_clusters=Count("pk", filter=_WAITS & Q(attached_to__isnull=False)),
        holding=Count("pk", filter=HOLDS_SLOTS),
        latest=Max("requested_at", filter=_WAITS),
    )
    for user, project, tier, head_tier, slots, waiting, as_clusters, holding, latest in counted:
        is_closed = user not in moved and why_not_start(facts, user, project) is not None
        yield Batch(user, tier_pair(head_tier, tier), slots, waiting, as_clusters, holding, latest or NEVER, is_closed)
