"""Preemption: the pods that would have to leave, and the node they would leave, so that a more important pod fits.

The rules are the default scheduler's. Only nodes count on which less other pods would help. From each, all pods of lower priority go in
thought, and as many as possible come back, the most important first, those that a disruption budget protects before the others.
The best node breaks the fewest budgets, then has the least important victims, the smallest sum of priorities, the fewest victims,
and the one whose most important victim began last.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grid.sandbox.client import condition_of, is_terminating, labels_of, name_of, namespace_of
from grid.sandbox.controllers.podresources import Amounts
from grid.sandbox.controllers.scheduling.filters import Objection
from grid.sandbox.controllers.scheduling.question import Question, priority_of
from grid.sandbox.controllers.scheduling.snapshot import Snapshot
from grid.sandbox.controllers.selectors import matches_labels

BY_SCHEDULER = "PreemptionByScheduler"
DISRUPTED = "DisruptionTarget"
_NOT_HELPFUL = "Preemption is not helpful for scheduling"
_NO_VICTIMS = "No preemption victims found for incoming pod"
_NEVER = "not eligible due to preemptionPolicy=Never."
_WAITS = "not eligible due to a terminating pod on the nominated node."
# Added to each priority, so that a sum also counts victims of negative priority.
_PRIORITY_OFFSET = 2**31

PodObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Preemption:
    """A node and its victims, the most important first."""

    node: str
    victims: tuple[PodObject, ...]
    broken_budgets: int


@dataclass(frozen=True, slots=True)
class NoPreemption:
    """Why nobody has to leave: a text, or one reason per node, counted. `waits` keeps the node that is nominated already."""

    text: str = ""
    reasons: tuple[str, ...] = ()
    waits: bool = False


def preempt(
    pod: PodObject, requests: Amounts, snapshot: Snapshot, objections: Mapping[str, Objection]
) -> Preemption | NoPreemption:
    """Return who has to leave for a pod that every node objects to, or why nobody does."""
    if pod["spec"].get("preemptionPolicy") == "Never":
        return NoPreemption(_NEVER, waits=True)
    if _waits_for_victims(pod, snapshot, objections):
        return NoPreemption(_WAITS, waits=True)
    reasons: list[str] = []
    options: list[Preemption] = []
    for name, objection in objections.items():
        if objection.helpless:
            reasons.append(_NOT_HELPFUL)
            continue
        outcome = _on_node(pod, requests, snapshot, name)
        if isinstance(outcome, Preemption):
            options.append(outcome)
        else:
            reasons += outcome
    if not options:
        return NoPreemption(reasons=tuple(reasons))
    return min(options, key=_cost)


def _waits_for_victims(pod: PodObject, snapshot: Snapshot, objections: Mapping[str, Objection]) -> bool:
    state = snapshot.nodes.get(pod.get("status", {}).get("nominatedNodeName") or "")
    if state is None or objections[state.name].helpless:
        return False
    return any(
        priority_of(other) < priority_of(pod)
        and is_terminating(other)
        and (condition_of(other, DISRUPTED) or {}).get("reason") == BY_SCHEDULER
        for other in state.pods
    )


def _on_node(pod: PodObject, requests: Amounts, snapshot: Snapshot, name: str) -> Preemption | tuple[str, ...]:
    """Return the victims on one node, or the reasons why the pod would not fit even without them."""
    there = snapshot.nodes[name].pods
    lower = sorted((other for other in there if priority_of(other) < priority_of(pod)), key=_importance)
    if not lower:
        return (_NO_VICTIMS,)
    staying = [other for other in there if priority_of(other) >= priority_of(pod)]

    def obstacle(pods: Sequence[PodObject]) -> Objection | None:
        thought = snapshot.with_pods(name, pods)
        return Question(pod, requests, thought).objection(thought.nodes[name])

    objection = obstacle(staying)
    if objection is not None:
        return objection.reasons
    protected, free = _by_protection(lower, snapshot.budgets)
    victims: list[PodObject] = []
    broken = 0
    for group in (protected, free):
        for other in group:
            if obstacle([*staying, other]) is None:
                staying.append(other)
            else:
                victims.append(other)
                broken += group is protected
    return Preemption(name, tuple(sorted(victims, key=_importance)), broken)


def _importance(pod: PodObject) -> tuple[int, str, str]:
    return (-priority_of(pod), _started(pod), name_of(pod))


def _started(pod: PodObject) -> str:
    # A pod that has not started counts as starting now, which is after all others.
    return pod.get("status", {}).get("startTime") or "~"


def _by_protection(
    pods: Sequence[PodObject], budgets: Sequence[Mapping[str, Any]]
) -> tuple[list[PodObject], list[PodObject]]:
    """Part the pods, of which each uses up the budgets that select it, into those that no budget lets go and the rest."""
    left = [budget.get("status", {}).get("disruptionsAllowed", 0) for budget in budgets]
    protected: list[PodObject] = []
    free: list[PodObject] = []
    for pod in pods:
        violates = False
        for index, budget in enumerate(budgets):
            if not _selects(budget, pod) or name_of(pod) in (budget.get("status", {}).get("disruptedPods") or {}):
                continue
            left[index] -= 1
            violates = violates or left[index] < 0
        (protected if violates else free).append(pod)
    return protected, free


def _selects(budget: Mapping[str, Any], pod: PodObject) -> bool:
    selector = budget.get("spec", {}).get("selector") or {}
    chosen = selector.get("matchLabels") or selector.get("matchExpressions")
    same = namespace_of(budget) == namespace_of(pod)
    return bool(chosen and labels_of(pod)) and same and matches_labels(selector, labels_of(pod))


def _cost(option: Preemption) -> tuple[object, ...]:
    priorities = [priority_of(pod) for pod in option.victims]
    highest = max(priorities)
    first_start = min(_started(pod) for pod in option.victims if priority_of(pod) == highest)
    total = sum(priority + _PRIORITY_OFFSET for priority in priorities)
    return (option.broken_budgets, highest, total, len(priorities), _Latest(first_start), option.node)


@dataclass(frozen=True, slots=True)
class _Latest:
    """Orders later times before earlier ones."""

    time: str

    def __lt__(self, other: "_Latest") -> bool:
        return self.time > other.time
