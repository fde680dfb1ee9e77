"""Limits on the change of replicas: stabilisation windows, policies and bounds.

Without `spec.behavior` the older rules hold: recommendations of the last five minutes keep replicas up, and one step at most
doubles them (to four at least). With it each direction has its window, its policies and its way of choosing among them.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from grid.core.quantity import parse_quantity
from grid.sandbox.controllers.scaling.model import Memory, Recommendation, Rescale, ScalingSettings, Tolerance

WITHIN = ("DesiredWithinRange", "the desired count is within the acceptable range")
TOO_FAST_UP = ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
TOO_MANY = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
TOO_FAST_DOWN = ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")
TOO_FEW = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
UNSTABILISED = ("ReadyForNewScale", "recommended size matches current size")
KEPT_UP = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)
KEPT_DOWN = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)

Reason = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ScalingPolicy:
    kind: str
    value: int
    period: timedelta


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules for one direction."""

    window: timedelta
    select: str
    policies: tuple[ScalingPolicy, ...]


@dataclass(frozen=True, slots=True)
class Behaviour:
    up: Rules
    down: Rules


@dataclass(frozen=True, slots=True)
class ReplicaBounds:
    minimum: int
    maximum: int


_UP_DEFAULTS = (
    {"type": "Pods", "value": 4, "periodSeconds": 15},
    {"type": "Percent", "value": 100, "periodSeconds": 15},
)
_DOWN_DEFAULTS = ({"type": "Percent", "value": 100, "periodSeconds": 15},)


def read_behaviour(spec: Mapping[str, Any], settings: ScalingSettings) -> Behaviour | None:
    raw = spec.get("behavior")
    if raw is None:
        return None
    return Behaviour(
        _rules(raw.get("scaleUp") or {}, 0.0, _UP_DEFAULTS),
        _rules(raw.get("scaleDown") or {}, settings.down_seconds, _DOWN_DEFAULTS),
    )


def read_tolerance(spec: Mapping[str, Any], settings: ScalingSettings) -> Tolerance:
    raw = spec.get("behavior") or {}
    shares = [(raw.get(direction) or {}).get("tolerance") for direction in ("scaleDown", "scaleUp")]
    down, up = (settings.tolerance if share is None else float(parse_quantity(share)) for share in shares)
    return Tolerance(down, up)


def _rules(raw: Mapping[str, Any], seconds: float, policies: Iterable[Mapping[str, Any]]) -> Rules:
    window = raw.get("stabilizationWindowSeconds")
    return Rules(
        timedelta(seconds=seconds if window is None else window),
        raw.get("selectPolicy") or "Max",
        tuple(
            ScalingPolicy(item["type"], item["value"], timedelta(seconds=item["periodSeconds"]))
            for item in raw.get("policies") or policies
        ),
    )


def begin(memory: Memory, current: int, now: datetime) -> Memory:
    """Return a memory that holds at least the present size as a recommendation: a restart must not scale down at once."""
    return memory if memory.recommendations else replace(memory, recommendations=(Recommendation(now, current),))


def stabilise(
    behaviour: Behaviour | None, memory: Memory, current: int, desired: int, settings: ScalingSettings, now: datetime
) -> tuple[int, Reason, Memory]:
    """Return the recommendation that recent ones allow, the reason, and the new memory."""
    if behaviour is None:
        cutoff = now - timedelta(seconds=settings.down_seconds)
        recent = tuple(item for item in memory.recommendations if item.at >= cutoff)
        stable = max([desired, *(item.replicas for item in recent)])
        reason = KEPT_UP
    else:
        up_since, down_since = now - behaviour.up.window, now - behaviour.down.window
        oldest = min(up_since, down_since)
        recent = tuple(item for item in memory.recommendations if item.at >= oldest)
        lowest = min([desired, *(item.replicas for item in recent if item.at > up_since)])
        highest = max([desired, *(item.replicas for item in recent if item.at > down_since)])
        stable = min(max(current, lowest), highest)
        reason = KEPT_DOWN if desired >= current else KEPT_UP
    remembered = replace(memory, recommendations=(*recent, Recommendation(now, desired)))
    return stable, UNSTABILISED if stable == desired else reason, remembered


def limit(
    behaviour: Behaviour | None, memory: Memory, current: int, desired: int, limits: ReplicaBounds, now: datetime
) -> tuple[int, Reason]:
    """Return the stabilised recommendation within policies and bounds, and the reason."""
    if behaviour is None:
        return _limit_simply(current, desired, limits)
    if desired > current:
        fastest = max(current, _up_limit(behaviour.up, memory, current, now))
        most, reason = (fastest, TOO_FAST_UP) if limits.maximum > fastest else (limits.maximum, TOO_MANY)
        return (most, reason) if desired > most else (desired, WITHIN)
    if desired < current:
        fastest = min(current, _down_limit(behaviour.down, memory, current, now))
        least, reason = (fastest, TOO_FAST_DOWN) if limits.minimum < fastest else (limits.minimum, TOO_FEW)
        return (least, reason) if desired < least else (desired, WITHIN)
    return desired, WITHIN


def _limit_simply(current: int, desired: int, limits: ReplicaBounds) -> tuple[int, Reason]:
    fastest = max(2 * current, 4)
    most, reason = (fastest, TOO_FAST_UP) if limits.maximum > fastest else (limits.maximum, TOO_MANY)
    if desired < limits.minimum:
        return limits.minimum, TOO_FEW
    return (most, reason) if desired > most else (desired, WITHIN)


def _up_limit(rules: Rules, memory: Memory, current: int, now: datetime) -> int:
    if rules.select == "Disabled" or not rules.policies:
        return current
    proposals = []
    for policy in rules.policies:
        start = _period_start(policy, memory, current, now)
        # Rounded up, because a percentage that adds less than one pod would never add any.
        grown = start + policy.value if policy.kind == "Pods" else math.ceil(start * (1 + policy.value / 100))
        proposals.append(grown)
    return min(proposals) if rules.select == "Min" else max(proposals)


def _down_limit(rules: Rules, memory: Memory, current: int, now: datetime) -> int:
    if rules.select == "Disabled" or not rules.policies:
        return current
    proposals = []
    for policy in rules.policies:
        start = _period_start(policy, memory, current, now)
        shrunk = start - policy.value if policy.kind == "Pods" else int(start * (1 - policy.value / 100))
        proposals.append(shrunk)
    return max(proposals) if rules.select == "Min" else min(proposals)


def _period_start(policy: ScalingPolicy, memory: Memory, current: int, now: datetime) -> int:
    """Return the number of replicas when the policy's period began."""
    since = now - policy.period
    added = sum(change.replicas for change in memory.ups if change.at > since)
    removed = sum(change.replicas for change in memory.downs if change.at > since)
    return current - added + removed


def remember_rescale(behaviour: Behaviour | None, memory: Memory, old: int, new: int, now: datetime) -> Memory:
    """Return the memory with the rescale; unchanged without a behaviour, whose policies are all that counts rescales."""
    if behaviour is None:
        return memory
    periods = [policy.period for rules in (behaviour.up, behaviour.down) for policy in rules.policies]
    since = now - max(periods, default=timedelta())
    if new > old:
        return replace(memory, ups=(*_since(memory.ups, since), Rescale(now, new - old)))
    return replace(memory, downs=(*_since(memory.downs, since), Rescale(now, old - new)))


def _since(changes: Iterable[Rescale], moment: datetime) -> Iterable[Rescale]:
    return (change for change in changes if change.at > moment)
