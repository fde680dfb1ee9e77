"""One reconciliation of one autoscaler: whether and to what size the workload is resized, and the resulting status.

It has two steps, because the target is resized between them: `decide`, and `conclude` with the target's answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from grid.sandbox.client import format_time
from grid.sandbox.controllers.scaling.behaviour import (
    ReplicaBounds,
    begin,
    limit,
    read_behaviour,
    read_tolerance,
    remember_rescale,
    stabilise,
)
from grid.sandbox.controllers.scaling.metrics import Computed, Conditions, compute
from grid.sandbox.controllers.scaling.model import (
    External,
    Happening,
    Memory,
    MetricView,
    NamespaceUsage,
    PodState,
    ScalingSettings,
)

_ABOVE_MAXIMUM = "Current number of replicas above Spec.MaxReplicas"
_BELOW_MINIMUM = "Current number of replicas below Spec.MinReplicas"


@dataclass(frozen=True, slots=True)
class Scale:
    """A target's scale: the wanted number of replicas, the selector of its pods, and the present number."""

    replicas: int
    selector: str
    present: int = 0


@dataclass(frozen=True, slots=True)
class Situation:
    """The input: `autoscaler` as stored; `rivals` are the keys of all autoscalers that select these pods, itself included."""

    autoscaler: Mapping[str, Any]
    scale: Scale
    pods: Sequence[PodState] = ()
    usage: NamespaceUsage = field(default_factory=NamespaceUsage)
    rivals: Sequence[str] = ()
    external: Mapping[tuple[str, str], External] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScalingDecision:
    """The decision: `replicas` is the new size (None when it cannot be known) and `reason` why."""

    current: int
    replicas: int | None
    reason: str
    conditions: Conditions
    metrics: Sequence[Mapping[str, Any]] | None
    events: tuple[Happening, ...]
    memory: Memory

    @property
    def rescale(self) -> bool:
        return self.replicas is not None and self.replicas != self.current


@dataclass(frozen=True, slots=True)
class SyncOutcome:
    status: Mapping[str, Any]
    events: tuple[Happening, ...]
    memory: Memory


def reads_metrics(spec: Mapping[str, Any], scale: Scale) -> bool:
    """Return True when the size is within its bounds, so that metrics decide."""
    return _bound(spec, scale.replicas) is None


def _limits(spec: Mapping[str, Any]) -> ReplicaBounds:
    minimum = spec.get("minReplicas")
    return ReplicaBounds(1 if minimum is None else minimum, spec["maxReplicas"])


def _bound(spec: Mapping[str, Any], current: int) -> tuple[int, str] | None:
    limits = _limits(spec)
    if current == 0 and limits.minimum != 0:
        return 0, ""
    if current > limits.maximum:
        return limits.maximum, _ABOVE_MAXIMUM
    if current < limits.minimum:
        return limits.minimum, _BELOW_MINIMUM
    return None


def decide(situation: Situation, memory: Memory, settings: ScalingSettings, now: datetime) -> ScalingDecision:
    spec, current = situation.autoscaler["spec"], situation.scale.replicas
    conditions = Conditions(situation.autoscaler, now)
    conditions.set(
        "AbleToScale", True, "SucceededGetScale", "the HPA controller was able to get the target's current scale"
    )
    memory = begin(memory, current, now)
    bound = _bound(spec, current)
    if bound is not None:
        replicas, reason = bound
        if replicas == 0:
            conditions.set(
                "ScalingActive",
                False,
                "ScalingDisabled",
                "scaling is disabled since the replica count of the target is zero",
            )
        return ScalingDecision(current, replicas, reason, conditions, None, (), memory)
    tolerance = read_tolerance(spec, settings)
    view = MetricView(
        current,
        situation.pods,
        situation.usage,
        tolerance,
        settings,
        now,
        present=situation.scale.present,
        external=situation.external,
    )
    computed = compute(spec.get("metrics") or (), situation.scale.selector, view, situation.rivals)
    conditions.set("ScalingActive", computed.replicas is not None, computed.reason, computed.message)
    if computed.replicas is None:
        return ScalingDecision(current, None, "", conditions, computed.statuses, computed.events, memory)
    return _slow_down(situation, computed, computed.replicas, conditions, memory, settings=settings, now=now)


