"""The default scheduler's filters, in its order and with its messages.

The first filter that objects decides for the node. `helpless` means that removing other pods from the node would not help
(UnschedulableAndUnresolvable in the scheduler's terms), which decides the message about preemption.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grid.sandbox.client import condition_of
from grid.sandbox.controllers.podresources import PODS, Amounts
from grid.sandbox.controllers.scheduling.snapshot import NodeState, host_ports, ports_clash
from grid.sandbox.controllers.selectors import fits_node_selection
from grid.sandbox.controllers.taints import BLOCKING_EFFECTS, tolerates, untolerated

_NOT_READY_TAINT = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
_UNSCHEDULABLE_TAINT = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


@dataclass(frozen=True, slots=True)
class Objection:
    """The refusal of a pod by one node: every reason of the filter that objected."""

    reasons: tuple[str, ...]
    helpless: bool


Filter = Callable[[Mapping[str, Any], Amounts, NodeState], Objection | None]


def objection(pod: Mapping[str, Any], requests: Amounts, state: NodeState) -> Objection | None:
    """Return the first filter's objection, or None when the node takes the pod."""
    for check in FILTERS:
        refusal = check(pod, requests, state)
        if refusal is not None:
            return refusal
    return None


def _unschedulable(pod: Mapping[str, Any], requests: Amounts, state: NodeState) -> Objection | None:
    del requests
    if not state.node.get("spec", {}).get("unschedulable"):
        return None
    if any(tolerates(item, _UNSCHEDULABLE_TAINT) for item in pod["spec"].get("tolerations") or ()):
        return None
    return Objection(("node(s) were unschedulable",), helpless=True)


def _tainted(pod: Mapping[str, Any], requests: Amounts, state: NodeState) -> Objection | None:
    del requests
    taints = [*(state.node.get("spec", {}).get("taints") or ()), *_implied_taints(state.node)]
    if untolerated(pod["spec"].get("tolerations") or (), taints, BLOCKING_EFFECTS):
        return Objection(("node(s) had untolerated taint(s)",), helpless=True)
    return None


def _implied_taints(node: Mapping[str, Any]) -> Sequence[Mapping[str, str]]:
    """Return the not-ready taint for a node that is not ready, because the real taint is set a moment after the condition."""
    ready = condition_of(node, "Ready")
    return () if ready is None or ready.get("status") == "True" else (_NOT_READY_TAINT,)


def _not_selected(pod: Mapping[str, Any], requests: Amounts, state: NodeState) -> Objection | None:
    del requests
    if fits_node_selection(pod, state.node):
        return None
    return Objection(("node(s) didn't match Pod's node affinity/selector",), helpless=True)


def _port_taken(pod: Mapping[str, Any], requests: Amounts, state: NodeState) -> Objection | None:
    del requests
    if not ports_clash(host_ports(pod), state.ports):
        return None
    return Objection(("node(s) didn't have free ports for the requested pod ports",), helpless=False)


def _too_full(pod: Mapping[str, Any], requests: Amounts, state: NodeState) -> Objection | None:
    del pod
    reasons: list[str] = []
    helpless = False
    if len(state.pods) + 1 > state.allocatable.get(PODS, 0):
        reasons.append("Too many pods")
    for resource, amount in requests.items():
        if amount > state.free(resource):
            reasons.append(f"Insufficient {resource}")
            helpless = helpless or amount > state.allocatable.get(resource, 0)
    return Objection(tuple(reasons), helpless) if reasons else None


FILTERS: Sequence[Filter] = (_unschedulable, _tainted, _not_selected, _port_taken, _too_full)
