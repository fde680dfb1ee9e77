"""The states of a cluster, as a pure function of its row and of what is observed of it.

    deploying --the head has a node--> preparing --head and first worker ready--> running
    deploying, preparing --too long--> error

Then it runs until it is stopped: its Deployments replace what dies, `incidents` records what was lost, its standing what it waits for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from grid.clusters.manifests import head_name, worker_name
from grid.clusters.reasons import HEAD_DOWN, HEAD_READY, NO_WORKER
from grid.core.labels import APP_COMPONENT, HEAD, WORKER
from grid.core.translation import gettext as _
from grid.diagnosis.placement import SchedulingContext
from grid.diagnosis.pods import explain_pod
from grid.diagnosis.refusals import explain_refusal
from grid.executions.ledger import LedgerRecord
from grid.executions.lifecycle import Transition
from grid.kube.objects import Event, Pod, is_ready
from grid.models import State

READY = "ready"
_ATTEMPTS = ("FailedCreate", "ReplicaSetCreateError")
# Why there is no pod: refused for a known reason, refused otherwise, or not created yet.
_NOT_MADE = {
    HEAD: (
        _("The head is refused. {why} {next_step}"),
        _("The cluster refuses to create the head: {message} Ask your admin."),
        _("Kubernetes has not created the pod of the head yet. Ask an operator whether its controllers work."),
    ),
    WORKER: (
        _("A worker is refused. {why} {next_step}"),
        _("The cluster refuses to create a worker: {message} Ask your admin."),
        _("Kubernetes has not created the pod of a worker yet. Ask an operator whether its controllers work."),
    ),
}


@dataclass(frozen=True)  # without slots, which leave no place for cached properties
class ObservedCluster:
    """A cluster's pods now, and the events about its objects, oldest first; `scheduling` is read only for the message of a timeout."""

    pods: Sequence[Pod] = ()
    events: Sequence[Event] = ()
    scheduling: SchedulingContext | None = None

    @cached_property
    def head(self) -> Pod | None:
        """The newest head that is not ending, else the newest; None without any."""
        heads = sorted(_of(self.pods, HEAD), key=lambda pod: (not _is_ending(pod), _age(pod)))
        return heads[-1] if heads else None

    @cached_property
    def workers(self) -> Sequence[Pod]:
        return sorted((pod for pod in _of(self.pods, WORKER) if not _is_ending(pod)), key=_age)

    @property
    def head_is_ready(self) -> bool:
        return self.head is not None and is_up(self.head)

    @cached_property
    def ready_workers(self) -> int:
        return sum(is_up(pod) for pod in self.workers)

    def about(self, pod: Pod) -> Sequence[Event]:
        return [event for event in self.events if event.involved_object.name == pod.metadata.name]


def next_change(
    row: LedgerRecord, seen: ObservedCluster, *, timeouts: Mapping[State, int], now: datetime
) -> Transition | None:
    """Return the next state of a cluster whose objects were created, or None to go on waiting."""
    head = seen.head
    if row.state == State.DEPLOYING and head is not None and head.spec.node_name:
        return Transition(State.PREPARING, "scheduled", values={"node": head.spec.node_name, "kind": row.kind})
    if row.state == State.PREPARING and seen.head_is_ready and seen.ready_workers:
        return Transition(State.RUNNING, READY)
    return _too_long(row, seen, timeouts, now)


def standing(row: LedgerRecord, seen: ObservedCluster) -> str | None:
    """Return the reason while the state stays; None to leave them as they are."""
    if row.state == State.PREPARING:
        return HEAD_READY if seen.head_is_ready else None
    if row.state != State.RUNNING:
        return None
    if not seen.head_is_ready:
        return HEAD_DOWN
    return READY if seen.ready_workers else NO_WORKER


def is_up(pod: Pod) -> bool:
    return not _is_ending(pod) and is_ready(pod)


def awaited(row: LedgerRecord, seen: ObservedCluster) -> Pod | None:
    """Return the pod of which a timeout tells: the head, or the first worker once the head is ready."""
    return seen.head if _awaits(row, seen) == HEAD else next(iter(seen.workers), None)


def _awaits(row: LedgerRecord, seen: ObservedCluster) -> str:
    return HEAD if row.state == State.DEPLOYING or not seen.head_is_ready else WORKER


def _too_long(
    row: LedgerRecord, seen: ObservedCluster, timeouts: Mapping[State, int], now: datetime
) -> Transition | None:
    limit = timeouts.get(row.state)
    if limit is None or now - row.state_since <= timedelta(seconds=limit):
        return None
    of, pod = _awaits(row, seen), awaited(row, seen)
    if pod is None:
        last_known = _not_made(row, seen, of)
    else:
        why = explain_pod(pod, seen.about(pod), now=now, scheduling=seen.scheduling)
        last_known = f"{why.sentence} {why.next_step}".strip()
    values = {"of": of, "seconds": limit, "last_known": last_known}
    return Transition(State.ERROR, f"{row.state.value}_timeout", level="Warning", values=values)


def _not_made(row: LedgerRecord, seen: ObservedCluster, component: str) -> str:
    """Explain why there is no such pod, from the events of its owner: a quota, or a rule of the namespace."""
    name = head_name(row.id) if component == HEAD else worker_name(row.id)
    refused, refused_so, missing = _NOT_MADE[component]
    for event in reversed(seen.events):
        owner = event.involved_object
        if event.reason in _ATTEMPTS and owner.kind != "Pod" and owner.name.startswith(name):
            known = explain_refusal(event.message)
            if known is None:
                return refused_so.format(message=event.message)
            return refused.format(why=known.sentence, next_step=known.next_step)
    return missing


def _of(pods: Sequence[Pod], component: str) -> list[Pod]:
    return [pod for pod in pods if pod.metadata.labels.get(APP_COMPONENT) == component]


def _is_ending(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None or pod.status.phase in ("Failed", "Succeeded")


def _age(pod: Pod) -> tuple[bool, float, str]:
    created = pod.metadata.creation_timestamp
    return created is not None, created.timestamp() if created else 0.0, pod.metadata.name
