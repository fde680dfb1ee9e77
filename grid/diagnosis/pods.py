"""Explains a pod: why it waits, what it does, or why it failed, from its status and its own events.

The only place for these rules: pages, the controller's error messages and notifications all say the same. Pure: the same pod, events and
time give the same words.
"""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from grid.diagnosis.containers import OUT_OF_MEMORY, explain_running, explain_terminated, explain_waiting
from grid.diagnosis.diagnosis import Diagnosis, latest, quoted, since
from grid.diagnosis.parts import part_of
from grid.diagnosis.placement import Surroundings, explain_placement
from grid.kube.objects import ContainerStatus, Event, Pod, Terminated, true_condition
from grid.wording import duration, exact_duration

__all__ = ["Diagnosis", "explain_pod"]

_STUCK = timedelta(minutes=1)
# Parts of the kubelet's message when the pod exceeded its own limit, rather than the node being short.
_STORAGE_LIMITS = ("ephemeral local storage", "local ephemeral storage", "Usage of EmptyDir volume")
_LOW_ON = re.compile(r"low on resource: ([\w-]+)")
_USED = re.compile(r"was using (\w+), request is (\w+)")
_RESOURCES = {"ephemeral-storage": "disk", "inodes": "disk", "pids": "process ids"}
_REFUSED_BY_NODE = (
    "OutOf",
    "UnexpectedAdmissionError",
    "NodeAffinity",
    "Preempting",
    "Shutdown",
    "NodeShutdown",
    "Terminated",
)
_IN_ORDER_OF_WEIGHT = ("problem", "wait", "ok")


def explain_pod(pod: Pod, events: Sequence[Event], *, now: datetime, around: Surroundings | None = None) -> Diagnosis:
    """Explain the pod's present state; `events` are those of this pod, oldest first. `around` says why it has no node, where known."""
    if pod.status.phase == "Failed":
        return _failed(pod)
    if pod.status.phase == "Succeeded":
        return _first_terminated(pod) or _completed()
    if pod.metadata.deletion_timestamp is not None:
        return _ending(pod, events, now)
    if pod.status.phase == "Unknown":
        return _node_lost(pod, quoted(pod.status.message))
    if not pod.spec.node_name:
        return explain_placement(pod, events, around, now=now)
    return _silent_node(pod, events) or _containers(pod, events, now)


def _containers(pod: Pod, events: Sequence[Event], now: datetime) -> Diagnosis:
    found = []
    for status in _telling(pod):
        if status.state.terminated is not None:
            why = explain_terminated(pod, status, status.state.terminated)
        elif status.state.running is not None:
            why = explain_running(pod, status, status.state.running, events, now=now)
        else:
            why = explain_waiting(pod, status, events, now=now)
        # The worst diagnosis counts; then the program before its sidecars, and want of memory, which often ends the other containers too.
        weight = _IN_ORDER_OF_WEIGHT.index(why.severity), part_of(pod, status) == "sidecar", why.code != OUT_OF_MEMORY
        found.append((weight, why))
    if not found:
        return Diagnosis("preparing", f"Node {pod.spec.node_name} was chosen and starts preparing it.", "wait", "")
    return min(found, key=lambda pair: pair[0])[1]


def _telling(pod: Pod) -> list[ContainerStatus]:
    """Return the containers whose state matters, in the order in which they start: without setup steps that are done, without programs
    that wait for setup, and without sidecars once every program has ended."""
    done = pod.status.container_statuses and all(one.state.terminated for one in pod.status.container_statuses)
    first = []
    for status in pod.status.init_container_statuses:
        ended = status.state.terminated
        if part_of(pod, status) == "sidecar":
            if not done:
                first.append(status)
        elif ended is None or ended.exit_code:
            first.append(status)
    programs = [one for one in pod.status.container_statuses if not first or not _waits_for_setup(one)]
    return [*first, *programs]


def _waits_for_setup(status: ContainerStatus) -> bool:
    return status.state.waiting is not None and status.state.waiting.reason == "PodInitializing"


def _ending(pod: Pod, events: Sequence[Event], now: datetime) -> Diagnosis:
    overdue = since(pod.metadata.deletion_timestamp, now)  # the timestamp lies at the end of the grace period
    disruption = true_condition(pod, "DisruptionTarget")
    evidence = quoted(disruption.message) if disruption else ()
    was_left = disruption is not None and disruption.reason == "DeletionByTaintManager" and overdue > _STUCK
    lost = _silent_node(pod, events) or (_node_lost(pod, evidence) if was_left else None)
    if lost is not None:
        return lost
    if overdue <= _STUCK:
        return Diagnosis("ending", "Ending: the program is given time to close its files.", "wait", "", "", evidence)
    node = pod.spec.node_name or "(none)"
    sentence = f"This should have ended {duration(overdue)} ago, but node {node} does not confirm that."
    return Diagnosis(
        "stuck_ending", sentence, "problem", "operator", "Ask an operator whether the node is up.", evidence
    )


