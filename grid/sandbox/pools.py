"""Node pools of the embedded cluster, and the interface to the provider of its machines.

A pool is a template of nodes: capacity, labels, taints, minimum and maximum number. The autoscaler decides on templates; a
`Cloud` (the kubelet's fleet on this machine) makes nodes from them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from grid.core.labels import INSTANCE_TYPE, NODE_POOL, PLATFORM_NODE, PLATFORM_POOL

TaintEffect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


@dataclass(frozen=True, slots=True)
class PoolTaint:
    key: str
    value: str
    effect: TaintEffect


@dataclass(frozen=True, slots=True)
class NodePool:
    """A template of nodes. `capacity` maps resource names to quantities, as a node's status does."""

    name: str
    instance_type: str
    capacity: Mapping[str, str]
    minimum: int
    maximum: int
    initial: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[PoolTaint] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.minimum <= self.initial <= self.maximum:
            raise ValueError(f"pool {self.name}: needs 0 <= minimum <= initial <= maximum")

    def node_labels(self, node_name: str) -> dict[str, str]:
        """Return all labels of a node of this pool, including those that every kubelet sets."""
        return {
            "kubernetes.io/hostname": node_name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            INSTANCE_TYPE: self.instance_type,
            NODE_POOL: self.name,
            **self.labels,
        }

    def node_taints(self) -> list[dict[str, str]]:
        return [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in self.taints]


class Cloud(Protocol):
    """The provider of machines. A node's name is also its machine's name."""

    def instances(self, pool: str) -> list[str]:
        """Return the names of a pool's machines, including those that are still booting."""
        ...

    async def create(self, pool: str) -> str:
        """Start a machine and return its name at once; its node joins later. Raise OSError when that fails."""
        ...

    async def delete(self, node_name: str) -> None:
        """Stop a machine, if it still exists; the caller deletes the node object."""
        ...


DEFAULT_POOLS: tuple[NodePool, ...] = (
    NodePool(
        name=PLATFORM_POOL,
        instance_type="m5.2xlarge",
        capacity={"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"},
        minimum=1,
        maximum=1,
        initial=1,
        labels={PLATFORM_NODE: "true"},
    ),
    NodePool(
        name="default",
        instance_type="m5.2xlarge",
        capacity={"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"},
        minimum=1,
        maximum=5,
        initial=2,
    ),
    NodePool(
        name="default-gpu",
        instance_type="g4dn.xlarge",
        capacity={"cpu": "4", "memory": "16Gi", "ephemeral-storage": "100Gi", "pods": "110", "nvidia.com/gpu": "1"},
        minimum=0,
        maximum=2,
        initial=0,
        taints=(PoolTaint("nvidia.com/gpu", "present", "NoSchedule"),),
    ),
)


def with_maximum(pools: Sequence[NodePool], maximum: int) -> tuple[NodePool, ...]:
    """Return the pools with `maximum`, or the initial number if larger, as the maximum of those that may grow."""
    return tuple(
        replace(pool, maximum=max(maximum, pool.initial)) if pool.maximum > pool.minimum else pool for pool in pools
    )
