"""Replicas from usage, for one resource metric.

The rule is usage / target x pods, with caution about pods that cannot be judged: those without a measurement count as idle when
scaling up and as fully used when scaling down; those that are starting count as idle. When counting them reverses the direction,
or brings the ratio within the tolerance, nothing changes.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from grid.sandbox.controllers.scaling.model import (
    CannotCompute,
    MetricView,
    NamespaceUsage,
    PodMetrics,
    PodState,
    ScalingSettings,
)

_NONE_USABLE = "did not receive metrics for targeted pods (pods might be unready)"


@dataclass(frozen=True, slots=True)
class MetricTarget:
    """A target: `utilisation` (per cent of the request) or `average` (thousandths per pod), of one container or all."""

    resource: str
    utilisation: int | None = None
    average: int | None = None
    container: str = ""


@dataclass(frozen=True, slots=True)
class Proposal:
    replicas: int
    average: int
    utilisation: int | None = None


@dataclass(frozen=True, slots=True)
class _Groups:
    """Names of pods: `ready` are judged by their usage, the others by assumption; ignored pods are in no group."""

    ready: frozenset[str]
    unready: frozenset[str]
    missing: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Measure:
    """The comparison with a target: `ratio` returns ratio, average and utilisation, `assumed` the usage of an unmeasured pod."""

    ratio: Callable[[Mapping[str, int]], tuple[float, int, int | None]]
    assumed: Callable[[str], int]


def propose(target: MetricTarget, view: MetricView) -> Proposal:
    """Return the proposal for one metric. Raise `CannotCompute`."""
    pods = view.pods
    amounts = _amounts(target, view.usage)
    if not pods:
        raise CannotCompute("no pods returned by selector while calculating replica count")
    groups = _group(target.resource, view, amounts)
    known = {pod.name for pod in pods}
    # Measurements of pods that are no longer listed count, as in the original; the utilisation measure ignores them.
    usable = {name: amount for name, amount in amounts.items() if name not in known or name in groups.ready}
    if not usable:
        raise CannotCompute(_NONE_USABLE)
    measure = _utilisation_measure(target, pods) if target.average is None else _average_measure(target.average)
    ratio, average, utilisation = measure.ratio(usable)
    replicas = _replicas(view, groups, usable, measure, ratio)
    return Proposal(replicas, average, utilisation)


def _replicas(view: MetricView, groups: _Groups, usable: Mapping[str, int], measure: _Measure, ratio: float) -> int:
    current, tolerance = view.current, view.tolerance
    up_with_unready = bool(groups.unready) and ratio > 1.0
    if not up_with_unready and not groups.missing:
        return current if tolerance.holds(ratio) else math.ceil(ratio * len(groups.ready))
    amounts = dict(usable)
    if ratio != 1.0:
        amounts |= {name: measure.assumed(name) if ratio < 1.0 else 0 for name in groups.missing}
    if up_with_unready:
        amounts |= dict.fromkeys(groups.unready, 0)
    cautious, _, _ = measure.ratio(amounts)
    if tolerance.holds(cautious) or (ratio < 1.0 < cautious) or (cautious < 1.0 < ratio):
        return current
    replicas = math.ceil(cautious * len(amounts))
    turns_round = (cautious < 1.0 and replicas > current) or (cautious > 1.0 and replicas < current)
    return current if turns_round else replicas


def _amounts(target: MetricTarget, usage: NamespaceUsage) -> dict[str, int]:
    """Return each pod's usage of the resource, without pods whose usage is incomplete. Raise `CannotCompute`."""
    lacking = usage.problem or ("" if usage.pods else "no metrics returned from resource metrics API")
    if lacking:
        raise CannotCompute(f"unable to get metrics for resource {target.resource}: {lacking}")
    if not target.container:
        return {
            name: sum(used[target.resource] for used in pod.containers.values())
            for name, pod in usage.pods.items()
            if pod.containers and all(target.resource in used for used in pod.containers.values())
        }
    for name, pod in usage.pods.items():
        if target.container not in pod.containers:
            raise CannotCompute(
                f"unable to get metrics for resource {target.resource}: failed to get container metrics: "
                f"container {target.container} not present in metrics for pod {usage.namespace}/{name}"
            )
    amounts = {name: pod.containers[target.container].get(target.resource) for name, pod in usage.pods.items()}
    return {name: amount for name, amount in amounts.items() if amount is not None}


def _group(resource: str, view: MetricView, amounts: Mapping[str, int]) -> _Groups:
    ready, unready, missing = set(), set(), set()
    for pod in view.pods:
        if pod.terminating or pod.phase == "Failed":
            continue
        if pod.phase == "Pending":
            unready.add(pod.name)
        elif pod.name not in amounts:
            missing.add(pod.name)
        elif resource == "cpu" and _is_starting(pod, view.usage.pods[pod.name], view.settings, view.now):
            unready.add(pod.name)
        else:
            ready.add(pod.name)
    return _Groups(frozenset(ready), frozenset(unready), frozenset(missing))


def _is_starting(pod: PodState, usage: PodMetrics, settings: ScalingSettings, now: datetime) -> bool:
    """Return True while a pod's CPU usage is not yet meaningful, because start-up costs more than the work that follows."""
    if pod.ready is None or pod.ready_since is None or pod.started is None:
        return True
    if pod.started + timedelta(seconds=settings.cpu_initialisation_seconds) > now:
        # One whole window must be measured after the pod became ready.
        return not pod.ready or usage.at < pod.ready_since + usage.window
    never_was_ready = pod.started + timedelta(seconds=settings.initial_readiness_seconds) > pod.ready_since
    return not pod.ready and never_was_ready


def _average_measure(target: int) -> _Measure:
    def ratio(amounts: Mapping[str, int]) -> tuple[float, int, int | None]:
        average = sum(amounts.values()) // len(amounts)
        return average / target, average, None

    return _Measure(ratio, lambda name: target)


def _utilisation_measure(target: MetricTarget, pods: Sequence[PodState]) -> _Measure:
    wanted = target.utilisation
    if wanted is None:
        raise CannotCompute(
            "invalid resource metric source: neither an average utilization target nor an average value (usage) "
            "target was set"
        )
    requests = {pod.name: _request(pod, target) for pod in pods}

    def ratio(amounts: Mapping[str, int]) -> tuple[float, int, int | None]:
        counted = [name for name in amounts if name in requests]
        requested = sum(requests[name] for name in counted)
        if requested == 0:
            raise CannotCompute("no metrics returned matched known pods")
        used = sum(amounts[name] for name in counted)
        share = used * 100 // requested
        return share / wanted, used // len(counted), share

    # An unmeasured pod may be using its whole request at least.
    return _Measure(ratio, lambda name: requests[name] * max(100, wanted) // 100)


def _request(pod: PodState, target: MetricTarget) -> int:
    total = 0
    for container, wanted in pod.requests:
        if target.container in ("", container):
            if target.resource not in wanted:
                raise CannotCompute(f"missing request for {target.resource} in container {container} of Pod {pod.name}")
            total += wanted[target.resource]
    return total
