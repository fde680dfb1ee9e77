"""Explains why a pod has no node, from the objects, and what it may hope for; the scheduler's message only confirms.

The sentence is about the nodes that need the least to change: first those where something only has to end, then those that are not ready,
then those that somebody closed, and only then those that are too small.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from grid.diagnosis.complaints import explain_complaints, not_computed
from grid.diagnosis.diagnosis import SCALING, Diagnosis, latest, quoted, since, together
from grid.diagnosis.held import (
    explain_chosen,
    explain_held,
    explain_provisioning,
    explain_silence,
    is_settled,
    is_unplaced,
    scheduler_message,
)
from grid.diagnosis.karpenter import explain_nominated, karpenters_word, with_refusal
from grid.diagnosis.placement.growth import Growth, growth_of
from grid.diagnosis.placement.obstacles import CLOSED, FOREIGN, NEVER, NodeSituation, Placement, without
from grid.diagnosis.placement.rows import table
from grid.diagnosis.placement.sentences import Scene
from grid.diagnosis.placement.surroundings import SchedulingContext
from grid.diagnosis.placement.volumes import explain_claims, reachable_from
from grid.diagnosis.scheduling import counted_reasons, explain_scale_up, explain_unscheduled, explain_volume_message
from grid.kube.objects import Event, Pod

# The autoscaler writes its status at each of its scans, by default every 10 s; before that its number of nodes is the old one.
_STATUS_WRITTEN = timedelta(seconds=60)


def explain_placement(
    pod: Pod, events: Sequence[Event], scheduling: SchedulingContext | None, *, now: datetime
) -> Diagnosis:
    """Explain a pod without a node; `events` are its own, oldest first. Without its scheduling context, only the messages are read."""
    if scheduling is None:
        return explain_unscheduled(pod, events, now=now)
    if (held := explain_held(pod, events, now=now)) is not None:
        return held
    message = scheduler_message(pod, events)
    scaling = latest(events, *SCALING)
    evidence = quoted(message, scaling.message if scaling else "")
    about_claims = explain_claims(pod, scheduling, message, now=now)
    if about_claims is None and (chosen := explain_chosen(pod, message, now=now)) is not None:
        return replace(chosen, evidence=evidence)
    if about_claims is None and scheduling.claims is None:
        about_claims = explain_volume_message(pod, message, settled=is_settled(pod, now))
    placement = Placement(pod, scheduling, volumes=reachable_from(pod, scheduling))
    situations = placement.situations()
    unknown = not_computed(counted_reasons(message)) if message else {}
    rows = table(placement, situations, is_doubted=bool(unknown))
    pool_nodes = placement.in_pool(situations)
    growth = growth_of(placement, pool_nodes, events)
    scene = Scene(placement, situations, growth, message, is_settled(pod, now), now)
    if about_claims is not None:
        about_claims = replace(about_claims, evidence=quoted(*evidence, *about_claims.evidence))
        nowhere = scene.none_to_use() if situations and not without(situations, *FOREIGN) else about_claims
        are_two = nowhere.code == "not_selected" and nowhere.severity == about_claims.severity == "problem"
        return together(about_claims, nowhere) if are_two else about_claims
    word, held_up = karpenters_word(events), scene.held_up()
    coming = explain_nominated(events, evidence, now) or explain_provisioning(events, evidence)
    if scaling is not None and scaling.reason == "TriggeredScaleUp" and not has_come(scaling, growth, pool_nodes, now):
        coming = explain_scale_up(scaling, evidence, now, pool=placement.pool)
    if coming is not None and (coming.is_normal or held_up is None):
        return replace(coming, table=rows)
    if unknown and any(not situation.obstacles for situation in situations):
        return replace(explain_complaints(unknown, settled=scene.settled), evidence=evidence, table=rows)
    diagnosis = held_up or _explain(scene, now)
    if diagnosis.code == "no_stock":
        tried = [event.message for event in events if event.reason == "TriggeredScaleUp"]
        evidence = quoted(*evidence, *tried, *growth.errors)
    return with_refusal(replace(diagnosis, evidence=evidence, table=rows), word)


def has_come(scaling: Event, growth: Growth, pool_nodes: Sequence[NodeSituation], now: datetime) -> bool:
    """Return whether the node that was started for the pod is there, so that it was taken by others or does not fit."""
    is_told = growth.group is not None and since(scaling.last_seen, now) > _STATUS_WRITTEN
    return is_told and not growth.is_missing and len(without(pool_nodes, "not_ready")) == len(pool_nodes)


def _explain(scene: Scene, now: datetime) -> Diagnosis:
    usable = without(scene.situations, *FOREIGN)
    if not usable:
        return scene.none_to_use()
    if free := [situation for situation in usable if not situation.obstacles]:
        return scene.room(free) if scene.message else explain_silence(scene.placement.pod, now=now)
    fit, open_nodes = without(usable, *NEVER), without(usable, "not_ready", *CLOSED)
    if waiting := without(open_nodes, "broken", *NEVER):
        return scene.busy(waiting)
    if broken := without(open_nodes, *NEVER):
        return scene.broken(broken, usable)
    if unready := without(fit, *CLOSED):
        return scene.unready(unready, usable)
    if fit:
        return scene.closed(fit, usable)
    if not open_nodes:
        unready = without(usable, *CLOSED)
        return scene.unready(unready, usable) if unready else scene.closed(usable, usable)
    return scene.never(open_nodes, usable)


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
    scaling = latest(events, *SCALING)
    if scaling is not None and scaling.reason == "TriggeredScaleUp" and not has_come(scaling, growth, pool_nodes, now):
        return Outlook(needs_node=True)
    word = karpenters_word(events)
    is_nominated = word is not None and word.reason == "Nominated"
    if is_nominated or growth.is_starting or (growth.may_help and not growth.is_out_of_stock):
        return Outlook(needs_node=True)
    short = [situation for situation in situations if situation.kinds <= {"full"}]
    return Outlook(nodes=frozenset(node.metadata.name for situation in short for node in situation.nodes))
