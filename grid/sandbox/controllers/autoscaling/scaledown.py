"""Scale-down: which nodes are unneeded, and why the others stay. Pure.

A node is unneeded when its requests are below the threshold of its allocatable amounts (the largest share of CPU, memory and
accelerators counts). Besides, all its pods may and can move elsewhere, no annotation disables its removal, and its pool keeps its minimum.
Two nodes never count on each other: a node that is to take a pod of another stays.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grid.core.labels import SAFE_TO_EVICT, SCALE_DOWN_DISABLED
from grid.sandbox.client import annotations_of, controller_of, is_terminating, labels_of, namespace_of, uid_of
from grid.sandbox.controllers.podresources import pod_requests
from grid.sandbox.controllers.scheduling import NodeState, Snapshot
from grid.sandbox.controllers.scheduling.question import Question
from grid.sandbox.controllers.selectors import matches_labels

_MIRROR_POD = "kubernetes.io/config.mirror"


@dataclass(frozen=True, slots=True)
class Removable:
    """A node that the cloud can delete, and its pool."""

    name: str
    pool: str


@dataclass(frozen=True, slots=True)
class NodeVerdict:
    """The decision on one node. `reason` says why it stays; empty: it is unneeded, and the pods in `moving` must leave first."""

    node: str
    pool: str
    utilization: float
    reason: str = ""
    moving: tuple[Mapping[str, Any], ...] = ()

    @property
    def unneeded(self) -> bool:
        return not self.reason


def utilization(state: NodeState) -> float:
    """Return the largest requested share of CPU, memory and accelerators."""
    measured = [name for name in state.allocatable if name in ("cpu", "memory") or "/" in name]
    shares = [state.used.get(name, 0) / state.allocatable[name] for name in measured if state.allocatable[name] > 0]
    return max(shares, default=0.0)


def plan_scale_down(
    snapshot: Snapshot,
    nodes: Sequence[Removable],
    *,
    spare: Mapping[str, int],
    budgets: Iterable[Mapping[str, Any]],
    threshold: float,
    known: Sequence[str] = (),
) -> list[NodeVerdict]:
    """Return a verdict for each node.

    `spare` is how many nodes each pool has above its minimum; `known` are the nodes found unneeded before, longest
    first: they are judged first, so that a node's waiting time is not lost to an equal one. The snapshot is used up.
    """
    seniority = {name: index for index, name in enumerate(known)}
    present = [item for item in nodes if item.name in snapshot.nodes]
    order = sorted(
        present,
        key=lambda item: (seniority.get(item.name, len(seniority)), utilization(snapshot.nodes[item.name]), item.name),
    )
    allowed = _allowed_disruptions(budgets)
    left = dict(spare)
    used: set[str] = set()
    verdicts = []
    for item in order:
        state = snapshot.nodes[item.name]
        share = utilization(state)
        moving = [pod for pod in state.pods if not _stays_behind(pod)]
        reason = _objection(state, share, threshold, moving, allowed)
        if not reason and item.name in used:
            reason = "it takes pods of a node that is to be removed"
        if not reason and left.get(item.pool, 0) <= 0:
            reason = "its pool is at its minimum"
        if not reason and not _move(item.name, moving, snapshot, used):
            reason = "its pods fit nowhere else"
        if reason:
            verdicts.append(NodeVerdict(item.name, item.pool, share, reason))
            continue
        left[item.pool] -= 1
        _spend(moving, allowed)
        verdicts.append(NodeVerdict(item.name, item.pool, share, moving=tuple(moving)))
    return verdicts


def why_immovable(pod: Mapping[str, Any]) -> str:
    """Return why the autoscaler may not move a pod, or "" when it may."""
    wish = annotations_of(pod).get(SAFE_TO_EVICT)
    if wish == "true":
        return ""
    if wish == "false":
        return f"pod {pod['metadata']['name']} is annotated as not safe to evict"
    if controller_of(pod) is None:
        return f"pod {pod['metadata']['name']} has no controller that would make it again"
    return ""


def _stays_behind(pod: Mapping[str, Any]) -> bool:
    """Return True for pods of a DaemonSet and static pods: they belong to the node and end with it."""
    owner = controller_of(pod)
    return _MIRROR_POD in annotations_of(pod) or (owner is not None and owner.get("kind") == "DaemonSet")


def _objection(
    state: NodeState, share: float, threshold: float, moving: Sequence[Mapping[str, Any]], allowed: Sequence["_Budget"]
) -> str:
    if annotations_of(state.node).get(SCALE_DOWN_DISABLED) == "true":
        return "its removal is disabled by an annotation"
    if share >= threshold:
        return f"its requests are {share:.0%} of what it offers"
    for pod in moving:
        if is_terminating(pod):
            return f"pod {pod['metadata']['name']} is still ending"
        why = why_immovable(pod)
        if why:
            return why
    for budget in allowed:
        wanted = sum(budget.covers(pod) for pod in moving)
        if wanted > budget.left:
            return f"the disruption budget {budget.name} allows {budget.left} more"
    return ""


@dataclass(slots=True)
class _Budget:
    name: str
    namespace: str
    selector: Mapping[str, Any] | None
    left: int

    def covers(self, pod: Mapping[str, Any]) -> bool:
        return namespace_of(pod) == self.namespace and matches_labels(self.selector, labels_of(pod))


def _allowed_disruptions(budgets: Iterable[Mapping[str, Any]]) -> list[_Budget]:
    return [
        _Budget(
            name=item["metadata"]["name"],
            namespace=namespace_of(item),
            selector=item["spec"].get("selector"),
            left=int(item.get("status", {}).get("disruptionsAllowed") or 0),
        )
        for item in budgets
    ]


def _spend(moving: Sequence[Mapping[str, Any]], allowed: Sequence[_Budget]) -> None:
    for budget in allowed:
        budget.left -= sum(budget.covers(pod) for pod in moving)


def _move(name: str, moving: Sequence[Mapping[str, Any]], snapshot: Snapshot, used: set[str]) -> bool:
    """Remove the node from the snapshot and place its pods elsewhere; restore everything when one fits nowhere."""
    state = snapshot.nodes.pop(name)
    before: dict[str, NodeState] = {}
    for pod in moving:
        requests = pod_requests(pod)
        question = Question(pod, requests, snapshot)
        target = next((item for item in snapshot.nodes.values() if question.objection(item) is None), None)
        if target is None:
            snapshot.nodes.update(before)
            snapshot.nodes[name] = state
            return False
        before.setdefault(target.name, target.copy())
        target.place(pod, requests)
    used.update(before)
    return True


def pods_to_move(pods: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the pods of a node that must be evicted before its removal, each uid once."""
    return list({uid_of(pod): pod for pod in pods if not _stays_behind(pod)}.values())