def _slow_down(
    situation: Situation,
    computed: Computed,
    desired: int,
    conditions: Conditions,
    memory: Memory,
    *,
    settings: ScalingSettings,
    now: datetime,
) -> ScalingDecision:
    spec, current = situation.autoscaler["spec"], situation.scale.replicas
    reason = f"{computed.metric} above target" if desired > current else ""
    if desired < current:
        reason = "All metrics below target"
    behaviour = read_behaviour(spec, settings)
    stable, (able, sentence), memory = stabilise(behaviour, memory, current, desired, settings, now)
    conditions.set("AbleToScale", True, able, sentence)
    replicas, (limited, sentence) = limit(behaviour, memory, current, stable, _limits(spec), now)
    conditions.set("ScalingLimited", replicas != stable, limited, sentence)
    return ScalingDecision(current, replicas, reason, conditions, computed.statuses, computed.events, memory)


def conclude(
    situation: Situation, decision: ScalingDecision, settings: ScalingSettings, now: datetime, *, refusal: str = ""
) -> SyncOutcome:
    """Return status, events and memory after the resize, or after its refusal by the target."""
    autoscaler, memory, events = situation.autoscaler, decision.memory, decision.events
    known = (autoscaler.get("status") or {}).get("desiredReplicas", 0)
    if not decision.rescale:
        desired = known if decision.replicas is None else decision.replicas
        return SyncOutcome(_status(autoscaler, decision, desired), events, memory)
    size, conditions = decision.replicas or 0, decision.conditions
    summary = f"New size: {size}; reason: {decision.reason}"
    if refusal:
        sentence = f"the HPA controller was unable to update the target scale: {refusal}"
        conditions.set("AbleToScale", False, "FailedUpdateScale", sentence)
        failed = Happening("FailedRescale", f"{summary}; error: {refusal}", "Warning")
        return SyncOutcome(_status(autoscaler, decision, known), (*events, failed), memory)
    conditions.set(
        "AbleToScale", True, "SucceededRescale", f"the HPA controller was able to update the target scale to {size}"
    )
    memory = remember_rescale(read_behaviour(autoscaler["spec"], settings), memory, decision.current, size, now)
    status = _status(autoscaler, decision, size, scaled=now)
    return SyncOutcome(status, (*events, Happening("SuccessfulRescale", summary)), memory)


def without_scale(autoscaler: Mapping[str, Any], problem: str, now: datetime) -> tuple[Mapping[str, Any], Happening]:
    """Return status and event when the target's scale cannot be read; the rest of the status is unchanged."""
    conditions = Conditions(autoscaler, now)
    sentence = f"the HPA controller was unable to get the target's current scale: {problem}"
    conditions.set("AbleToScale", False, "FailedGetScale", sentence)
    status = {**(autoscaler.get("status") or {}), "conditions": conditions.items}
    return status, Happening("FailedGetScale", problem, "Warning")


def _status(
    autoscaler: Mapping[str, Any], decision: ScalingDecision, desired: int, *, scaled: datetime | None = None
) -> Mapping[str, Any]:
    before = autoscaler.get("status") or {}
    last = format_time(scaled) if scaled else before.get("lastScaleTime")
    generation = autoscaler.get("metadata", {}).get("generation")
    fields: dict[str, Any] = {
        "observedGeneration": generation,
        "lastScaleTime": last,
        "currentReplicas": decision.current or None,
    }
    present = {key: value for key, value in fields.items() if value is not None}
    metrics = None if decision.metrics is None else list(decision.metrics)
    return {**present, "desiredReplicas": desired, "currentMetrics": metrics, "conditions": decision.conditions.items}
