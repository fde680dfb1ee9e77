"""Explains a pod: why it waits, what it does, or why it failed, from its status and its own events.

The only place for these rules: pages, the controller's error messages and notifications all say the same. Pure: the same pod, events and
time give the same words.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from grid.diagnosis.containers import explain_running, explain_terminated, explain_waiting
from grid.diagnosis.diagnosis import Diagnosis, latest, quoted, since
from grid.diagnosis.scheduling import explain_unscheduled
from grid.kube.objects import Condition, Event, Pod
from grid.wording import duration

__all__ = ["Diagnosis", "explain_pod"]

_STUCK = timedelta(minutes=1)
# Parts of the kubelet's message when the pod exceeded its own limit, rather than the node being short.
_STORAGE_LIMITS = ("ephemeral local storage", "local ephemeral storage", "Usage of EmptyDir volume")
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


def explain_pod(pod: Pod, events: Sequence[Event], *, now: datetime) -> Diagnosis:
    """Explain the pod's present state; `events` are those of this pod, oldest first."""
    if pod.status.phase == "Failed":
        return _failed(pod)
    if pod.status.phase == "Succeeded":
        return _first_terminated(pod) or _completed()
    if pod.metadata.deletion_timestamp is not None:
        return _ending(pod, now)
    if pod.status.phase == "Unknown":
        return _node_lost(pod, quoted(pod.status.message))
    if not pod.spec.node_name:
        return explain_unscheduled(pod, events, now=now)
    return _silent_node(pod, events) or _containers(pod, events, now)


def _containers(pod: Pod, events: Sequence[Event], now: datetime) -> Diagnosis:
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    if not statuses:
        return Diagnosis("preparing", f"Node {pod.spec.node_name} was chosen and starts to prepare.", "wait", "")
    found = []
    for status in statuses:
        if status.state.terminated is not None:
            found.append(explain_terminated(pod, status, status.state.terminated))
        elif status.state.running is not None:
            found.append(explain_running(pod, status, status.state.running, events, now=now))
        else:
            found.append(explain_waiting(pod, status, events, now=now))
    # The worst diagnosis counts; among equals that of the container that starts first.
    return min(found, key=lambda one: _IN_ORDER_OF_WEIGHT.index(one.severity))


def _ending(pod: Pod, now: datetime) -> Diagnosis:
    overdue = since(pod.metadata.deletion_timestamp, now)  # the timestamp lies at the end of the grace period
    disruption = _disruption(pod)
    evidence = quoted(disruption.message) if disruption else ()
    if overdue <= _STUCK:
        return Diagnosis("ending", "Ending: the program is given time to close its files.", "wait", "", "", evidence)
    node = pod.spec.node_name or "(none)"
    sentence = f"This should have ended {duration(overdue)} ago, but node {node} does not confirm it."
    return Diagnosis(
        "stuck_ending", sentence, "problem", "operator", "Ask an operator whether the node lives.", evidence
    )


def _failed(pod: Pod) -> Diagnosis:
    reason, disruption = pod.status.reason, _disruption(pod)
    evidence = quoted(reason, pod.status.message, disruption.message if disruption else "")
    if reason == "Evicted" and any(word in pod.status.message for word in _STORAGE_LIMITS):
        sentence = "It wrote more to its node's disk than its tier allows, and was ended."
        step = "Write large files to the project's folder, or choose a tier with more ephemeral storage."
        return Diagnosis("storage_limit", sentence, "problem", "you", step, evidence)
    if reason == "Evicted":
        sentence = "The node ran short of memory or disk and ended this to save itself."
        step = "Launch it again; choose a tier with more memory if it used much."
        return Diagnosis("evicted", sentence, "problem", "you", step, evidence)
    if reason == "NodeLost" or (disruption is not None and disruption.reason == "DeletionByPodGC"):
        return _node_lost(pod, evidence)
    if disruption is not None:
        sentence = "The cluster took this off its node, to use the node otherwise or to remove it."
        step = "Launch it again; ask an operator if it happens often."
        return Diagnosis("disrupted", sentence, "problem", "operator", step, evidence)
    if reason.startswith(_REFUSED_BY_NODE):
        sentence = f"Node {pod.spec.node_name} did not take this after all."
        return Diagnosis("refused_by_node", sentence, "problem", "operator", "Launch it again.", evidence)
    if reason == "DeadlineExceeded":
        sentence, step = "It ran longer than it may.", "Do less in one run, or ask your admin for more time."
        return Diagnosis("deadline", sentence, "problem", "you", step, evidence)
    sentence, step = "It failed, and Kubernetes does not say why.", "Show an operator the messages below."
    return _first_terminated(pod) or Diagnosis("failed", sentence, "problem", "operator", step, evidence)


def _first_terminated(pod: Pod) -> Diagnosis | None:
    """Explain a finished pod by its first container that failed, else by its first; None when no container has terminated."""
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    ended = [(one, one.state.terminated) for one in statuses if one.state.terminated is not None]
    ended.sort(key=lambda pair: pair[1].exit_code == 0)
    return explain_terminated(pod, *ended[0]) if ended else None


def _completed() -> Diagnosis:
    return Diagnosis("completed", "The program has ended by itself, without an error.", "ok", "")


def _silent_node(pod: Pod, events: Sequence[Event]) -> Diagnosis | None:
    """Explain a pod whose node stopped reporting: Kubernetes marks the pod not ready, while its last known state still looks fine."""
    ready = next((one for one in pod.status.conditions if one.type == "Ready"), None)
    statuses = pod.status.container_statuses
    if ready is None or ready.status == "True" or not statuses or not all(one.ready for one in statuses):
        return None
    event = latest(events, "NodeNotReady", "TaintManagerEviction")
    return _node_lost(pod, quoted(ready.message, event.message)) if event else None


def _node_lost(pod: Pod, evidence: tuple[str, ...]) -> Diagnosis:
    sentence = f"Node {pod.spec.node_name or '(unknown)'} does not answer any more."
    step = "If it does not come back soon, launch this again; the project's files are kept."
    return Diagnosis("node_lost", sentence, "problem", "operator", step, evidence)


def _disruption(pod: Pod) -> Condition | None:
    return next((one for one in pod.status.conditions if one.type == "DisruptionTarget" and one.status == "True"), None)
