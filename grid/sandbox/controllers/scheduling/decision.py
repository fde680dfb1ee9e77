"""One scheduling decision: a node, or the reason why there is none, in the default scheduler's exact words."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from grid.sandbox.client import is_terminating, name_of, namespace_of
from grid.sandbox.controllers.ephemeral import ownership_problem
from grid.sandbox.controllers.podresources import Amounts, pod_requests
from grid.sandbox.controllers.scheduling.filters import Objection, objection
from grid.sandbox.controllers.scheduling.scoring import best_node
from grid.sandbox.controllers.scheduling.snapshot import NodeState, Snapshot, build_snapshot
from grid.sandbox.controllers.selectors import matches_requirement, required_node_terms

DEFAULT_SCHEDULER = "default-scheduler"
_NOT_HELPFUL = "Preemption is not helpful for scheduling"
_NO_VICTIMS = "No preemption victims found for incoming pod"
_OUTSIDE_FIELDS = "node(s) didn't satisfy plugin(s) [NodeAffinity]"


@dataclass(frozen=True, slots=True)
class SchedulingDecision:
    """A decision: `node`, or `message` with the reason why there is none. Both are empty for a pod that is not to be scheduled."""

    node: str = ""
    message: str = ""


def concerns_us(pod: Mapping[str, Any]) -> bool:
    """Return True for a pod that is pending, unassigned, not gated, not terminating, and for the default scheduler."""
    spec = pod["spec"]
    return (
        not spec.get("nodeName")
        and not spec.get("schedulingGates")
        and (spec.get("schedulerName") or DEFAULT_SCHEDULER) == DEFAULT_SCHEDULER
        and not is_terminating(pod)
        and pod.get("status", {}).get("phase", "Pending") == "Pending"
    )


def schedule(
    pod: Mapping[str, Any],
    nodes: Iterable[Mapping[str, Any]],
    pods: Iterable[Mapping[str, Any]],
    claims: Iterable[Mapping[str, Any]] = (),
) -> SchedulingDecision:
    """Return the decision for one pod, from raw objects."""
    if not concerns_us(pod):
        return SchedulingDecision()
    return decide(pod, pod_requests(pod), build_snapshot(nodes, pods, claims))


def decide(pod: Mapping[str, Any], requests: Amounts, snapshot: Snapshot) -> SchedulingDecision:
    count = len(snapshot.nodes)
    if not count:
        return SchedulingDecision(message="no nodes available to schedule pods")
    problem = claim_problem(pod, snapshot)
    if problem:
        return SchedulingDecision(message=f"0/{count} nodes are available: {problem}. not found")
    named = _named_nodes(pod)
    objections: list[Objection] = []
    candidates = []
    for name, state in snapshot.nodes.items():
        if named is not None and name not in named:
            objections.append(Objection((_OUTSIDE_FIELDS,), helpless=True))
            continue
        found = objection(pod, requests, state)
        if found is None:
            candidates.append(state)
        else:
            objections.append(found)
    if candidates:
        return SchedulingDecision(node=best_node(pod, requests, candidates))
    return SchedulingDecision(message=_refusal(pod, objections))


def _refusal(pod: Mapping[str, Any], objections: list[Objection]) -> str:
    count = len(objections)
    reasons = _counted(reason for found in objections for reason in found.reasons)
    sentence = f"0/{count} nodes are available: {reasons}. no new claims to deallocate, preemption: "
    if pod["spec"].get("preemptionPolicy") == "Never":
        return sentence + "not eligible due to preemptionPolicy=Never."
    prospects = _counted(_NOT_HELPFUL if found.helpless else _NO_VICTIMS for found in objections)
    return f"{sentence}0/{count} nodes are available: {prospects}."


def _counted(reasons: Iterable[str]) -> str:
    return ", ".join(sorted(f"{count} {reason}" for reason, count in Counter(reasons).items()))


def _named_nodes(pod: Mapping[str, Any]) -> set[str] | None:
    """Return the nodes that the required terms name by their fields, or None when some term names none."""
    terms = required_node_terms(pod)
    if not terms:
        return None
    named: set[str] = set()
    for term in terms:
        fields = term.get("matchFields") or ()
        if not fields:
            return None
        values = {value for field in fields if field.get("operator") == "In" for value in field.get("values") or ()}
        named |= {name for name in values if all(matches_requirement(f, {"metadata.name": name}) for f in fields)}
    return named


def takes(pod: Mapping[str, Any], requests: Amounts, state: NodeState) -> bool:
    """Return True when one node takes the pod, regardless of its volume claims."""
    named = _named_nodes(pod)
    return (named is None or state.name in named) and objection(pod, requests, state) is None


def claim_problem(pod: Mapping[str, Any], snapshot: Snapshot) -> str:
    """Return why the pod's volume claims keep it from every node, or "" when they are in order."""
    unbound = False
    for volume in pod["spec"].get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            claim_name = volume["persistentVolumeClaim"]["claimName"]
            missing = f'persistentvolumeclaim "{claim_name}" not found'
        elif "ephemeral" in volume:
            claim_name = f"{name_of(pod)}-{volume['name']}"
            missing = f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{claim_name}"'
        else:
            continue
        claim = snapshot.claims.get(f"{namespace_of(pod)}/{claim_name}")
        if claim is None:
            return missing
        if "ephemeral" in volume and (problem := ownership_problem(pod, claim)):
            return problem
        if claim.get("status", {}).get("phase") == "Lost":
            volume_name = claim.get("spec", {}).get("volumeName", "")
            return f'persistentvolumeclaim "{claim_name}" bound to non-existent persistentvolume "{volume_name}"'
        if is_terminating(claim):
            return f'persistentvolumeclaim "{claim_name}" is being deleted'
        unbound = unbound or not claim.get("spec", {}).get("volumeName")
    return "pod has unbound immediate PersistentVolumeClaims" if unbound else ""
