"""What the autoscaler may still do for a pod: the node group of its pool, and whether a new node would take it."""

from collections.abc import Sequence
from dataclasses import dataclass

from grid.diagnosis.diagnosis import latest
from grid.diagnosis.placement.obstacles import NodeSituation, Placement
from grid.diagnosis.placement.rows import count
from grid.diagnosis.resources import ResourceAmounts
from grid.kube.objects import Event
from grid.watch.pools import NodeGroup
from grid.wording import plural

_BACKOFF = "in backoff after failed scale-up"
# What happened to a node; a new one like it does not have it.
_NOT_ON_A_NEW_NODE = frozenset({"not_ready", "cordon", "leaving", "full", "port", "apart"})


@dataclass(frozen=True, slots=True)
class Growth:
    """`group` is None when the autoscaler is not known to have one for the pool. `fits` says whether a new node would take the pod, None
    when the size of new nodes is not known. `refused` is the autoscaler's last word on the pod, "" when it did not refuse."""

    group: NodeGroup | None = None
    present: int = 0
    fits: bool | None = None
    refused: str = ""

    @property
    def is_missing(self) -> bool:
        """The group is to have more nodes than there are."""
        return self.group is not None and self.group.target > self.present

    @property
    def is_starting(self) -> bool:
        return self.is_missing and self.fits is not False

    @property
    def at_maximum(self) -> bool:
        return self.group is not None and self.group.target >= self.group.maximum

    @property
    def may_help(self) -> bool:
        """Another node is allowed, and nothing known keeps the pod off it."""
        return self.group is not None and not self.at_maximum and self.fits is not False and not self.is_too_small

    @property
    def is_too_small(self) -> bool:
        """A new node would be too small: by its template, or by the autoscaler's own trial, whose counts are of node groups."""
        if self.fits is not None:
            return not self.fits
        return "Insufficient" in self.refused and "max node group size" not in self.refused and not self.is_out_of_stock

    @property
    def is_out_of_stock(self) -> bool:
        return _BACKOFF in self.refused

    @property
    def words(self) -> str:
        """Return what the group still may do, as a clause."""
        if self.group is None:
            return ""
        if self.is_starting:
            more = self.group.target - self.present
            return f"{plural(more, 'more node')} {'is' if more == 1 else 'are'} starting"
        one = "another" if self.present else "one"
        return f"the autoscaler may start {one} ({self.group.target:,} of at most {self.group.maximum:,} exist)"


def growth_of(pool: str, placement: Placement, pool_nodes: Sequence[NodeSituation], events: Sequence[Event]) -> Growth:
    """Return what is known of the pool's growth. New nodes are like the template, or else like those that the pool has."""
    around = placement.around
    refusal = latest(events, "TriggeredScaleUp", "NotTriggerScaleUp")
    refused = refusal.message if refusal is not None and refusal.reason == "NotTriggerScaleUp" else ""
    group = (around.groups or {}).get(pool) if pool else None
    template = around.templates.get(pool) if pool else None
    fits: bool | None = None
    if template is not None:
        fits = not placement.when_empty(template, _overhead(placement, pool_nodes)) and not _has_no_port(
            placement, pool_nodes
        )
    elif any(one.kinds <= _NOT_ON_A_NEW_NODE for one in pool_nodes):
        fits = True
    return Growth(group, count(pool_nodes), fits, refused)


def _has_no_port(placement: Placement, pool_nodes: Sequence[NodeSituation]) -> bool:
    """Return whether the pods of a DaemonSet have a port that the pod needs on each present node, and so on a new one."""
    nodes = [node for one in pool_nodes for node in one.nodes]
    return bool(nodes) and all(placement.own_take_its_port(node) for node in nodes)


def _overhead(placement: Placement, pool_nodes: Sequence[NodeSituation]) -> ResourceAmounts:
    """Return what the pods of DaemonSets and the static pods will take of a new node: the least that they take of a present one. A
    DaemonSet of some nodes only must not make the new one too small."""
    own = [placement.around.room.own(node.metadata.name) for one in pool_nodes for node in one.nodes]
    return {name: min(each.get(name, 0) for each in own) for name in own[0]} if own else {}
