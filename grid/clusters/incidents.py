"""Incidents of a running cluster's pods as history entries: which pod died of what, what was lost, and what happens next.

Pure, and read from the pods' present status: an entry's id is made of its pod and its kind, so the history has it once, however often and
by however many controllers it is recorded.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime

from grid.clusters.progress import ObservedCluster
from grid.core.labels import APP_COMPONENT, HEAD
from grid.core.translation import gettext as _
from grid.diagnosis.containers import explain_terminated
from grid.diagnosis.pods import explain_pod
from grid.executions.ledger import EventRecord
from grid.kube.objects import ContainerStatus, Event, Pod, Terminated, true_condition

HEAD_REPLACED = "head_replaced"
_LOST_WITH_HEAD = _(
    "Running tasks and results that were kept in memory are lost; reconnect from your program and run them again."
)
_LOST_WITH_WORKER = _("Its unfinished tasks go to other workers, and results that it held are computed again.")


def of_pods(seen: ObservedCluster, deleted: Sequence[Pod], *, since: datetime, now: datetime) -> list[EventRecord]:
    """Return the entries for all since `since` that can still be seen; `deleted` are pods deleted since the last reconcile."""
    events = defaultdict[str, list[Event]](list)
    for event in seen.events:
        events[event.involved_object.name].append(event)
    pods = (*deleted, *seen.pods)
    lines = (line for pod in pods for line in _of_pod(pod, events.get(pod.metadata.name, ()), since, now))
    return list({line.uid: line for line in lines}.values())


def head_replaced(pod: Pod, now: datetime) -> EventRecord:
    node = pod.spec.node_name or _("(unknown)")
    message = _("A new head answers on node {node}. {lost}", node=node, lost=_LOST_WITH_HEAD)
    return _line(pod, HEAD_REPLACED, message, at=now)


def _of_pod(pod: Pod, events: Sequence[Event], since: datetime, now: datetime) -> Iterator[EventRecord]:
    for status in pod.status.container_statuses:
        ended = _ended_badly(pod, status)
        if ended is not None and (ended.finished_at is None or ended.finished_at >= since):
            yield _program_ended(pod, status, ended, now)
    taken_away = true_condition(pod, "DisruptionTarget")
    why = explain_pod(pod, events, now=now)
    if taken_away is not None and (taken_away.last_transition_time or now) >= since:
        sentence = _("{pod} was evicted from node {node}: {why}. {lost}")
        node, reason = pod.spec.node_name or _("(unknown)"), taken_away.message or taken_away.reason
        message = sentence.format(pod=_name(pod), node=node, why=reason, lost=_lost(pod))
        yield _line(pod, f"{_part(pod)}_lost", message, at=taken_away.last_transition_time or now)
    elif why.code in ("evicted", "storage_limit", "node_lost", "disrupted", "refused_by_node", "failed"):
        message = _("{pod} is lost. {why} {lost}", pod=_name(pod), why=why.sentence, lost=_lost(pod))
        yield _line(pod, f"{_part(pod)}_lost", message, at=now)


def _program_ended(pod: Pod, status: ContainerStatus, ended: Terminated, now: datetime) -> EventRecord:
    why = explain_terminated(pod, status, ended)
    kind = "out_of_memory" if why.code == "out_of_memory" else "restarted"
    # Kubernetes' restart count includes restarts after ends of every kind.
    at, count = ended.finished_at or now, max(1, status.restart_count)
    again = _("It is started again.") if count == 1 else _("It was started again {count} times in all.", count=count)
    message = f"{_name(pod)}: {why.sentence} {again} {_lost(pod)} {why.next_step}".strip()
    return _line(pod, f"{_part(pod)}_{kind}", message, at=at, count=count)


def _ended_badly(pod: Pod, status: ContainerStatus) -> Terminated | None:
    present = status.state.terminated if pod.metadata.deletion_timestamp is None else None
    ends = (present, status.last_state.terminated)
    return next((end for end in ends if end is not None and (end.exit_code or end.reason == "OOMKilled")), None)


def _part(pod: Pod) -> str:
    return "head" if pod.metadata.labels.get(APP_COMPONENT) == HEAD else "worker"


def _name(pod: Pod) -> str:
    return _("The head") if _part(pod) == "head" else _("Worker {name}", name=pod.metadata.name)


def _lost(pod: Pod) -> str:
    return _LOST_WITH_HEAD if _part(pod) == "head" else _LOST_WITH_WORKER


def _line(pod: Pod, reason: str, message: str, *, at: datetime, count: int = 1) -> EventRecord:
    uid = f"{pod.metadata.uid or pod.metadata.name}/{reason}"[-64:]
    return EventRecord(uid, at, f"Pod/{pod.metadata.name}", "Warning", reason, message, count)
