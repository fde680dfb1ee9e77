"""Node pools as the cluster shows them: labels of nodes, and node groups in the cluster autoscaler's status.

The autoscaler writes its status as YAML into the ConfigMap kube-system/cluster-autoscaler-status. A pool that is scaled to zero
is known only from there, when its node group is named like the pool.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from grid.core.labels import NODE_POOL
from grid.kube.objects import ConfigMap, Node
from grid.kube.store import Store

logger = logging.getLogger(__name__)

AUTOSCALER_NAMESPACE = "kube-system"
AUTOSCALER_STATUS = "cluster-autoscaler-status"
_UNREADABLE = (yaml.YAMLError, AttributeError, LookupError, TypeError, ValueError, ArithmeticError, RecursionError)


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """What the autoscaler may do to one group of nodes; `target` is how many it wants now. `is_backed_off` says that the cloud failed to
    deliver a node, so that it is not asked for a while, with the cloud's `error`; None when the status tells nothing of that."""

    name: str
    minimum: int
    maximum: int
    target: int
    is_backed_off: bool | None = None
    error: str = ""


def node_groups(config_maps: Iterable[ConfigMap]) -> dict[str, NodeGroup]:
    """Groups by name; what cannot be read is left out, because the pages work without it."""
    by_name: dict[str, NodeGroup] = {}
    for config_map in config_maps:
        try:
            status = yaml.safe_load(config_map.data.get("status", "")) or {}
            groups = [_group(entry) for entry in status.get("nodeGroups") or ()]
        except _UNREADABLE as error:
            logger.warning("unreadable autoscaler status configmap=%s error=%r", config_map.metadata.key, error)
            continue
        by_name.update({group.name: group for group in groups})
    return by_name


class NodeGroups:
    """The groups in a store of the autoscaler's status, parsed once for each version of it: the YAML of a large cluster is long."""

    def __init__(self, config_maps: Store[ConfigMap]) -> None:
        self._config_maps = config_maps
        self._version = -1
        self._groups: Mapping[str, NodeGroup] = {}

    def by_name(self) -> Mapping[str, NodeGroup]:
        if self._version != self._config_maps.version:
            self._version = self._config_maps.version
            self._groups = node_groups(self._config_maps.values())
        return self._groups


def known_pools(nodes: Iterable[Node], groups: Iterable[str], *, label: str = NODE_POOL) -> frozenset[str]:
    """Pools that have nodes now, or may get some."""
    with_nodes = {node.metadata.labels[label] for node in nodes if node.metadata.labels.get(label)}
    return frozenset(with_nodes.union(groups))


def _group(entry: dict[str, Any]) -> NodeGroup:
    health, scale_up = entry["health"], _mapping(entry.get("scaleUp"))
    return NodeGroup(
        name=str(entry["name"]),
        minimum=int(health["minSize"]),
        maximum=int(health["maxSize"]),
        target=int(health.get("cloudProviderTarget", 0)),
        is_backed_off=None if "status" not in scale_up else scale_up["status"] == "Backoff",
        error=str(_mapping(scale_up.get("backoffInfo")).get("errorMessage") or ""),
    )


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
