"""Node pools of the embedded cluster, and the seam behind which its machines come and go.

A pool is a template: what a node of it can hold, which labels and taints it carries, how few and how many there may be. The
autoscaler decides on templates; a `Cloud` (the kubelet's fleet on this machine) makes nodes from them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from grid.labels import INSTANCE_TYPE, NODE_POOL, PLATFORM_NODE, PLATFORM_POOL

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
        """All labels of a node of this pool, those that every kubelet sets included."""
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
    """Where nodes come from. A node's name is also its machine's name."""

    def instances(self, pool: str) -> list[str]:
        """Names of the machines of a pool, those that are still booting included."""
        ...

    async def create(self, pool: str) -> str:
        """Starts a machine and returns its name at once; its node joins some time later. Raises OSError when it cannot."""
        ...

    async def delete(self, node_name: str) -> None:
        """Stops a machine; the caller deletes the node object. A machine that is already gone is no error."""
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
    """The same pools, of which those that may grow at all may grow to `maximum` nodes."""
    return tuple(
        replace(pool, maximum=max(maximum, pool.initial)) if pool.maximum > pool.minimum else pool for pool in pools
    )
