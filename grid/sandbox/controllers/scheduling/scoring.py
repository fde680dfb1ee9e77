"""The scores of the nodes that take a pod: spread load, keep CPU and memory in balance, respect preferences.

The weights are the default scheduler's; image locality, topology spread and preferences about other pods are left out. Among equal
scores the node with fewer pods wins, then the first by name, so that a decision is reproducible.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from grid.sandbox.client import name_of
from grid.sandbox.controllers.podresources import Amounts
from grid.sandbox.controllers.scheduling.snapshot import NodeState
from grid.sandbox.controllers.selectors import matches_node_term
from grid.sandbox.controllers.taints import untolerated

_MOST = 100.0
_SPREAD_WEIGHT, _BALANCE_WEIGHT, _AFFINITY_WEIGHT, _TAINT_WEIGHT = 1.0, 1.0, 2.0, 3.0
# The assumed requests of a pod that requests nothing, so that such pods spread too.
_ASSUMED = {"cpu": 100, "memory": 200 * 2**20}
_PREFER = frozenset({"PreferNoSchedule"})


def best_node(pod: Mapping[str, Any], requests: Amounts, candidates: Sequence[NodeState]) -> str:
    preferences = [_preference(pod, state) for state in candidates]
    avoidances = [_avoidance(pod, state) for state in candidates]
    most_preferred, most_avoided = max(preferences), max(avoidances)

    def rank(index: int) -> tuple[float, int, str]:
        state = candidates[index]
        score = _SPREAD_WEIGHT * _least_allocated(requests, state) + _BALANCE_WEIGHT * _balanced(requests, state)
        if most_preferred:
            score += _AFFINITY_WEIGHT * _MOST * preferences[index] / most_preferred
        if most_avoided:
            score += _TAINT_WEIGHT * _MOST * (1 - avoidances[index] / most_avoided)
        return (-round(score, 6), len(state.pods), name_of(state.node))

    return candidates[min(range(len(candidates)), key=rank)].name


def _shares(requests: Amounts, state: NodeState) -> list[float]:
    """Return the requested shares of CPU and of memory with the pod on the node."""
    shares = []
    for resource, assumed in _ASSUMED.items():
        offered = state.allocatable.get(resource, 0)
        if not offered:
            continue
        requested = max(state.used.get(resource, 0), assumed * len(state.pods)) + requests.get(resource, assumed)
        shares.append(min(1.0, requested / offered))
    return shares


def _least_allocated(requests: Amounts, state: NodeState) -> float:
    shares = _shares(requests, state)
    return _MOST * (1 - sum(shares) / len(shares)) if shares else 0.0


def _balanced(requests: Amounts, state: NodeState) -> float:
    shares = _shares(requests, state)
    return _MOST * (1 - (max(shares) - min(shares)) / 2) if shares else _MOST


def _preference(pod: Mapping[str, Any], state: NodeState) -> int:
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    return sum(
        term.get("weight", 0)
        for term in affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        if matches_node_term(term.get("preference") or {}, state.node)
    )


def _avoidance(pod: Mapping[str, Any], state: NodeState) -> int:
    taints = state.node.get("spec", {}).get("taints") or ()
    return len(untolerated(pod["spec"].get("tolerations") or (), taints, _PREFER))
