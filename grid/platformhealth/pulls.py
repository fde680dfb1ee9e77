"""Reads from pods and events which images fail to be pulled now, and whether each was pulled before; pure."""

from collections.abc import Collection, Iterator
from datetime import datetime

from grid.core.labels import KEYS
from grid.core.regexes import Expression
from grid.diagnosis.images import PULL_FAILED
from grid.kube.events import age_order
from grid.kube.objects import ContainerStatus, Event, Pod
from grid.platformhealth.facts import FailedPull

# The kubelet's words, pkg/kubelet/images/image_manager.go and pkg/kubelet/events.
_FAILED_TO_PULL = Expression(r"^Failed to pull image \"([^\"]+)\": (.*)")
_PULLED = Expression(r"^(?:Successfully pulled|Container) image \"([^\"]+)\"")


def failed_pulls(events: Collection[Event], pods: Collection[Pod], *, since: datetime) -> list[FailedPull]:
    """Return the last failure of each image of each pod that still waits for it; a pod that is gone or has its image fails no more."""
    waiting = {pod.metadata.name: (pod, frozenset(_waited_for(pod))) for pod in pods}
    had = {image for pod in pods for image in _had(pod)}
    had |= {match[1] for event in events if event.reason == "Pulled" and (match := _PULLED.search(event.message))}
    failures: dict[tuple[str, str], FailedPull] = {}
    for event in sorted((event for event in events if event.reason == "Failed"), key=age_order):
        match = _FAILED_TO_PULL.search(event.message)
        pod, images = waiting.get(event.involved_object.name, (None, frozenset[str]()))
        is_recent = event.last_seen is not None and event.last_seen >= since
        if match is None or pod is None or match[1] not in images or not is_recent:
            continue
        name, person = pod.metadata.name, pod.metadata.labels.get(KEYS.user, "")
        failures[name, match[1]] = FailedPull(match[1], match[2], name, person, match[1] in had)
    return list(failures.values())


def _containers(pod: Pod) -> Iterator[tuple[str, ContainerStatus]]:
    """Yield the image by its name in the specification, which is the event's too, with the status of its container."""
    images = {each.name: each.image for each in (*pod.spec.init_containers, *pod.spec.containers)}
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        yield images.get(status.name, status.image), status


def _waited_for(pod: Pod) -> Iterator[str]:
    for image, status in _containers(pod):
        if status.state.waiting is not None and status.state.waiting.reason in PULL_FAILED:
            yield image


def _had(pod: Pod) -> Iterator[str]:
    for image, status in _containers(pod):
        if status.state.running is not None or status.state.terminated is not None:
            yield image
