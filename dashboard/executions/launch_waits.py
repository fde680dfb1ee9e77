"""What a launch would wait for on the nodes, for the card beside the form: its image, and room; from the caches on their loop, and from the
database in a thread."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import inf

from asgiref.sync import async_to_sync

from dashboard.executions.viewmodels.fit_card import FitQuestion
from dashboard.starts.viewmodels.expected_wait import launch_wait
from dashboard.starts.wait_records import expected_wait, how_right
from grid.core.labels import SIMULATED
from grid.core.workqueue import in_slices
from grid.diagnosis.launchfit import FitCode, PodPlan
from grid.diagnosis.nodeimages import ImagePull, image_on, reports_all
from grid.diagnosis.places import takes_pods, untolerated
from grid.diagnosis.resources import resource_amounts
from grid.executions.spec import parse_spec
from grid.kube.objects import Node
from grid.models import Execution, WaitPrediction
from grid.queue.wait_estimate import observing
from grid.queue.wait_estimate.capacity import RoomFacts, RoomSeeker, fits
from grid.queue.wait_estimate.observed import Observed
from grid.runtime import Runtime
from grid.runtime.starts import room_beside, waiting_for_room
from grid.starts.startuphistory import image_size, usual_pace, usual_start

_STARTS: frozenset[FitCode] = frozenset({"starts_now", "needs_nodes", "waits_for_room"})
_NODES_AT_ONCE = 100  # some 2 ms of the loop


@dataclass(frozen=True, slots=True)
class _ImageSeen:
    is_missing: bool
    size: int | None


def with_waits(
    question: FitQuestion, code: FitCode, unit: Sequence[Execution], runtime: Runtime, now: datetime
) -> FitQuestion:
    """Return the question with what is known of the start of a launch for which the answer is `code`. Call it in a thread."""
    if code not in _STARTS:
        return question
    first, plan = unit[0], question.pods[0]
    tier, image = first.head_tier_id or first.tier_id, parse_spec(first).environment.image
    seen = async_to_sync(_image)(runtime, plan, image, has_room=code == "starts_now")
    size = seen.size or image_size(tier=tier, environment=first.environment_id, image=image)
    pace = usual_pace(plan.pool) if size else None
    seconds = size * pace if size and pace is not None else None
    usual = usual_start(
        tier=tier, environment=first.environment_id, pull=seconds if seen.is_missing and code == "starts_now" else None
    )
    expected = question.expected
    if code == "waits_for_room":
        room = async_to_sync(_room)(runtime, question.pods, first.pk, now)
        wait = expected_wait(list(unit), now, Observed(room=room))
        expected = launch_wait(wait, how_right(WaitPrediction.Stage.ROOM))
    pull = ImagePull(size, seconds, is_missing=seen.is_missing)
    return replace(question, expected=expected, usual_start=usual, pull=pull)


async def _image(runtime: Runtime, plan: PodPlan, image: str, *, has_room: bool) -> _ImageSeen:
    """Return whether all nodes on which the pod may start, with room for it now or not, lack its image, and how large that is."""
    size, may_start_on = None, list[Node]()
    nodes = runtime.nodes.by("pool", plan.pool)[: observing.MOST_NODES]
    is_there = False
    async for node in in_slices(nodes, _NODES_AT_ONCE):
        reported = image_on(node, image)
        size = size or (reported.size_bytes if reported is not None else None)
        if _may_take(runtime, node, plan, has_room=has_room):
            is_there = is_there or reported is not None
            may_start_on.append(node)
    is_missing = bool(may_start_on) and not is_there and all(reports_all(node, size) for node in may_start_on)
    return _ImageSeen(is_missing, size)


async def _room(runtime: Runtime, plans: Sequence[PodPlan], execution: str, now: datetime) -> RoomFacts:
    """Return the facts of all that waits for room, and of the launch as the last in line."""
    seekers = await waiting_for_room(runtime, now)
    for number, plan in enumerate(plans):
        nodes = runtime.nodes.by("pool", plan.pool)[: observing.MOST_NODES]
        sliced = in_slices(nodes, _NODES_AT_ONCE)
        takers = [node.metadata.name async for node in sliced if _may_take(runtime, node, plan, has_room=False)]
        names = frozenset(takers)
        for each in range(min(plan.count, observing.MOST_SEEKERS)):
            seekers.append(RoomSeeker(execution, plan.requests, names, (0, inf, f"{number} {each}"), f"{number}"))
    return await room_beside(runtime, seekers, now)


def _may_take(runtime: Runtime, node: Node, plan: PodPlan, *, has_room: bool) -> bool:
    """Return whether the node takes such a pod, now or when its other pods have ended."""
    if SIMULATED in node.metadata.labels or not takes_pods(node) or untolerated(node.spec.taints, plan.tolerations):
        return False
    name = node.metadata.name
    taken = runtime.room.requested(name) if has_room else runtime.room.own(name)
    size = resource_amounts(node.status.allocatable)
    return fits(plan.requests, {resource: amount - taken.get(resource, 0) for resource, amount in size.items()})