def _failed(pod: Pod) -> Diagnosis:
    reason, disruption = pod.status.reason, true_condition(pod, "DisruptionTarget")
    evidence = quoted(reason, pod.status.message, disruption.message if disruption else "")
    if reason == "Evicted":
        return _evicted(pod, evidence)
    if reason == "NodeLost" or (disruption is not None and disruption.reason == "DeletionByPodGC"):
        return _node_lost(pod, evidence)
    if disruption is not None:
        sentence = "The cluster evicted this, to use its node for something else or to remove it."
        step = "Launch it again; ask an operator if it happens often."
        return Diagnosis("disrupted", sentence, "problem", "operator", step, evidence)
    if reason.startswith(_REFUSED_BY_NODE):
        sentence = f"Node {pod.spec.node_name} rejected this."
        return Diagnosis("refused_by_node", sentence, "problem", "operator", "Launch it again.", evidence)
    if reason == "DeadlineExceeded":
        limit = pod.spec.active_deadline_seconds
        sentence = f"It ran longer than its {f'timeout of {exact_duration(limit)}' if limit else 'time limit'}."
        step = "Do less in one run, or launch it with a longer timeout."
        return Diagnosis("deadline", sentence, "problem", "you", step, evidence)
    sentence, step = "It failed, and Kubernetes does not say why.", "Show an operator the messages below."
    return _first_terminated(pod) or Diagnosis("failed", sentence, "problem", "operator", step, evidence)


def _evicted(pod: Pod, evidence: tuple[str, ...]) -> Diagnosis:
    """Explain an eviction by the kubelet: for the pod's own limit, or because the node was short of something."""
    message = pod.status.message
    if 'EmptyDir volume "shared-memory"' in message:
        sentence = "It used more shared memory (/dev/shm) than its tier allows, and was evicted."
        step = "Use fewer worker processes or smaller batches, or choose a tier with more shared memory."
        return Diagnosis("storage_limit", sentence, "problem", "you", step, evidence)
    if any(word in message for word in _STORAGE_LIMITS):
        sentence = "It wrote more to its node's disk than its tier allows, and was evicted."
        step = "Write large files to the project's folder, or choose a tier with more ephemeral storage."
        return Diagnosis("storage_limit", sentence, "problem", "you", step, evidence)
    low = _LOW_ON.search(message)
    of = _RESOURCES.get(low[1], low[1]) if low else "memory or disk"
    sentence = f"The node ran short of {of} and evicted this."
    used = _USED.search(message)
    if used:
        sentence = f"{sentence[:-1]}: it used {used[1]} and requests {used[2]}."
        step = "Launch it again on a tier that requests as much as it uses."
        return Diagnosis("evicted", sentence, "problem", "you", step, evidence)
    step = "Launch it again; ask an operator if it happens often."
    return Diagnosis("evicted", sentence, "problem", "operator", step, evidence)


def _first_terminated(pod: Pod) -> Diagnosis | None:
    """Explain a finished pod by the container that failed first, want of memory before other errors; None when none has terminated.

    A sidecar is ended by Kubernetes after the program, so its exit code explains nothing.
    """
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    ended = [(one, one.state.terminated) for one in statuses if one.state.terminated is not None]
    ended.sort(key=lambda pair: _in_order_of_cause(pod, *pair))
    return explain_terminated(pod, *ended[0]) if ended else None


def _in_order_of_cause(pod: Pod, status: ContainerStatus, ended: Terminated) -> tuple[bool, bool, bool, bool, float]:
    part = part_of(pod, status)
    finished = ended.finished_at.timestamp() if ended.finished_at else float("inf")
    return part == "sidecar", ended.exit_code == 0, ended.reason != "OOMKilled", part == "setup", finished


def _completed() -> Diagnosis:
    return Diagnosis("completed", "The program ended by itself, without an error.", "ok", "")


def _silent_node(pod: Pod, events: Sequence[Event]) -> Diagnosis | None:
    """Explain a pod whose node stopped reporting: Kubernetes marks the pod not ready, while its last known state still looks fine."""
    ready = next((one for one in pod.status.conditions if one.type == "Ready"), None)
    if ready is None or ready.status == "True":
        return None
    if ready.status == "Unknown":
        return _node_lost(pod, quoted(ready.message))
    statuses = pod.status.container_statuses
    if not statuses or not all(one.ready for one in statuses):
        return None
    event = latest(events, "NodeNotReady", "TaintManagerEviction")
    if event is None or event.message.startswith("Cancelling"):
        return None
    return _node_lost(pod, quoted(ready.message, event.message))


def _node_lost(pod: Pod, evidence: tuple[str, ...]) -> Diagnosis:
    sentence = f"Node {pod.spec.node_name or '(unknown)'} no longer answers."
    step = "If it does not come back soon, launch this again; the project's files are kept."
    return Diagnosis("node_lost", sentence, "problem", "operator", step, evidence)
