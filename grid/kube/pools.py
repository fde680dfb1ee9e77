"""Node groups as the cluster autoscaler's status shows them; which pool they are of says `grid.kube.poolgroups`.

The autoscaler writes its status as YAML into the ConfigMap kube-system/cluster-autoscaler-status.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import yaml

from grid.kube.objects import ConfigMap

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
