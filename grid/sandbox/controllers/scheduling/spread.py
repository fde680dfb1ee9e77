"""Topology spread constraints: DoNotSchedule as a filter, ScheduleAnyway as a score."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grid.sandbox.client import is_terminating, labels_of, namespace_of
from grid.sandbox.controllers.scheduling.affinity import narrowed
from grid.sandbox.controllers.scheduling.filters import Objection
from grid.sandbox.controllers.scheduling.snapshot import NodeState, Snapshot
from grid.sandbox.controllers.selectors import fits_node_selection, matches_labels
from grid.sandbox.controllers.taints import BLOCKING_EFFECTS, untolerated

_NO_LABEL = Objection(("node(s) didn't match pod topology spread constraints (missing required label)",), helpless=True)
_UNEVEN = Objection(("node(s) didn't match pod topology spread constraints",), helpless=False)
_HOST = "kubernetes.io/hostname"
_MOST = 100.0


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint of a pod; of its domains only those count that the two policies let in."""

    key: str
    max_skew: int
    min_domains: int
    selector: Mapping[str, Any] | None
    honors_affinity: bool
    honors_taints: bool

    def counts_node(self, pod: Mapping[str, Any], state: NodeState) -> bool:
        if self.honors_affinity and not fits_node_selection(pod, state.node):
            return False
        if not self.honors_taints:
            return True
        taints = state.node.get("spec", {}).get("taints") or ()
        return not untolerated(pod["spec"].get("tolerations") or (), taints, BLOCKING_EFFECTS)

    def pods_on(self, namespace: str, state: NodeState) -> int:
        return sum(
            namespace_of(other) == namespace
            and not is_terminating(other)
            and matches_labels(self.selector, labels_of(other))
            for other in state.pods
        )


def constraints_of(pod: Mapping[str, Any], when: str) -> list[Constraint]:
    return [
        Constraint(
            item.get("topologyKey", ""),
            item.get("maxSkew", 1),
            item.get("minDomains", 1),
            narrowed(pod, item),
            item.get("nodeAffinityPolicy", "Honor") == "Honor",
            item.get("nodeTaintsPolicy", "Ignore") == "Honor",
        )
        for item in pod["spec"].get("topologySpreadConstraints") or ()
        if item.get("whenUnsatisfiable", "DoNotSchedule") == when
    ]


class Evenness:
    """How many matching pods each domain has, for the constraints that a pod insists on."""

    def __init__(self, pod: Mapping[str, Any], snapshot: Snapshot) -> None:
        self._labels = labels_of(pod)
        self._constraints = constraints_of(pod, "DoNotSchedule")
        self._counts = _count(pod, self._constraints, snapshot.nodes.values()) if self._constraints else []

    def objection(self, state: NodeState) -> Objection | None:
        labels = labels_of(state.node)
        for constraint, counts in zip(self._constraints, self._counts, strict=True):
            if constraint.key not in labels:
                return _NO_LABEL
            fewest = min(counts.values(), default=math.inf) if len(counts) >= constraint.min_domains else 0
            itself = matches_labels(constraint.selector, self._labels)
            if counts[labels[constraint.key]] + itself - fewest > constraint.max_skew:
                return _UNEVEN
        return None


def _count(
    pod: Mapping[str, Any], constraints: Sequence[Constraint], states: Iterable[NodeState]
) -> list[Counter[str]]:
    counts: list[Counter[str]] = [Counter() for _ in constraints]
    namespace = namespace_of(pod)
    for state in states:
        labels = labels_of(state.node)
        if any(constraint.key not in labels for constraint in constraints):
            continue
        for constraint, known in zip(constraints, counts, strict=True):
            if constraint.counts_node(pod, state):
                known[labels[constraint.key]] += constraint.pods_on(namespace, state)
    return counts


def evenness_scores(pod: Mapping[str, Any], snapshot: Snapshot, candidates: Sequence[NodeState]) -> list[float] | None:
    """Return 0 to 100 for each candidate, the most where the fewest pods are, or None when the pod has no such wish."""
    constraints = constraints_of(pod, "ScheduleAnyway")
    if not constraints:
        return None
    counts = _count(pod, constraints, snapshot.nodes.values())
    eligible = [all(item.key in labels_of(state.node) for item in constraints) for state in candidates]
    crowds = [0.0] * len(candidates)
    for constraint, known in zip(constraints, counts, strict=True):
        by_host = constraint.key == _HOST
        values = {
            labels_of(state.node)[constraint.key] for state, fine in zip(candidates, eligible, strict=True) if fine
        }
        weight = math.log((sum(eligible) if by_host else len(values)) + 2)
        for index, state in enumerate(candidates):
            if eligible[index]:
                crowds[index] += known[labels_of(state.node)[constraint.key]] * weight + constraint.max_skew - 1
    among = [round(crowd) for crowd, fine in zip(crowds, eligible, strict=True) if fine]
    most, least = max(among, default=0), min(among, default=0)
    return [
        0.0 if not fine else _MOST if not most else _MOST * (most + least - round(crowd)) / most
        for crowd, fine in zip(crowds, eligible, strict=True)
    ]
