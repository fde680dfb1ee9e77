"""Explains pods from the caches: the one answer of all pages, also of the nodes around a pod that waits for one.

A thousand pods of one size that wait for one pool wait for the same reason, which takes a look at every node. So an answer is shared by
pods that differ in nothing that matters to a node, until the pool, the autoscaler's status or the volumes change.
"""

from collections.abc import Callable, Hashable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

import msgspec
from django.conf import settings

from grid.core.labels import APP_COMPONENT, HEAD, WORKER
from grid.core.translation import gettext as _
from grid.diagnosis.diagnosis import SCALING, Diagnosis, latest
from grid.diagnosis.held import is_settled, is_unplaced, scheduler_message
from grid.diagnosis.karpenter import is_of_karpenter
from grid.diagnosis.placement import NodeKinds, Outlook, SchedulingContext, outlook_of
from grid.diagnosis.placement.obstacles import host_ports
from grid.diagnosis.placement.volumes import explain_claims, reachable_from
from grid.diagnosis.pods import explain_pod
from grid.diagnosis.resources import requested_amounts
from grid.kube.hub import NAME, Topic
from grid.kube.objects import Event, Pod
from grid.models.environment import kind_words
from grid.runtime.caches import TEMPLATES_TOPIC as TEMPLATES, DataPlaneCaches, asked_pool, id_of
from grid.runtime.executions import ActiveExecutions
from grid.runtime.roomchanges import room_topic
from grid.runtime.volumelists import TOPIC as VOLUMES

GOOD_FOR = timedelta(seconds=5)  # for answers that say how long something has taken
MOST_KEPT = 2_000
_NODE_IS_LISTED = timedelta(seconds=10)  # after the start of a pod on it

_PARTS = {HEAD: _("a cluster's head"), WORKER: _("a cluster's worker")}
_encoded = msgspec.json.Encoder().encode
T = TypeVar("T")
# By the pod's shape: on what the answer is based, and since when it is known.
Answers = dict[Hashable, tuple[Hashable, datetime, T]]


