"""Node groups as the cluster autoscaler's status shows them, and which are those of which pool.

The autoscaler writes its status as YAML into the ConfigMap kube-system/cluster-autoscaler-status. Clouds name a group of nodes by a pattern
of their own, which is no pool's name. The nodes tell what belongs together: beside the pool's label they have the cloud's own name of the
group, which is a part of the name in the autoscaler's status.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import yaml

from grid.core.labels import NODE_GROUP_LABELS
from grid.core.regexes import Expression
from grid.kube.objects import ConfigMap
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
            by_name |= {group.name: group for group in map(_group, status.get("nodeGroups") or ())}
        except _UNREADABLE as error:
            logger.warning("unreadable autoscaler status configmap=%s error=%r", config_map.metadata.key, error)
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


# The names of groups, without what clouds put before and behind: managed groups of EKS, those of eksctl and those of AKS.
_HEX = "[0-9a-f]"
_NAMED_WHOLLY = (
    Expression(rf"^eks-(.+)-{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}$"),
    Expression(r"^eksctl-.+-nodegroup-(.+)-NodeGroup-[0-9A-Za-z]+$"),
    Expression(r"^aks-(.+)-[0-9]+-vmss$"),
)
# GKE writes the cluster's name before the pool's, and nobody knows where one ends.
_NAMED_LAST = Expression(rf"^(gke-.+)-{_HEX}{{8}}-grp$")

# A zone behind the name of a group: "1a", "az1", "zone-2", "us-east-1a", "europe-west1-b"; a letter alone may be anything.
_DIRECTION = "(?:north|south|east|west|central){1,2}"
_REGION = f"[a-z]{{2}}-(?:gov-)?{_DIRECTION}-"
_OF_ZONE = Expression(rf"^(.+?)-(?:[a-z]+-{_DIRECTION}[0-9]-[a-f]|(?:{_REGION})?[0-9][a-f]|(?:az|zone)-?[0-9])$")


class PoolName(NamedTuple):
    """A pool, and what the cloud calls its nodes; "" when no node has told that. A pool `has_nodes` unless it is only remembered or waited
    for."""

    pool: str
    cloud: str = ""
    has_nodes: bool = True


@dataclass(eq=False)
class NodeGroups:
    """The groups in a store of the autoscaler's status, by pool. The YAML of a large cluster is long, so it is parsed once for each version
    of it; `names` are asked for again when `version` has changed."""

    config_maps: Store[ConfigMap]
    names: Callable[[], Iterable[PoolName]] = tuple
    version: Callable[[], Hashable] = tuple
    _parsed: tuple[int, Mapping[str, NodeGroup]] = field(default=(-1, {}), init=False)
    _basis: Hashable = field(default=None, init=False)
    _by_pool: Mapping[str, NodeGroup] = field(default_factory=dict, init=False)

    def by_pool(self) -> Mapping[str, NodeGroup]:
        """Return the groups of each pool as if they were one, and those that fit no pool by their own names."""
        basis = self.config_maps.version, self.version()
        if self._basis != basis:
            if self._parsed[0] != self.config_maps.version:
                self._parsed = self.config_maps.version, node_groups(self.config_maps.values())
            self._basis, self._by_pool = basis, groups_by_pool(self._parsed[1], self.names())
        return self._by_pool


def names_as_text(pool: str, labels: Mapping[str, str]) -> str:
    """Return the cloud's names of a node's pool as one text, which an index of nodes can have; "" for a node without a pool."""
    return "\n".join((pool, *(name.cloud for name in cloud_names(pool, labels)))) if pool else ""


def names_from_text(text: str) -> list[PoolName]:
    pool, *clouds = text.split("\n")
    return [PoolName(pool, cloud) for cloud in clouds]


def cloud_names(pool: str, labels: Mapping[str, str], *, has_nodes: bool = True) -> list[PoolName]:
    clouds = [labels[key] for key in NODE_GROUP_LABELS if labels.get(key)] or [""]
    return [PoolName(pool, cloud, has_nodes) for cloud in clouds]


def groups_by_pool(groups: Mapping[str, NodeGroup], names: Iterable[PoolName]) -> dict[str, NodeGroup]:
    """Return the groups of each pool as if they were one. A group that fits no pool, or more than one, keeps its own name: it may be a pool
    that has no node now."""
    pools_of, pools, known = defaultdict[str, set[str]](set), set[str](), set(groups)
    for pool, cloud, has_nodes in names:
        pools.add(pool)
        if cloud:
            pools_of[cloud].add(pool)
        if cloud or has_nodes:
            known.add(pool)
    # Only of a pool of which no node tells anything is the name itself looked for: "default-gpu" may be another pool than "default".
    untold = pools - known
    parts = defaultdict[str, list[NodeGroup]](list)
    for group in groups.values():
        parts[_pool_of(group.name, pools, pools_of, untold)].append(group)
    return {pool: together(pool, each) for pool, each in parts.items()}


def together(name: str, groups: Sequence[NodeGroup]) -> NodeGroup:
    """Return several groups of one pool, such as one a zone, as one. It is backed off when each that may grow is."""
    if len(groups) == 1:
        return replace(groups[0], name=name)
    growing = [group for group in groups if group.target < group.maximum] or groups
    states = {group.is_backed_off for group in growing}
    is_backed_off = states.pop() if len(states) == 1 else None if states == {None, True} else False
    return NodeGroup(
        name,
        minimum=sum(group.minimum for group in groups),
        maximum=sum(group.maximum for group in groups),
        target=sum(group.target for group in groups),
        is_backed_off=is_backed_off,
        error=next((group.error for group in growing if group.error and is_backed_off), ""),
    )


def _pool_of(group: str, pools: set[str], pools_of: Mapping[str, set[str]], untold: set[str]) -> str:
    """Return the pool that a group is of, by an equal name, by what the cloud calls its nodes, or by a pool's name within the group's; else
    the group's name."""
    if group in pools:
        return group
    if (cloud := _within(group, pools_of)) is not None:
        (pool, *others) = pools_of[cloud]
        return group if others else pool
    return _within(group, untold, is_exact=False) or _zonal(group, pools_of) or group


