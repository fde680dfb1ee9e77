"""Explains a HorizontalPodAutoscaler: what it measures against which target, and why it cannot or does not act; pure.

The reasons and messages are those of Kubernetes 1.36's own controller.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from grid.diagnosis.diagnosis import Diagnosis, quoted, since
from grid.kube.objects import Autoscaler, Condition, Metric

_TOLERANCE = 1.1  # within it Kubernetes does not act
_FIRST_MEASUREMENT = timedelta(minutes=2)
_NAMES = {"cpu": "CPU", "memory": "memory"}
_NO_ANSWER = (
    "unable to fetch metrics",
    "no metrics returned",
    "unable to get external metric",
    "the server could not find",
)


@dataclass(frozen=True, slots=True)
class Load:
    """One metric: percent of the requests on average over the workers, or workers that the framework asks for.
    `current` is None while it is not known."""

    name: str
    target: int
    current: int | None
    unit: str = " %"

    @property
    def is_over(self) -> bool:
        return self.current is not None and self.current > self.target * _TOLERANCE

    @property
    def words(self) -> str:
        now = "not known" if self.current is None else f"{self.current}{self.unit}"
        return f"{self.name} {now}, target {self.target}{self.unit}"


def loads(autoscaler: Autoscaler) -> tuple[Load, ...]:
    """The resource metrics that it follows, with what it measured last."""
    current = {
        metric.resource.name: metric.resource.current.average_utilization
        for metric in autoscaler.status.current_metrics or ()
        if metric.resource is not None
    }
    return tuple(
        Load(_NAMES.get(name, name), target, current.get(name))
        for metric in autoscaler.spec.metrics
        if (found := _resource_target(metric)) is not None
        for name, target in (found,)
    )


def _resource_target(metric: Metric) -> tuple[str, int] | None:
    if metric.resource is None or metric.resource.target.average_utilization is None:
        return None
    return metric.resource.name, metric.resource.target.average_utilization


def conditions(autoscaler: Autoscaler) -> Mapping[str, Condition]:
    return {one.type: one for one in autoscaler.status.conditions or ()}


def explain_autoscaler(autoscaler: Autoscaler, *, now: datetime) -> Diagnosis | None:
    """Why the number of workers does not follow the load; None while it does."""
    found = conditions(autoscaler)
    able, active = found.get("AbleToScale"), found.get("ScalingActive")
    if able is not None and able.status == "False":
        sentence = "The autoscaler cannot change the number of workers, so it stays as it is."
        step = "Ask an operator to look at the autoscaler's messages below."
        return Diagnosis("cannot_scale", sentence, "problem", "operator", step, _evidence(able))
    if active is None or active.status != "False" or active.reason == "ScalingDisabled":
        return None
    return _no_metrics(active, now)


def _no_metrics(active: Condition, now: datetime) -> Diagnosis:
    evidence, message = _evidence(active), active.message
    if "did not receive metrics for targeted pods" in message:
        waited = since(active.last_transition_time, now)
        sentence = "The workers have not been measured yet, so their number does not follow the load."
        if waited < _FIRST_MEASUREMENT:
            step = "Nothing to do: the first measurement takes up to a minute."
            return Diagnosis("not_measured_yet", sentence, "wait", "", step, evidence)
        step = "Ask an operator to look at the metrics server."
        return Diagnosis("metrics_missing", sentence, "problem", "operator", step, evidence)
    if "missing request for" in message:
        sentence = "The workers' tier asks for no CPU or memory, so there is nothing to measure their load against."
        step = "Ask your admin to give the tier requests; then launch again."
        return Diagnosis("requests_missing", sentence, "problem", "admin", step, evidence)
    if active.reason == "FailedGetExternalMetric":
        sentence = "What the framework has waiting cannot be read, so the number of workers does not follow it."
        step = "It goes on by itself when the head answers; ask an operator if it stays so."
        return Diagnosis("demand_missing", sentence, "problem", "operator", step, evidence)
    if active.reason == "FailedGetResourceMetric" and any(part in message for part in _NO_ANSWER):
        sentence = "There is no metrics server that answers, so the number of workers does not follow the load."
        step = "Ask an operator to start the metrics server (metrics.k8s.io); until then set the workers by hand."
        return Diagnosis("metrics_missing", sentence, "problem", "operator", step, evidence)
    sentence = "The autoscaler cannot work out how many workers are needed, so their number stays as it is."
    step = "Ask an operator to look at the messages below."
    return Diagnosis("scaling_inactive", sentence, "problem", "operator", step, evidence)


def _evidence(condition: Condition) -> tuple[str, ...]:
    return quoted(f"{condition.type} {condition.status}, {condition.reason}: {condition.message}")
