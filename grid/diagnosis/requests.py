"""The resources that a pod requests of its node, as the scheduler and the autoscaler count them; pure."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

import msgspec

from grid.kube.objects import Pod
from grid.quantity import millicores, whole

_ENDED = ("Succeeded", "Failed")


class Amounts(msgspec.Struct, frozen=True, gc=False):
    """Amounts of CPU in thousandths of a core, memory in bytes, and GPUs of all resource names."""

    cpu: int = 0
    memory: int = 0
    gpus: int = 0

    def __add__(self, other: "Amounts") -> "Amounts":
        return Amounts(self.cpu + other.cpu, self.memory + other.memory, self.gpus + other.gpus)

    def times(self, factor: int) -> "Amounts":
        return Amounts(factor * self.cpu, factor * self.memory, factor * self.gpus)

    def at_least(self, other: "Amounts") -> "Amounts":
        return Amounts(max(self.cpu, other.cpu), max(self.memory, other.memory), max(self.gpus, other.gpus))


def amounts(resources: Mapping[str, str]) -> Amounts:
    """Read a Kubernetes resource list; a quantity that cannot be read counts as 0."""
    return _amounts(tuple(resources.items()))


@lru_cache(maxsize=4096)  # a cluster's pods ask for the same few lists again and again
def _amounts(resources: tuple[tuple[str, str], ...]) -> Amounts:
    found, gpus = dict(resources), sum(_read(whole, text) for name, text in resources if name.endswith("/gpu"))
    return Amounts(_read(millicores, found.get("cpu", "0")), _read(whole, found.get("memory", "0")), gpus)


def total(each: Iterable[Amounts]) -> Amounts:
    cpu = memory = gpus = 0
    for one in each:
        cpu, memory, gpus = cpu + one.cpu, memory + one.memory, gpus + one.gpus
    return Amounts(cpu, memory, gpus)


def has_ended(pod: Pod) -> bool:
    """Return True for a Succeeded or Failed pod: still bound to the node, no longer counted."""
    return pod.status.phase in _ENDED


def holds_a_node(pod: Pod) -> bool:
    """Return True while the pod occupies a node, also while it is ending there."""
    return bool(pod.spec.node_name) and not has_ended(pod)


def pod_requests(pod: Pod) -> Amounts:
    """Return the sum of containers and sidecars, or the largest step of the start-up if that is more, plus the pod's overhead.

    An init container with restartPolicy Always is a sidecar: it runs beside those that come after it.
    """
    containers = pod.spec.containers
    is_simple = not pod.spec.init_containers and not pod.spec.overhead
    if is_simple and len(containers) == 1:
        return amounts(containers[0].resources.requests)
    running = total(amounts(container.resources.requests) for container in containers)
    if is_simple:
        return running
    sidecars, largest_step = Amounts(), Amounts()
    for container in pod.spec.init_containers:
        asked = amounts(container.resources.requests)
        if container.restart_policy == "Always":
            sidecars += asked
            largest_step = largest_step.at_least(sidecars)
        else:
            largest_step = largest_step.at_least(sidecars + asked)
    return (running + sidecars).at_least(largest_step) + amounts(pod.spec.overhead)


@lru_cache(maxsize=4096)  # nodes' lists differ, but few of their quantities do
def _read(parse: Callable[[str], int], text: str) -> int:
    try:
        return parse(text)
    except ValueError:
        return 0