def _zonal(group: str, pools_of: Mapping[str, set[str]]) -> str | None:
    """Return the pool of which other zones' groups have nodes, such as `workers-1a` beside `workers-1b`; None when that is not certain."""
    of_zone = _OF_ZONE.match(_whole(group) or group.rsplit("/", 1)[-1])
    if of_zone is None:
        return None
    matches = ((_OF_ZONE.match(cloud), pools) for cloud, pools in pools_of.items())
    siblings = set().union(*(pools for match, pools in matches if match is not None and match[1] == of_zone[1]))
    return siblings.pop() if len(siblings) == 1 and all(_is_part(pool, of_zone[1]) for pool in siblings) else None


def _whole(group: str) -> str | None:
    """Return what the cloud was asked to call the group; None when its name has no known form."""
    short = group.rsplit("/", 1)[-1]
    return next((match[1] for match in (form.match(short) for form in _NAMED_WHOLLY) if match), None)


def _within(group: str, names: Iterable[str], *, is_exact: bool = True) -> str | None:
    """Return the only name that the group's has as a part, or the longest, which has all others in it; None when there is none. With
    `is_exact`, a group whose name is of a known form has only the whole of what the cloud wrote there."""
    if (whole := _whole(group)) is not None:
        fitting = [name for name in names if (name == whole if is_exact else _is_part(name, whole))]
    elif last := _NAMED_LAST.match(group.rsplit("/", 1)[-1]):
        fitting = [name for name in names if last[1].endswith(f"-{name}")]
    else:
        fitting = [name for name in names if _is_part(name, group)]
    longest = max(fitting, key=len, default=None)
    return longest if longest is not None and all(_is_part(name, longest) for name in fitting) else None


def _is_part(name: str, text: str) -> bool:
    """Return whether the text has the name as one or more of its parts between dashes or slashes."""
    return f"-{name}-" in f"-{text.replace('/', '-')}-"
