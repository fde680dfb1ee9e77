"""Devices of a node that do not work: it has more of them than it offers; pure.

Sources: the kubelet counts all devices of a plugin as capacity and the healthy ones as allocatable, and sets both to 0 some minutes after
the plugin is gone (kubernetes/kubernetes, pkg/kubelet/cm/devicemanager/manager.go, GetCapacity). NVIDIA's feature discovery labels a node
with the number of its GPUs (NVIDIA/k8s-device-plugin, docs/gpu-feature-discovery).
"""

from collections.abc import Iterable, Mapping

from grid.core.quantity import is_gpu
from grid.core.translation import gettext as _
from grid.diagnosis.resources import resource_amount
from grid.kube.objects import Node


def devices_of(node: Node, resource: str) -> int:
    """Return how many devices the node has, working or not; 0 of what is no device."""
    if "/" not in resource:
        return 0
    capacity, offered = node.status.capacity, node.status.allocatable
    number = max(resource_amount(resource, each.get(resource, "0")) for each in (capacity, offered))
    # GPUs that are offered under another name, as slices or shared, are not missing.
    if not number and is_gpu(resource) and not any(map(is_gpu, offered_by(node))):
        number = resource_amount(resource, node.metadata.labels.get(f"{resource}.count", "0"))
    return number


def offered_by(node: Node) -> list[str]:
    """Return the device resources of which the node offers at least one."""
    return [name for name, text in node.status.allocatable.items() if "/" in name and resource_amount(name, text)]


def absent_words(needs: Iterable[str], nodes: Iterable[Node]) -> Mapping[str, str]:
    """Return those of the resources that none of these nodes has, each with words for what lacks: "a GPU", "example.com/fpga"."""
    everywhere = list(nodes)
    absent = {}
    for resource in needs:
        is_special = "/" in resource or resource.startswith("hugepages-")
        has_any = any(
            devices_of(node, resource) or resource_amount(resource, node.status.allocatable.get(resource, "0"))
            for node in everywhere
        )
        if is_special and not has_any:
            others = sorted({name for node in everywhere for name in offered_by(node) if is_gpu(name)})
            words = _("a GPU") if is_gpu(resource) and not others else resource
            absent[resource] = words
    return absent
