"""One scheduling decision: a node, or the reason why there is none, in the default scheduler's exact words."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from grid.sandbox.client import is_terminating
from grid.sandbox.controllers.podresources import Amounts, pod_requests
from grid.sandbox.controllers.scheduling.claims import claim_problem
from grid.sandbox.controllers.scheduling.filters import Objection
from grid.sandbox.controllers.scheduling.preemption import NoPreemption, preempt
from grid.sandbox.controllers.scheduling.question import Question
from grid.sandbox.controllers.scheduling.scoring import best_node
from grid.sandbox.controllers.scheduling.snapshot import Snapshot, build_snapshot

DEFAULT_SCHEDULER = "default-scheduler"


@dataclass(frozen=True, slots=True)
class SchedulingDecision:
    """A decision: `node`, or `message` with the reason why there is none. Both are empty for a pod that is not to be scheduled.

    `nominated` is the node that is kept for the pod once the `victims` have left it; None leaves what was nominated before.
    """

    node: str = ""
    message: str = ""
    nominated: str | None = None
    victims: tuple[Mapping[str, Any], ...] = ()


def concerns_us(pod: Mapping[str, Any]) -> bool:
    """Return True for a pod that is pending, unassigned, not gated, not terminating, and for the default scheduler.

    A pod with resource claims waits without a word, as everywhere while its claim is missing: this cluster has no such claims.
    """
    spec = pod["spec"]
    return (
        not spec.get("nodeName")
        and not spec.get("schedulingGates")
        and not spec.get("resourceClaims")
        and (spec.get("schedulerName") or DEFAULT_SCHEDULER) == DEFAULT_SCHEDULER
        and not is_terminating(pod)
        and pod.get("status", {}).get("phase", "Pending") == "Pending"
    )


def schedule(
    pod: Mapping[str, Any],
    nodes: Iterable[Mapping[str, Any]],
    pods: Iterable[Mapping[str, Any]],
    claims: Iterable[Mapping[str, Any]] = (),
    others: Mapping[str, Iterable[Mapping[str, Any]]] | None = None,
) -> SchedulingDecision:
    """Return the decision for one pod, from raw objects; `others` as in `build_snapshot`."""
    if not concerns_us(pod):
        return SchedulingDecision()
    return decide(pod, pod_requests(pod), build_snapshot(nodes, pods, claims, others=others))


def decide(pod: Mapping[str, Any], requests: Amounts, snapshot: Snapshot) -> SchedulingDecision:
    count = len(snapshot.nodes)
    if not count:
        return SchedulingDecision(message="no nodes available to schedule pods")
    problem = claim_problem(pod, snapshot)
    if problem:
        return SchedulingDecision(message=f"0/{count} nodes are available: {problem}. not found")
    question = Question(pod, requests, snapshot)
    kept = snapshot.nodes.get(pod.get("status", {}).get("nominatedNodeName") or "")
    if kept is not None and question.objection(kept) is None:
        return SchedulingDecision(node=kept.name)
    objections: dict[str, Objection] = {}
    candidates = []
    for name, state in snapshot.nodes.items():
        objection = question.objection(state)
        if objection is None:
            candidates.append(state)
        else:
            objections[name] = objection
    if candidates:
        return SchedulingDecision(node=best_node(pod, requests, candidates))
    return _refused(pod, requests, snapshot, objections)


def _refused(
    pod: Mapping[str, Any], requests: Amounts, snapshot: Snapshot, objections: Mapping[str, Objection]
) -> SchedulingDecision:
    count = len(objections)
    reasons = _counted(reason for objection in objections.values() for reason in objection.reasons)
    sentence = f"0/{count} nodes are available: {reasons}."
    outcome = preempt(pod, requests, snapshot, objections)
    if not isinstance(outcome, NoPreemption):
        return SchedulingDecision(message=sentence, nominated=outcome.node, victims=outcome.victims)
    why = outcome.text or f"0/{count} nodes are available: {_counted(outcome.reasons)}."
    message = f"{sentence} no new claims to deallocate, preemption: {why}"
    return SchedulingDecision(message=message, nominated=None if outcome.waits else "")


def _counted(reasons: Iterable[str]) -> str:
    return ", ".join(sorted(f"{count} {reason}" for reason, count in Counter(reasons).items()))
