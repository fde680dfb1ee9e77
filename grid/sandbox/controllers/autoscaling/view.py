"""The machines and nodes at the start of one round of autoscaling: which are ready, which are still booting. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from grid.sandbox.client import Object, parse_time
from grid.sandbox.controllers.autoscaling.scaleup import PoolState, pool_state, template_node
from grid.sandbox.controllers.nodehealth import is_usable
from grid.sandbox.controllers.scheduling import Snapshot, build_snapshot
from grid.sandbox.pools import NodePool

_UPCOMING = "upcoming/"


@dataclass(frozen=True, slots=True)
class MachineTimeouts:
    """The time that a machine may take to become a ready node: a new one, and one that was ready before."""

    provision: timedelta
    recovery: timedelta


@dataclass(frozen=True, slots=True)
class AutoscalingView:
    """`machines` by pool as the cloud lists them, `nodes` by name, `not_ready_since` for machines without a ready node."""

    now: datetime
    pools: Sequence[NodePool]
    machines: Mapping[str, Sequence[str]]
    nodes: Mapping[str, Object]
    not_ready_since: Mapping[str, datetime]
    patience: MachineTimeouts

    def ready(self, pool: str) -> list[str]:
        return [name for name in self.machines[pool] if name in self.nodes and is_usable(self.nodes[name])]

    def booting(self, pool: str) -> list[str]:
        """Return the machines that will soon be ready nodes: new ones, and those that were ready a moment ago."""
        since = self.not_ready_since
        return [name for name in self.machines[pool] if name in since and self.now - since[name] < self._patience(name)]

    def _patience(self, name: str) -> timedelta:
        node = self.nodes.get(name)
        born = parse_time(node["metadata"].get("creationTimestamp")) if node else None
        if born is None or self.now - born < self.patience.provision:
            return self.patience.provision
        return self.patience.recovery

    def snapshot(
        self,
        pods: Iterable[Mapping[str, Any]],
        claims: Iterable[Mapping[str, Any]],
        others: Mapping[str, Iterable[Mapping[str, Any]]] | None = None,
    ) -> Snapshot:
        """Return the ready nodes with their pods, and the booting machines as empty nodes; `others` as in `build_snapshot`."""
        ready = [node for node in self.nodes.values() if is_usable(node)]
        upcoming = [
            template_node(pool, f"{_UPCOMING}{name}", self._example(pool.name))
            for pool in self.pools
            for name in self.booting(pool.name)
        ]
        return build_snapshot([*ready, *upcoming], pods, claims, others=others)

    def pool_states(self, grown: Mapping[str, int], in_backoff: Collection[str]) -> list[PoolState]:
        return [
            pool_state(
                pool,
                len(self.machines[pool.name]) + grown.get(pool.name, 0),
                self._example(pool.name),
                in_backoff=pool.name in in_backoff,
            )
            for pool in self.pools
        ]

    def _example(self, pool: str) -> Object | None:
        """Return a real node of the pool, whose allocatable amounts are exact, or None."""
        ready = self.ready(pool)
        return self.nodes[ready[0]] if ready else None


def drop_upcoming(snapshot: Snapshot) -> None:
    """Remove the booting nodes from the snapshot: they cannot take a pod that has to move now."""
    for name in [name for name in snapshot.nodes if name.startswith(_UPCOMING)]:
        del snapshot.nodes[name]
