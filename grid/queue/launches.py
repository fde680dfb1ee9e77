"""A launch before it is stored: whether the gate is closed to it, the queue full, and where it would stand in line.

`grid.executions.request.submit` asks `why_not_launch` in the transaction that stores the launch, a page asks `look_ahead`, and both decide
by the same facts and rules as admission does a moment later.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Max, Q

from grid.configuration import (
    GLOBAL_QUEUE_LIMIT,
    MAXIMUM_EXECUTIONS_PER_USER,
    WAITING_PER_PERSON,
    WAITING_PER_PROJECT,
    value_of,
    values_of,
)
from grid.core.errors import Problem
from grid.core.reasons import Reader, Reason
from grid.core.translation import gettext as _
from grid.diagnosis.launchfit import QueuePlace
from grid.models import Execution, QueueOrder, State
from grid.models.execution import HOLDS_SLOTS
from grid.queue import gate, snapshot
from grid.queue.gate import QUEUE_FULL, Candidate, GateFacts, why_not_start
from grid.queue.gatefacts import closed_to_launch, facts_of_queue
from grid.queue.queue import NEVER, tier_pair
from grid.queue.queuelimit import Batch, others_left
from grid.queue.quota import admit
from grid.queue.snapshot import Queue

_SOONER = {
    "over_user_slots": _("Stop something that you no longer need, and it starts sooner."),
    "over_tier_maximum": _("Choose another tier to start sooner."),
}
_WAITS = Q(state=State.QUEUED)


@dataclass(frozen=True, slots=True)
class LaunchOutlook:
    """What a launch would meet now: why it would be refused, and where it would stand in the queue; None for each that it would not."""

    closed: Reason | None
    place: QueuePlace | None


def why_not_launch(unit: Sequence[Execution], now: datetime) -> list[Problem]:
    """Return why a launch, one unit not stored yet, is refused; [] when it is taken. Call it in the transaction that stores the launch."""
    reason = closed_to_launch(unit[0].project_id, now) or why_queue_is_full(unit, now)
    return [gate.refusal(reason)] if reason is not None else []


def look_ahead(unit: Sequence[Execution], now: datetime) -> LaunchOutlook:
    """Return what the launch would meet, without locking anything: for pages, which decide nothing."""
    queue, first = snapshot.peek(unit[0].data_plane_id, unit, now=now), unit[0]
    closed = gate.why_not_launch(queue.facts, Candidate(first.owner_id, first.project_id))
    return LaunchOutlook(closed or why_queue_is_full(unit, now, read=snapshot.peek), _place(queue, unit))


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


def why_queue_is_full(
    launch: Sequence[Execution], now: datetime, *, read: Callable[..., Queue] = snapshot.take
) -> Reason | None:
    """Return why no more may wait; None when the launch may start at once or there is room to wait."""
    of_everybody, of_person, of_project = values_of(GLOBAL_QUEUE_LIMIT, WAITING_PER_PERSON, WAITING_PER_PROJECT)
    data_plane, owner, project = launch[0].data_plane_id, launch[0].owner_id, launch[0].project_id
    queued = Execution.objects.in_data_plane(data_plane).queued()
    # Those who will be admitted within the next second do not count as waiting, but looking closer is only worth it here.
    alone = Q(attached_to=None)
    waiting = queued.aggregate(
        everybody=Count("pk"),
        person=Count("pk", filter=alone & Q(owner=owner)),
        project=Count("pk", filter=alone & Q(project=project)),
    )
    share = None
    if waiting["person"] >= of_person:
        share = Reason(QUEUE_FULL, {"of": "person", "limit": of_person})
    elif waiting["project"] >= of_project:
        share = Reason(QUEUE_FULL, {"of": "project", "limit": of_project})
    if share is None and waiting["everybody"] < of_everybody:
        return None
    others = _others_left(launch, now, read)
    if others is None:
        return None
    if others < of_everybody:
        return share
    # Those that are held wait like all others: they start some day, and then they are as many as before.
    held = queued.filter(queue_order__held_at__isnull=False).count()
    return Reason(QUEUE_FULL, {"of": "everybody", "limit": of_everybody, "waiting": others, "held": held})


def _others_left(launch: Sequence[Execution], now: datetime, read: Callable[..., Queue]) -> int | None:
    """Return how many units the next admission leaves waiting beside the launch; None when it admits it."""
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
        slots_per_user=value_of(MAXIMUM_EXECUTIONS_PER_USER),
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
        is_closed = user not in moved and why_not_start(facts, Candidate(user, project)) is not None
        tiers = tier_pair(head_tier, tier)
        yield Batch(user, tiers, slots, waiting, as_clusters, holding, latest or NEVER, is_closed)
