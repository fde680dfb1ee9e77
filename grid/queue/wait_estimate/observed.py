"""What the cluster shows of executions that start, for the estimate of how long that takes; plain data."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from grid.queue.wait_estimate.capacity import RoomFacts


@dataclass(frozen=True, slots=True)
class OnNode:
    """A pod that starts on its node: for how many `seconds` it has been there, of which its image was pulled for `pulling`. `has_image` is
    None when the node does not tell, and `size` is the image's in bytes, None when no node tells."""

    image: str
    seconds: float
    pulling: float = 0.0
    has_image: bool | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Observed:
    """`new_nodes` says of an execution that starts whether it needs a node that is not there yet, or finds one; nothing of those that wait
    for room, and of others. `on_node` has those whose first pod is on a node."""

    new_nodes: Mapping[str, bool] = field(default_factory=dict)
    on_node: Mapping[str, OnNode] = field(default_factory=dict)
    room: RoomFacts = field(default_factory=RoomFacts)
