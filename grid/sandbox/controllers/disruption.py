"""The disruption controller: keeps each PodDisruptionBudget's status, from which evictions are allowed or refused.

The number of expected pods comes from their controllers where the budget needs it (`maxUnavailable`, percentages). Pods with a
granted eviction count as gone at once (`disruptedPods`), until they are gone or two minutes have passed.
"""

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from grid.core.errors import NotFound
from grid.sandbox.client import (
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    Object,
    condition_of,
    controller_of,
    format_time,
    is_terminating,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    parse_time,
    reference_to,
    uid_of,
)
from grid.sandbox.controllers.controller import QueueController
from grid.sandbox.controllers.podresources import is_finished
from grid.sandbox.controllers.replicas import is_ready
from grid.sandbox.controllers.selectors import matches_labels

_GRANTED_SECONDS = 120
_ALLOWED = "DisruptionAllowed"
_UNMANAGED = (
    "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the status of the PDB cannot be "
    'calculated correctly, which may result in undefined behavior. To account for these pods please set ".spec.minAvailable" field of '
    "the PDB to an integer value."
)


class NoScale(Exception):
    """A budget needs the number of pods that there should be, and no controller has it."""


@dataclass(frozen=True, slots=True)
class Needs:
    """`expected` pods should exist, `desired` of them healthy."""

    expected: int
    desired: int


def needs_of(budget: Mapping[str, Any], pods: Sequence[Mapping[str, Any]], scale: int | None) -> Needs:
    """Return a budget's needs; `scale` is the sum over the pods' controllers, None when one of a pod's is unknown.

    Raise `NoScale` when the budget needs a scale that is None.
    """
    spec = budget["spec"]
    limit = spec.get("maxUnavailable")
    minimum = spec.get("minAvailable")
    if limit is not None:
        expected = _known(scale)
        return Needs(expected, max(0, expected - resolve(limit, expected)))
    if isinstance(minimum, str):
        expected = _known(scale)
        return Needs(expected, resolve(minimum, expected))
    return Needs(len(pods), minimum if minimum is not None else 1)


def counts_by_scale(budget: Mapping[str, Any]) -> bool:
    """Return whether the budget needs to know how many pods there should be."""
    spec = budget["spec"]
    return spec.get("maxUnavailable") is not None or isinstance(spec.get("minAvailable"), str)


