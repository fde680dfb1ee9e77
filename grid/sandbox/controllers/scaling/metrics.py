"""All metrics of one autoscaler: the largest proposal wins; a failed metric prevents scaling down, but not up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from grid.sandbox.client import format_time
from grid.sandbox.controllers.scaling.external import name_of_metric, propose_external, shown_name
from grid.sandbox.controllers.scaling.model import CannotCompute, Happening, MetricView
from grid.sandbox.controllers.scaling.proposal import Proposal, propose
from grid.sandbox.controllers.scaling.reading import read_target, write_amount

_SOURCES = {"Resource": "resource", "ContainerResource": "containerResource", "External": "external"}
_FAILED = {
    "Resource": "FailedGetResourceMetric",
    "ContainerResource": "FailedGetContainerResourceMetric",
    "Pods": "FailedGetPodsMetric",
    "Object": "FailedGetObjectMetric",
    "External": "FailedGetExternalMetric",
}
_NOTHING_KNOWN: Mapping[str, Any] = {"type": ""}


class Conditions:
    """An autoscaler's conditions during one reconciliation; a condition's time is when its status last changed."""

    def __init__(self, autoscaler: Mapping[str, Any], now: datetime) -> None:
        known = (autoscaler.get("status") or {}).get("conditions") or ()
        self.items: list[dict[str, Any]] = [dict(item) for item in known]
        self._now = format_time(now)

    def set(self, kind: str, holds: bool, reason: str, message: str) -> None:
        condition = next((item for item in self.items if item["type"] == kind), None)
        if condition is None:
            condition = {"type": kind, "status": ""}
            self.items.append(condition)
        status = "True" if holds else "False"
        if condition["status"] != status:
            condition |= {"status": status, "lastTransitionTime": self._now}
        condition |= {"reason": reason, "message": message}


@dataclass(frozen=True, slots=True)
class Computed:
    """`replicas` is None when nothing may be done; `metric` names the deciding one, reason and message are ScalingActive's."""

    replicas: int | None
    metric: str
    statuses: Sequence[Mapping[str, Any]] | None
    reason: str
    message: str
    events: tuple[Happening, ...] = ()


@dataclass(slots=True)
class _Failure:
    reason: str
    message: str
    cause: str


def compute(metrics: Sequence[Mapping[str, Any]], selector: str, view: MetricView, rivals: Sequence[str]) -> Computed:
    refused = _unusable_selector(selector, rivals)
    if refused is not None:
        return refused
    best, name, statuses = 0, "", []
    failures: list[_Failure] = []
    for metric in metrics:
        try:
            replicas, status = _propose(metric, view)
        except _Failed as failed:
            failures.append(failed.failure)
            statuses.append(_NOTHING_KNOWN)
            continue
        statuses.append(status)
        if best == 0 or replicas > best:
            best, name = replicas, _name(metric)
    events = tuple(Happening(failure.reason, failure.cause, "Warning") for failure in failures)
    if failures and (len(failures) == len(metrics) or best < view.current):
        first = failures[0]
        summary = f"invalid metrics ({len(failures)} invalid out of {len(metrics)}), first error is: {first.message}"
        message = f"the HPA was unable to compute the replica count: {first.cause}"
        events = (*events, Happening("FailedComputeMetricsReplicas", summary, "Warning"))
        return Computed(None, "", statuses, first.reason, message, events)
    message = f"the HPA was able to successfully calculate a replica count from {name}"
    return Computed(best, name, statuses, "ValidMetricFound", message, events)


def _unusable_selector(selector: str, rivals: Sequence[str]) -> Computed | None:
    if not selector:
        text, reason, message = (
            "selector is required",
            "InvalidSelector",
            "the HPA target's scale is missing a selector",
        )
        return _refused("SelectorRequired", text, reason, message)
    if len(rivals) > 1:
        text = f"pods by selector {selector} are controlled by multiple HPAs: [{' '.join(rivals)}]"
        return _refused("AmbiguousSelector", text, "AmbiguousSelector", text)
    return None


def _refused(event: str, text: str, reason: str, message: str) -> Computed:
    events = (Happening(event, text, "Warning"), Happening("FailedComputeMetricsReplicas", text, "Warning"))
    return Computed(None, "", None, reason, message, events)


class _Failed(Exception):
    def __init__(self, failure: _Failure) -> None:
        super().__init__(failure.cause)
        self.failure = failure


def _propose(metric: Mapping[str, Any], view: MetricView) -> tuple[int, Mapping[str, Any]]:
    """Return the replicas and the metric's status. Raise `_Failed`."""
    kind = metric["type"]
    if kind not in _SOURCES:
        cause = f"this cluster serves no metrics of type {kind}, only Resource, ContainerResource and External"
        raise _Failed(_Failure(_FAILED.get(kind, "InvalidMetricSourceType"), cause, cause))
    if kind == "External":
        return _propose_external(metric, view)
    target = read_target(metric)
    try:
        proposal = propose(target, view)
        return proposal.replicas, _status(metric, proposal)
    except CannotCompute as problem:
        cause = f"failed to get {target.resource} {'utilization' if target.average is None else 'usage'}: {problem}"
        where = "resource" if kind == "Resource" else "container"
        message = f"failed to get {target.resource} {where} metric value: {cause}"
        raise _Failed(_Failure(_FAILED[kind], message, cause)) from problem


def _propose_external(metric: Mapping[str, Any], view: MetricView) -> tuple[int, Mapping[str, Any]]:
    source = metric["external"]
    try:
        replicas, current = propose_external(metric, view)
    except CannotCompute as problem:
        name, cause = name_of_metric(metric), str(problem)
        per_pod = (source.get("target") or {}).get("averageValue") is not None
        which = f"{name} external metric" if per_pod else f"external metric {name}"
        message = f"failed to get {name} external metric value: failed to get {which}: {cause}"
        raise _Failed(_Failure(_FAILED["External"], message, cause)) from problem
    amounts = {key: write_amount("", amount) for key, amount in current.items()}
    return replicas, {"type": "External", "external": {"metric": source["metric"], "current": amounts}}


def _name(metric: Mapping[str, Any]) -> str:
    if metric["type"] == "External":
        return shown_name(metric)
    target = read_target(metric)
    if target.average is not None:
        return f"{target.resource} resource"
    of = "container resource" if target.container else "resource"
    return f"{target.resource} {of} utilization (percentage of request)"


def _status(metric: Mapping[str, Any], proposal: Proposal) -> Mapping[str, Any]:
    target = read_target(metric)
    current: dict[str, Any] = {"averageValue": write_amount(target.resource, proposal.average)}
    if proposal.utilisation is not None:
        current["averageUtilization"] = proposal.utilisation
    source = {"name": target.resource, "current": current}
    if target.container:
        source["container"] = target.container
    return {"type": metric["type"], _SOURCES[metric["type"]]: source}
