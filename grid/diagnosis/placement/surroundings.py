"""What a pod without a node is compared with: the nodes and what runs there, the node groups that may grow, and the volumes.

A pool's nodes are of few kinds, the same to a pod but for what runs there, so each kind is judged once. A node whose devices do not work
has more of them than it offers.

Sources: the kubelet counts all devices of a plugin as capacity and the healthy ones as allocatable, and sets both to 0 some minutes after
the plugin is gone (kubernetes/kubernetes, pkg/kubelet/cm/devicemanager/manager.go, GetCapacity). NVIDIA's feature discovery labels a node
with the number of its GPUs (NVIDIA/k8s-device-plugin, docs/gpu-feature-discovery).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from grid.core.labels import NODE_POOL
from grid.core.quantity import is_gpu
from grid.core.translation import gettext as _
from grid.diagnosis.resources import ResourceAmounts, resource_amount
from grid.diagnosis.room import NodeRoom
from grid.kube.objects import Event, Node, Pod, StorageClass, Volume, VolumeClaim
from grid.kube.pools import NodeGroup

_MOST_KEPT = 32
# NVIDIA's feature discovery, node feature discovery, GKE, EKS' cluster autoscaler, AKS and Karpenter.
_TELL_OF_GPUS = {
    *("nvidia.com/gpu.present", "feature.node.kubernetes.io/pci-10de.present", "cloud.google.com/gke-accelerator"),
    *("k8s.amazonaws.com/accelerator", "kubernetes.azure.com/accelerator", "karpenter.k8s.aws/instance-gpu-count"),
}


class NodeQuestion(NamedTuple):
    """What a pod asks of nodes: the labels that it selects by ("" for the name), those that have to be there, the resources it needs."""

    labels: tuple[str, ...]
    present: tuple[str, ...]
    resources: tuple[str, ...]


class NodeKinds:
    """The nodes of a cluster, grouped. Groups are kept, because most pods ask for the same labels and resources."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self._kept: dict[NodeQuestion, list[list[Node]]] = {}

    def groups(self, asked: NodeQuestion) -> Sequence[Sequence[Node]]:
        """Return the nodes in groups that differ in nothing that is asked, nor in their state; do not change them."""
        groups = self._kept.get(asked)
        if groups is None:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            groups = self._kept[asked] = self._grouped(asked)
        return groups

    def _grouped(self, asked: NodeQuestion) -> list[list[Node]]:
        labels, present, resources = asked
        by_name = "" in labels
        groups: dict[object, list[Node]] = {}
        for node in self.nodes:
            key = (
                tuple(map(node.metadata.labels.get, labels)),
                tuple([label in node.metadata.labels for label in present]),
                node.metadata.name if by_name else "",
                node.spec.taints,
                node.spec.unschedulable,
                is_unready(node),
                tuple(map(node.status.allocatable.get, resources)),
                tuple([devices_of(node, resource) for resource in resources]),
                tells_of_gpus(node) if any(map(is_gpu, resources)) else False,
            )
            groups.setdefault(key, []).append(node)
        return list(groups.values())


def is_unready(node: Node) -> bool:
    return next((each.status != "True" for each in node.status.conditions if each.type == "Ready"), False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulingContext:
    """The objects around a pod at one moment. `nodes` are all nodes of the cluster. `pods` returns all pods and is asked only for a pod
    that has rules about others; `pods_on` returns those of a node and is asked for few nodes only; `room` has the sums of what they
    request. `groups` are the autoscaler's node groups by pool, None when there is no autoscaler or its status is not known; `templates` say
    what a new node of a group looks like, for the groups where that is known, and `templates_own` what its own pods will take of it.
    `claims` are by `namespace/name` and `volumes` by name, and `classes` are the storage classes by name, each None when they are not
    known; `claim_events` returns what is known of a claim's events, oldest first. `holder` says who and what a pod is, "" when the reader
    may not know. `kinds` are of the same nodes, given by who explains several pods."""

    nodes: Sequence[Node]
    pods: Callable[[], Iterable[Pod]]
    pods_on: Callable[[str], Sequence[Pod]]
    room: NodeRoom
    pool_label: str = NODE_POOL
    groups: Mapping[str, NodeGroup] | None = None
    templates: Mapping[str, Node] = field(default_factory=dict)
    templates_own: Mapping[str, ResourceAmounts] = field(default_factory=dict)
    claims: Mapping[str, VolumeClaim] | None = None
    volumes: Mapping[str, Volume] | None = None
    classes: Mapping[str, StorageClass] | None = None
    claim_events: Callable[[VolumeClaim], Sequence[Event]] = lambda claim: ()
    holder: Callable[[Pod], str] = lambda pod: ""
    kinds: NodeKinds | None = None

    def alike(self, asked: NodeQuestion) -> Sequence[Sequence[Node]]:
        """Return the nodes in groups that differ in nothing that is asked."""
        return (self.kinds or NodeKinds(self.nodes)).groups(asked)


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


def tells_of_gpus(node: Node) -> bool:
    """Return whether the node's labels tell of GPUs while it offers none: the cloud sets them before the driver works."""
    return not any(map(is_gpu, offered_by(node))) and not _TELL_OF_GPUS.isdisjoint(node.metadata.labels)


def offered_by(node: Node) -> list[str]:
    """Return the device resources of which the node offers at least one."""
    return [name for name, text in node.status.allocatable.items() if "/" in name and resource_amount(name, text)]


def absent_words(needs: Iterable[str], nodes: Iterable[Node]) -> Mapping[str, str]:
    """Return those of the resources that none of these nodes has, each with words for what lacks: "a GPU", "example.com/fpga"."""
    everywhere = list(nodes)
    absent = {}
    for resource in needs:
        is_special = "/" in resource or resource.startswith("hugepages-")
        offered = (resource_amount(resource, node.status.allocatable.get(resource, "0")) for node in everywhere)
        if is_special and not any(offered) and not any(devices_of(node, resource) for node in everywhere):
            others = any(is_gpu(name) for node in everywhere for name in offered_by(node))
            absent[resource] = _("a GPU") if is_gpu(resource) and not others else resource
    return absent