def selector_in_go(selector: Mapping[str, Any] | None) -> str:
    """Return a label selector as Go's generated `String()` writes it into messages."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{term['key']},Operator:{term['operator']},Values:[{' '.join(term.get('values') or ())}],}},"
        for term in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


def resolve(value: int | str, whole: int) -> int:
    """Return a number as it is, or a percentage of the whole rounded up."""
    return value if isinstance(value, int) else math.ceil(int(value.removesuffix("%")) * whole / 100)


def _known(scale: int | None) -> int:
    if scale is None:
        raise NoScale("found no controller that says how many pods there should be")
    return scale


def still_granted(budget: Mapping[str, Any], pods: Sequence[Mapping[str, Any]], now: datetime) -> dict[str, str]:
    """Return the evictions, by pod name, that were granted and whose pods are not terminating yet."""
    there = {name_of(pod) for pod in pods if not is_terminating(pod)}
    granted = budget.get("status", {}).get("disruptedPods") or {}
    oldest = now - timedelta(seconds=_GRANTED_SECONDS)
    return {name: at for name, at in granted.items() if name in there and (parse_time(at) or oldest) > oldest}


class DisruptionController(QueueController):
    """The controller that keeps the status of every PodDisruptionBudget, while `run` runs."""

    component = "controllermanager"
    name = "disruption"
    workers = 1

    def _begin(self) -> None:
        self._budgets = self._mirrors.of(DISRUPTION_BUDGETS)
        self._pods = self._mirrors.of(PODS)
        self._sets = self._mirrors.of(REPLICA_SETS)
        self._deployments = self._mirrors.of(DEPLOYMENTS)
        self._budgets.subscribe(lambda old, new: self._queue.add(key_of(new or old or {})))
        self._pods.subscribe(self._pod_changed)
        self._sets.subscribe(self._scale_changed)

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        for budget in self._budgets.values():
            for pod in (old, new):
                if pod is not None and _covers(budget, pod):
                    self._queue.add(key_of(budget))

    def _scale_changed(self, old: Object | None, new: Object | None) -> None:
        """Enqueue budgets when a spec or an owner changed; a mere status change is ignored, as each pod's own change enqueues them."""
        if old and new and old["spec"] == new["spec"] and controller_of(old) == controller_of(new):
            return
        changed = new or old or {}
        template = changed["spec"].get("template") or {}
        for budget in self._budgets.values():
            same_place = namespace_of(budget) == namespace_of(changed)
            if same_place and matches_labels(budget["spec"].get("selector"), labels_of(template)):
                self._queue.add(key_of(budget))

    async def _reconcile(self, key: str) -> float | None:
        budget = self._budgets.get(key)
        if budget is None:
            return None
        pods = [pod for pod in self._pods.values() if _covers(budget, pod) and not is_finished(pod)]
        now = self._clock.now()
        granted = still_granted(budget, pods, now)
        healthy = sum(is_ready(pod) and not is_terminating(pod) and name_of(pod) not in granted for pod in pods)
        try:
            needs = needs_of(budget, pods, self._scale_of(pods))
            if counts_by_scale(budget) and any(controller_of(pod) is None for pod in pods):
                about = reference_to(budget, kind=DISRUPTION_BUDGETS.kind, api_version=DISRUPTION_BUDGETS.api_version)
                words = _UNMANAGED.format(selector_in_go(budget["spec"].get("selector")))
                await self._events.record(about, "UnmanagedPods", words, type="Warning")
        except NoScale as problem:
            await self._write(budget, Needs(len(pods), 0), healthy, granted, problem=str(problem))
            return None
        await self._write(budget, needs, healthy, granted)
        return float(_GRANTED_SECONDS) if granted else None

    def _scale_of(self, pods: Sequence[Object]) -> int | None:
        scales: dict[str, int] = {}
        for pod in pods:
            owner = controller_of(pod)
            if owner is None:
                continue  # as Kubernetes does since 1.22: of such pods it only tells, by an event
            if owner.get("kind") != REPLICA_SETS.kind:
                return None
            workload = self._sets.get(f"{namespace_of(pod)}/{owner['name']}")
            above = controller_of(workload) if workload else None
            if workload and above and above.get("kind") == DEPLOYMENTS.kind:
                workload = self._deployments.get(f"{namespace_of(pod)}/{above['name']}") or workload
            if workload is not None:
                scales[uid_of(workload)] = int(workload["spec"].get("replicas", 1))
        return sum(scales.values())

    async def _write(
        self, budget: Object, needs: Needs, healthy: int, granted: dict[str, str], *, problem: str = ""
    ) -> None:
        allowed = max(0, healthy - needs.desired) if needs.expected and not problem else 0
        status: Object = {
            "observedGeneration": budget["metadata"].get("generation", 0),
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": needs.desired,
            "expectedPods": needs.expected,
        }
        if granted:
            status["disruptedPods"] = granted
        status["conditions"] = [self._condition(budget, allowed, problem)]
        if status == budget.get("status"):
            return
        body = {
            **budget,
            "apiVersion": DISRUPTION_BUDGETS.api_version,
            "kind": DISRUPTION_BUDGETS.kind,
            "status": status,
        }
        with contextlib.suppress(NotFound):
            await self._client.update(DISRUPTION_BUDGETS.path(namespace_of(budget), name_of(budget), "status"), body)

    def _condition(self, budget: Object, allowed: int, problem: str) -> Object:
        status = "True" if allowed else "False"
        reason = "SyncFailed" if problem else "SufficientPods" if allowed else "InsufficientPods"
        known = condition_of(budget, _ALLOWED)
        since = known["lastTransitionTime"] if known and known["status"] == status else format_time(self._clock.now())
        return {
            "type": _ALLOWED,
            "status": status,
            "observedGeneration": budget["metadata"].get("generation", 0),
            "lastTransitionTime": since,
            "reason": reason,
            "message": problem,
        }


def _covers(budget: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    return namespace_of(pod) == namespace_of(budget) and matches_labels(budget["spec"].get("selector"), labels_of(pod))
