"""What a pod without a node is compared with: the nodes and what runs there, the node groups that may grow, and the volumes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from grid.core.labels import NODE_POOL
from grid.diagnosis.placement.alike import NodeKinds, NodeQuestion
from grid.diagnosis.resources import ResourceAmounts
from grid.diagnosis.room import NodeRoom
from grid.kube.objects import Event, Node, Pod, StorageClass, Volume, VolumeClaim
from grid.kube.pools import NodeGroup


def _nobody(pod: Pod) -> str:
    return ""


def _no_events(claim: VolumeClaim) -> Sequence[Event]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulingContext:
    """The objects around a pod at one moment.

    `nodes` are all nodes of the cluster. `pods` returns all pods and is asked only for a pod that has rules about others; `pods_on` returns
    those of a node and is asked for few nodes only; `room` has the sums of what they request. `groups` are the autoscaler's node
    groups by pool, None when there is no autoscaler or its status is not known; `templates` say what a new node of a group looks like, for
    the groups where that is known, and `templates_own` what its own pods will take of it. `claims` are by `namespace/name` and `volumes`
    by name, and `classes` are the storage classes by name, each None when they are not known; `claim_events` returns what is known of a
    claim's events, oldest first. `holder` says who and what a pod is, "" when the reader may not know. `kinds` are of the same
    nodes, given by who explains several pods.
    """

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
    claim_events: Callable[[VolumeClaim], Sequence[Event]] = _no_events
    holder: Callable[[Pod], str] = _nobody
    kinds: NodeKinds | None = None

    def alike(self, asked: NodeQuestion) -> Sequence[Sequence[Node]]:
        """Return the nodes in groups that differ in nothing that is asked."""
        return (self.kinds or NodeKinds(self.nodes)).groups(asked)
