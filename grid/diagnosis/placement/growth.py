"""What the autoscaler may still do for a pod: the node group of its pool, and whether a new node would take it."""

from collections.abc import Sequence
from dataclasses import dataclass

from grid.core.translation import gettext as _, ngettext
from grid.diagnosis.diagnosis import SCALING, latest
from grid.diagnosis.placement.obstacles import NodeSituation, Obstacle, Placement
from grid.diagnosis.placement.rows import count
from grid.diagnosis.resources import ResourceAmounts
from grid.diagnosis.scheduling import BACKOFF, scale_up_failures
from grid.kube.objects import Event, Node
from grid.kube.pools import NodeGroup

# What happened to a node; a new one like it does not have it.
_NOT_ON_A_NEW_NODE = frozenset({"not_ready", "broken", "cordon", "leaving", "full", "port", "apart"})
# What a template does not tell: its labels are those that all nodes of the pool have, without those of a zone or of one node.
_NOT_TOLD = frozenset({"volume", "affinity", "label"})


@dataclass(frozen=True, slots=True)
class Growth:
    """`group` is None when the autoscaler is not known to have one for the pool. `fits` says whether a new node would take the pod, None
    when that is not known; `is_small` that one would not because of its size. `refused` is the autoscaler's last word on the pod, "" when
    it did not refuse, and `error` is the cloud's when it delivered no node."""

    group: NodeGroup | None = None
    present: int = 0
    fits: bool | None = None
    refused: str = ""
    is_small: bool = False
    errors: tuple[str, ...] = ()

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
        is_unfit = self.at_maximum or self.fits is False or self.is_too_small
        return bool(self.group or self.errors) and not is_unfit

    @property
    def is_too_small(self) -> bool:
        """A new node would be too small: by its template, or by the autoscaler's own trial, whose counts are of node groups. It tries the
        pod on no group that is full or backed off."""
        if self.fits is not None:
            return self.is_small
        is_full = self.at_maximum if self.group is not None else "max node group size" in self.refused
        return "Insufficient" in self.refused and not is_full and not self.is_out_of_stock

    @property
    def is_out_of_stock(self) -> bool:
        """The cloud failed to deliver a node of the group: by its status, for the autoscaler's message counts groups of any pool."""
        if self.group is not None and self.group.is_backed_off is not None:
            return self.group.is_backed_off
        return bool(self.errors) or BACKOFF in self.refused

    @property
    def words(self) -> str:
        """Return what the group still may do, as a clause."""
        if self.group is None:
            return ""
        if self.is_starting:
            more = self.group.target - self.present
            return ngettext("{count:,} more node is starting", "{count:,} more nodes are starting", more)
        clause = _("the autoscaler may start one ({target:,} of at most {maximum:,} exist)")
        if self.present:
            clause = _("the autoscaler may start another ({target:,} of at most {maximum:,} exist)")
        return clause.format(target=self.group.target, maximum=self.group.maximum)


def growth_of(placement: Placement, pool_nodes: Sequence[NodeSituation], events: Sequence[Event]) -> Growth:
    """Return what is known of the pool's growth. New nodes are like one that the pool has and that would take the pod, or else like the
    template: a pool may have nodes of several sizes."""
    scheduling, pool = placement.scheduling, placement.pool
    refusal = latest(events, *SCALING)
    refused = refusal.message if refusal is not None and refusal.reason == "NotTriggerScaleUp" else ""
    group = (scheduling.groups or {}).get(pool) if pool else None
    errors = scale_up_failures(events)
    template = scheduling.templates.get(pool) if pool else None
    fits: bool | None = None
    is_small = False
    nodes = [node for situation in pool_nodes for node in situation.nodes]
    if any(situation.kinds <= _NOT_ON_A_NEW_NODE for situation in pool_nodes):
        fits = True
    elif template is not None:
        fits, is_small = _on_a_new_node(placement, template, _overhead(placement, nodes))
    # A DaemonSet whose pods have a port that the pod needs on each present node has it on a new one, too.
    if template is not None and nodes and all(map(placement.own_take_its_port, nodes)):
        fits = False
    is_known = group is not None or pool or latest(events, "TriggeredScaleUp") is not None
    if not errors and is_known and ((group and group.is_backed_off) or BACKOFF in refused):
        errors = (group.error if group else "",)
    return Growth(group, count(pool_nodes), fits, refused, is_small, errors)


def _on_a_new_node(placement: Placement, template: Node, own: ResourceAmounts) -> tuple[bool | None, bool]:
    """Return whether the template takes the pod, None when that is not known, and whether it is too small."""
    kept_off = placement.when_empty(template, own)
    certain = {obstacle.kind for obstacle in kept_off if not _is_untold(obstacle, template)}
    if certain:
        return False, "too_small" in certain
    return (None if kept_off else True), False


def _is_untold(obstacle: Obstacle, template: Node) -> bool:
    """Return whether a new node may be without this obstacle, in another zone for example, or by a label that is not told."""
    if obstacle.kind == "selector":
        return obstacle.subject.partition("=")[0] not in template.metadata.labels
    return obstacle.kind in _NOT_TOLD


def _overhead(placement: Placement, nodes: Sequence[Node]) -> ResourceAmounts:
    """Return what the pods of DaemonSets and the static pods will take of a new node: the least that they take of a present one, or what
    they took of the template. A DaemonSet of some nodes only must not make the new one too small."""
    own = [placement.scheduling.room.own(node.metadata.name) for node in nodes]
    if not own:
        return placement.scheduling.templates_own.get(placement.pool, {})
    return {name: min(each.get(name, 0) for each in own) for name in own[0]}
