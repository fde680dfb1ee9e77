"""What the controller remembers of the cluster: the executions' pods and events, each change marking its execution."""

import re
from collections.abc import Callable

from grid.kube.objects import Event, Pod
from grid.labels import KEYS
from grid.models.environment import Kind
from grid.watch.events import EventStore
from grid.watch.store import Store

_OBJECT_NAME = re.compile(rf"(?:{'|'.join(Kind.values)})-([a-z0-9]+)")

Marks = Callable[[str], None]


def execution_of_pod(pod: Pod) -> str:
    return pod.metadata.labels.get(KEYS.execution, "")


def execution_of_event(event: Event) -> str:
    """By the name of its object, which is derived from the execution's id; "" for any other object's."""
    found = _OBJECT_NAME.fullmatch(event.involved_object.name)
    return found[1] if found else ""


class PodCache(Store[Pod]):
    """The pods of all executions. `mark` is called with the execution of each pod that came, changed or went."""

    def __init__(self, mark: Marks) -> None:
        super().__init__("pods", indexes={"execution": execution_of_pod})
        self._mark = mark

    def apply(self, changed: Pod) -> bool:
        took = super().apply(changed)
        if took:
            self._mark(execution_of_pod(changed))
        return took

    def discard(self, key: str) -> bool:
        old = self.get(key)
        took = super().discard(key)
        if old is not None:
            self._mark(execution_of_pod(old))
        return took


class EventCache(EventStore):
    """The events of the namespace. `mark` is called with the execution that a new or repeated event is about."""

    def __init__(self, mark: Marks) -> None:
        super().__init__()
        self._mark = mark

    def apply(self, changed: Event) -> bool:
        took = super().apply(changed)
        if took:
            self._mark(execution_of_event(changed))
        return took
