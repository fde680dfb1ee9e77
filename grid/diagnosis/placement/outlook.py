"""What a pod without a node may hope for: room on nodes that are there, or a node that is started."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from grid.diagnosis.diagnosis import latest
from grid.diagnosis.held import explain_held, is_unplaced, scheduler_message
from grid.diagnosis.karpenter import karpenters_word
from grid.diagnosis.placement.explain import has_come
from grid.diagnosis.placement.growth import growth_of
from grid.diagnosis.placement.obstacles import Placement
from grid.diagnosis.placement.surroundings import SchedulingContext
from grid.diagnosis.placement.volumes import explain_claims, reachable_from
from grid.kube.objects import Event, Pod


@dataclass(frozen=True, slots=True)
class Outlook:
    """`needs_node` says that a node is started for the pod, or may be; else `nodes` are those on which nothing but room is missing. Neither
    for a pod that waits for something else."""

    needs_node: bool = False
    nodes: frozenset[str] = frozenset()


_UNKNOWN = Outlook()


def outlook_of(pod: Pod, events: Sequence[Event], scheduling: SchedulingContext, *, now: datetime) -> Outlook:
    """Return the outlook of a pod; `events` are its own, oldest first."""
    if not is_unplaced(pod) or explain_held(pod, events, now=now) is not None:
        return _UNKNOWN
    if explain_claims(pod, scheduling, scheduler_message(pod, events), now=now) is not None:
        return _UNKNOWN
    placement = Placement(pod, scheduling, volumes=reachable_from(pod, scheduling))
    situations = placement.situations()
    pool_nodes = placement.in_pool(situations)
    growth = growth_of(placement, pool_nodes, events)
    scaling = latest(events, "TriggeredScaleUp", "NotTriggerScaleUp")
    is_asked_for = scaling is not None and scaling.reason == "TriggeredScaleUp"
    if scaling is not None and is_asked_for and not has_come(scaling, growth, pool_nodes, now):
        return Outlook(needs_node=True)
    word = karpenters_word(events)
    if (
        (word is not None and word.reason == "Nominated")
        or growth.is_starting
        or (growth.may_help and not growth.is_out_of_stock)
    ):
        return Outlook(needs_node=True)
    short = [situation for situation in situations if situation.kinds <= {"full"}]
    return Outlook(nodes=frozenset(node.metadata.name for situation in short for node in situation.nodes))
