"""The controller's watch caches: the executions' pods, autoscalers and events. Each change enqueues its execution."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from grid.core.labels import APP_COMPONENT, HEAD, KEYS, WORKER
from grid.core.regexes import Expression
from grid.executions.kinds import is_registered, kind_of
from grid.kube.events import EventStore, age_order
from grid.kube.objects import Autoscaler, Event, Metadata, Pod
from grid.kube.store import Store

# A run's objects have the execution's name; a cluster's have its head's or workers', to which their controllers append suffixes.
_OBJECT_NAME = Expression(rf"([a-z]+)-(?:([a-z0-9]+)|([a-z0-9]+)-(?:{HEAD}|{WORKER})(?:-[a-z0-9-]+)?)")

_STARTING = "starting"

Enqueue = Callable[[str], None]


def execution_of(labelled: Pod | Autoscaler | Metadata | None) -> str:
    metadata = labelled if labelled is None or isinstance(labelled, Metadata) else labelled.metadata
    return metadata.labels.get(KEYS.execution, "") if metadata else ""


def execution_of_event(event: Event) -> str:
    """Return the execution's id, from which the name of the event's object is derived; "" for other objects."""
    match = _OBJECT_NAME.fullmatch(event.involved_object.name)
    if match is None or not is_registered(match[1]):
        return ""
    return match[2] or ("" if kind_of(match[1]).is_one_pod else match[3])


@dataclass(frozen=True, slots=True)
class GonePod:
    """The last state of a pod, and when it was seen to be gone."""

    pod: Pod
    at: datetime


class PodCache(Store[Pod]):
    """The pods of all executions. `enqueue` is called with the execution of each pod that was added, changed or deleted. A change of
    annotations alone enqueues nothing: they are the controller's own notes on workers, written every few seconds. `deleted_pods` holds
    deleted pods, by execution and uid, until a reconcile takes them out."""

    def __init__(self, enqueue: Enqueue, clock: Callable[[], datetime]) -> None:
        super().__init__("pods", indexes={"execution": execution_of, _STARTING: _starting})
        self.deleted_pods: dict[str, dict[str, GonePod]] = {}
        self._enqueue = enqueue
        self._clock = clock
        self.subscribe(self._changed)

    def starting(self) -> Sequence[Pod]:
        """Return the first pods of executions that have not started yet."""
        return self.by(_STARTING, _STARTING)

    def _changed(self, old: Pod | None, new: Pod | None) -> None:
        # Gone, or replaced by another one that has its name already.
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid) and (id := execution_of(old)):
            self.deleted_pods.setdefault(id, {})[old.metadata.uid] = GonePod(old, self._clock())
        if old is None or new is None or _but_for_notes(old) != _but_for_notes(new):
            self._enqueue(execution_of(new or old))


class AutoscalerCache(Store[Autoscaler]):
    """The autoscalers of all clusters, without their statuses: `enqueue` is called when one comes, goes, or has a new spec."""

    def __init__(self, enqueue: Enqueue) -> None:
        super().__init__("autoscalers", indexes={"execution": execution_of})
        self._enqueue = enqueue
        self.subscribe(self._changed)

    def _changed(self, old: Autoscaler | None, new: Autoscaler | None) -> None:
        if old is None or new is None or old.spec != new.spec:
            self._enqueue(execution_of(new or old))


class EventCache(EventStore):
    """The events of the namespace. `enqueue` is called with the execution of a new or repeated event."""

    def __init__(self, enqueue: Enqueue) -> None:
        super().__init__(indexes={"execution": execution_of_event})
        self._enqueue = enqueue

    def of(self, execution_id: str) -> Sequence[Event]:
        """Return the events about any object of the execution, oldest first."""
        return sorted(self.by("execution", execution_id), key=age_order)

    def apply(self, changed: Event) -> bool:
        took = super().apply(changed)
        if took:
            self._enqueue(execution_of_event(changed))
        return took


def _starting(pod: Pod) -> str:
    """Return the index value of a pod that its execution waits for."""
    is_worker = pod.metadata.labels.get(APP_COMPONENT) == WORKER
    return _STARTING if pod.status.phase == "Pending" and not is_worker else ""


def _but_for_notes(pod: Pod) -> Pod:
    metadata = msgspec.structs.replace(pod.metadata, resource_version="", annotations={})
    return msgspec.structs.replace(pod, metadata=metadata)
