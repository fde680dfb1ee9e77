"""What failed on a node, in a pod or in an execution, when, and where to read what was near it: marked on the charts of use; pure."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import chain
from operator import attrgetter

from dashboard.shell.viewmodels.events import event_line
from dashboard.shell.viewmodels.live import ViewModel
from grid.core.translation import gettext as _
from grid.kube.objects import Event, Node, Pod

_AT = attrgetter("at")
SHOWN_AT_MOST = 50  # of the newest: a crash loop on a full node has many
# Both tell of one thing, the node's controller a moment after the condition.
_TOGETHER = timedelta(minutes=2)
_LOST = "NodeNotReady"
_PRESSURES = ("DiskPressure", "MemoryPressure", "PIDPressure", "NetworkUnavailable")
# What kubelets, the node's controller and the node problem detector say of a node that has trouble; other events are of its daily life.
_NODE_TROUBLES = {
    *(_LOST, "NodeHasDiskPressure", "NodeHasInsufficientMemory", "NodeHasInsufficientPID", "EvictionThresholdMet"),
    *("SystemOOM", "OOMKilling", "Rebooted", "FreeDiskSpaceFailed", "ImageGCFailed", "ContainerGCFailed", "KernelOops"),
}


class FailureMoment(ViewModel, frozen=True, gc=False):
    """A moment that is marked on each chart; `url` is where what was near it can be read."""

    at: datetime
    words: str
    url: str = ""


class FailedExecution(ViewModel, frozen=True, gc=False):
    """An execution that ended with an error, as the database keeps it."""

    id: str
    name: str
    ended_at: datetime
    message: str


class ContainerEnd(ViewModel, frozen=True, gc=False):
    """Which container of a pod ended, for a link to its log; `is_previous` when it has been started again since."""

    name: str
    is_previous: bool


PodLink = Callable[[Pod, ContainerEnd | None], str]


def failures_of(pods: Iterable[Pod], link: PodLink) -> list[FailureMoment]:
    """Return when containers ended with an error, and pods were evicted, oldest first; `link` leads to a container's log, or the pod."""
    moments = []
    for pod in pods:
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
            for ended, is_previous in ((status.last_state.terminated, True), (status.state.terminated, False)):
                if ended is not None and ended.finished_at is not None and ended.exit_code:
                    named = {"container": status.name, "pod": pod.metadata.name, "reason": ended.reason or _("Error")}
                    words = _("{container} of {pod} ended: {reason}, exit code {code}", code=ended.exit_code, **named)
                    url = link(pod, ContainerEnd(status.name, is_previous))
                    moments.append(FailureMoment(ended.finished_at, words, url))
        changes = [each.last_transition_time for each in pod.status.conditions if each.last_transition_time is not None]
        if pod.status.reason == "Evicted" and changes:
            words = _("{pod} was evicted: {message}", pod=pod.metadata.name, message=pod.status.message)
            moments.append(FailureMoment(max(changes), words, link(pod, None)))
    return sorted(moments, key=_AT)


def node_failures(node: Node | None, events: Sequence[Event], url: str) -> list[FailureMoment]:
    """Return when the node was lost or under pressure, by its conditions and events, oldest first; `url` is its page, with each event."""
    moments = []
    for event in events:
        if event.reason in _NODE_TROUBLES and event.last_seen is not None:
            words = f"{event.reason}: {event.message.strip()}"
            moments.append(FailureMoment(event.last_seen, words[:300], f"{url}#{event_line(event).id}"))
    lost = [event.last_seen for event in events if event.reason == _LOST and event.last_seen is not None]
    for condition in node.status.conditions if node is not None else ():
        since = condition.last_transition_time
        if since is None:
            continue
        words = ""
        if condition.type == "Ready" and condition.status != "True":
            words = "" if any(abs(at - since) < _TOGETHER for at in lost) else _("The node is not ready")
        elif condition.type in _PRESSURES and condition.status == "True":
            words = _("The node has {condition}", condition=condition.type)
        if words:
            why = condition.message.strip() or condition.reason
            moments.append(FailureMoment(since, (f"{words}: {why}" if why else f"{words}.")[:300], f"{url}#events"))
    return sorted(moments, key=_AT)


def execution_failures(failed: Iterable[FailedExecution], link: Callable[[str], str]) -> list[FailureMoment]:
    """Return the ends of executions that failed, oldest first; `link` leads to an execution's history by its id."""
    moments = []
    for execution in failed:
        message = execution.message or _("no reason is known.")
        words = _("{name} failed: {message}", name=execution.name, message=message)[:300]
        moments.append(FailureMoment(execution.ended_at, words, link(execution.id)))
    return sorted(moments, key=_AT)


def newest(*moments: Iterable[FailureMoment]) -> list[FailureMoment]:
    return sorted(chain(*moments), key=_AT)[-SHOWN_AT_MOST:]
