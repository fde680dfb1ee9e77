"""The CPU, memory and GPUs that a pod requests of its node, as the scheduler and the autoscaler count them; pure."""

from collections.abc import Iterable, Mapping

import msgspec

from grid.core.labels import APP_COMPONENT, APP_NAME, MANAGER, PLACEHOLDER
from grid.core.quantity import is_gpu
from grid.diagnosis.resources import ResourceAmounts, requested_amounts, resource_amounts
from grid.kube.objects import Pod

_MIRROR = "kubernetes.io/config.mirror"


class Amounts(msgspec.Struct, frozen=True, gc=False):
    """Amounts of CPU in thousandths of a core, memory in bytes, and GPUs of all resource names."""

    cpu: int = 0
    memory: int = 0
    gpus: int = 0

    def __add__(self, other: "Amounts") -> "Amounts":
        return Amounts(self.cpu + other.cpu, self.memory + other.memory, self.gpus + other.gpus)

    def times(self, factor: int) -> "Amounts":
        return Amounts(factor * self.cpu, factor * self.memory, factor * self.gpus)


def amounts(resources: Mapping[str, str]) -> Amounts:
    """Read a Kubernetes resource list; a quantity that cannot be read counts as 0."""
    return summary(resource_amounts(resources))


def summary(each: ResourceAmounts) -> Amounts:
    """Return the amounts of CPU, memory and GPUs of all names."""
    gpus = sum(amount for name, amount in each.items() if is_gpu(name))
    return Amounts(each.get("cpu", 0), each.get("memory", 0), gpus)


def total(each: Iterable[Amounts]) -> Amounts:
    cpu = memory = gpus = 0
    for amounts in each:
        cpu, memory, gpus = cpu + amounts.cpu, memory + amounts.memory, gpus + amounts.gpus
    return Amounts(cpu, memory, gpus)


def has_ended(pod: Pod) -> bool:
    """Return True for a Succeeded or Failed pod: still bound to the node, no longer counted."""
    return pod.status.phase in ("Succeeded", "Failed")


def holds_a_node(pod: Pod) -> bool:
    """Return True while the pod occupies a node, also while it is ending there."""
    return bool(pod.spec.node_name) and not has_ended(pod)


def is_placeholder(pod: Pod) -> bool:
    """Return True for a pod of ours that only keeps room warm: it gives way to the pod of any execution."""
    if pod.spec.priority >= 0:
        return False
    labels = pod.metadata.labels
    return labels.get(APP_COMPONENT) == PLACEHOLDER and labels.get(APP_NAME) == MANAGER


def is_own(pod: Pod) -> bool:
    """Return True for pods of a DaemonSet and static pods: they belong to the node, run on an empty one too, and end with it."""
    is_owned = any(each.controller and each.kind in ("DaemonSet", "Node") for each in pod.metadata.owner_references)
    return is_owned or _MIRROR in pod.metadata.annotations


def pod_requests(pod: Pod) -> Amounts:
    """Return what the pod takes of its node, as `requested_amounts` counts it."""
    return summary(requested_amounts(pod))