class PodExplainer:
    """`executions` tell whose pods hold the nodes."""

    def __init__(self, caches: DataPlaneCaches, executions: ActiveExecutions) -> None:
        self._caches, self._executions = caches, executions
        self._kinds: tuple[int, NodeKinds] = -1, NodeKinds(())
        self._known: Answers[Diagnosis] = {}
        self._outlooks: Answers[Outlook] = {}

    def explain(self, pod: Pod, *, names_others: bool, now: datetime) -> Diagnosis:
        """Explain the pod; `names_others` when the reader may know whose executions hold the nodes."""
        events = self._caches.events.about_pod(pod)
        if not is_unplaced(pod) or not self._knows_nodes():
            node, is_deleted = self._caches.nodes.get(pod.spec.node_name), self._is_node_deleted(pod, now)
            return explain_pod(pod, events, now=now, node=node, is_node_deleted=is_deleted)

        return self._remembered(
            self._known,
            self._shape(pod, events, names_others, now),
            pod,
            now,
            lambda: explain_pod(pod, events, now=now, scheduling=self._scheduling(pod, names_others)),
        )

    def outlook(self, pod: Pod, *, now: datetime) -> Outlook | None:
        """Return what the pod may hope for; None when it waits for no node, or the nodes are not known yet."""
        if not is_unplaced(pod) or not self._knows_nodes():
            return None
        events = self._caches.events.about_pod(pod)

        return self._remembered(
            self._outlooks,
            self._shape(pod, events, False, now),
            pod,
            now,
            lambda: outlook_of(pod, events, self._scheduling(pod, names_others=False), now=now),
        )

    def _remembered(self, answers: Answers[T], shape: Hashable, pod: Pod, now: datetime, answer: Callable[[], T]) -> T:
        """Return the answer for pods of this shape, which holds for a while, as long as the nodes and what else it is based on stay."""
        caches, room = self._caches, self._caches.room_changes.version(asked_pool(pod))
        volumes = caches.volumes.version if pod.spec.volumes else 0
        basis = room, caches.config_maps.version, caches.templates.version, volumes
        known = answers.get(shape)
        if known is not None and known[0] == basis and timedelta() <= now - known[1] < GOOD_FOR:
            return known[2]
        new = answer()
        if len(answers) >= MOST_KEPT:
            answers.clear()
        answers[shape] = basis, now, new
        return new

    def awaited(self, pod: Pod) -> tuple[str, int] | None:
        """Return the pool that the pod waits for, "" for any, and the version of its nodes; None when it waits for no node."""
        pool = asked_pool(pod)
        return (pool, self._caches.room_changes.version(pool)) if is_unplaced(pod) else None

    def topics(self, pod: Pod) -> frozenset[Topic]:
        """Return the topics of what the explanation depends on besides the pod and its events."""
        if not is_unplaced(pod):
            node = pod.spec.node_name
            return frozenset({(self._caches.nodes.name, NAME, node)} if node else ())
        topics = {room_topic(asked_pool(pod)), self._caches.config_maps.name, TEMPLATES}
        return frozenset(topics | {VOLUMES} if pod.spec.volumes else topics)

    def _is_node_deleted(self, pod: Pod, now: datetime) -> bool:
        """Return whether the pod's node has no object any more. That of a new node may come after its first pod."""
        nodes, began = self._caches.nodes, pod.status.start_time
        if not pod.spec.node_name or began is None or now - began < _NODE_IS_LISTED:
            return False
        freshness = nodes.freshness(0.0)
        return freshness.synced and not freshness.error and nodes.get(pod.spec.node_name) is None

    def _knows_nodes(self) -> bool:
        """Return whether both lists have been read; an incomplete one would show room that is taken."""
        return self._caches.nodes.freshness(0.0).synced and self._caches.pods.freshness(0.0).synced

    def _shape(self, pod: Pod, events: Sequence[Event], names_others: bool, now: datetime) -> Hashable:
        spec, scheduled = pod.spec, next((each for each in pod.status.conditions if each.type == "PodScheduled"), None)
        refused = latest([event for event in events if not is_of_karpenter(event)], "FailedScheduling")
        asked = [event for event in events if event.reason in SCALING or is_of_karpenter(event)]
        decisive = tuple((event.reason, event.message, _round(event)) for event in (refused, *asked) if event)
        related = spec.affinity is not None or spec.topology_spread_constraints or self._caches.room.keeping_apart()
        return (
            names_others,
            pod.metadata.namespace,
            _encoded(
                (
                    *(dict(requested_amounts(pod)), self._reach(pod, events, now), host_ports(pod)),
                    *(spec.node_selector, spec.tolerations, spec.affinity, spec.topology_spread_constraints),
                    *(spec.scheduling_gates, spec.scheduler_name, spec.resource_claims),
                    *(spec.priority, spec.preemption_policy, pod.status.nominated_node_name),
                    pod.metadata.labels if related else {},
                )
            ),
            (scheduled.status, scheduled.reason, scheduled.message) if scheduled is not None else None,
            decisive,
            is_settled(pod, now),
            # Without a word of the scheduler, the time that has passed is all there is to tell.
            None if scheduled is not None and scheduled.message else pod.metadata.creation_timestamp,
        )

    def _reach(self, pod: Pod, events: Sequence[Event], now: datetime) -> object:
        """Return what the pod's volumes mean for its nodes; most claims mean nothing, and each person and project has another."""
        if not pod.spec.volumes:
            return None
        scheduling, message = self._scheduling(pod, names_others=False), scheduler_message(pod, events)
        problem = explain_claims(pod, scheduling, message, now=now)
        unknown = pod.spec.volumes if scheduling.claims is None and "volume" in message.lower() else None
        return reachable_from(pod, scheduling), problem and (problem.sentence, problem.severity), unknown

    def _scheduling(self, pod: Pod, names_others: bool) -> SchedulingContext:
        caches = self._caches
        version, kinds = self._kinds
        if version != caches.room_changes.nodes_version:  # reports of health leave the nodes as pods see them
            kinds = NodeKinds(tuple(caches.nodes.values()))
            self._kinds = caches.room_changes.nodes_version, kinds
        claims, volumes, classes = caches.volumes.known_for(pod) or (None, None, None)
        return SchedulingContext(
            nodes=kinds.nodes,
            kinds=kinds,
            pods=caches.pods.values,
            pods_on=lambda node_name: caches.pods.by("node", node_name),
            room=caches.room,
            pool_label=settings.NODE_POOL_LABEL,
            groups=caches.groups.by_pool() or None,
            templates=caches.templates.nodes,
            templates_own=caches.templates.own,
            claims=claims,
            volumes=volumes,
            classes=classes,
            claim_events=caches.events.about_claim,
            holder=self._holder if names_others else self._anonymous,
        )

    def _holder(self, pod: Pod) -> str:
        row, kind = self._executions.get(id_of(pod)), self._kind(pod)
        return kind if row is None else _("{pod} of {owner}", pod=kind, owner=row.owner_username)

    def _anonymous(self, pod: Pod) -> str:
        """Return words for any pod, because without words it is named."""
        return self._kind(pod) or _("another pod")

    def _kind(self, pod: Pod) -> str:
        """Return what a pod of an execution is, without saying whose; "" for another pod."""
        if (row := self._executions.get(id_of(pod))) is None:
            return ""
        part = pod.metadata.labels.get(APP_COMPONENT, "") if row.kind == "cluster" else ""
        return _PARTS.get(part) or kind_words(row.kind).indefinite


def _round(event: Event) -> int:
    """Return when a scale-up was asked for, which the explanation counts from, to ten seconds: pods that wait together share an answer."""
    at = {"TriggeredScaleUp": event.last_seen, "Nominated": event.first_timestamp or event.last_seen}.get(event.reason)
    return int(at.timestamp()) // 10 if at else 0
