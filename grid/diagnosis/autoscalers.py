"""Explains a HorizontalPodAutoscaler: what it measures against which target, and why it cannot or does not act; pure.

The reasons and messages are those of Kubernetes 1.36's own controller.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from grid.diagnosis.diagnosis import Diagnosis, quoted, since
from grid.kube.objects import Autoscaler, Condition, ExternalMetric, Metric
from grid.quantity import millicores
from grid.wording import plural

_TOLERANCE = 1.1  # Kubernetes does not scale within 10 percent of the target
_FIRST_MEASUREMENT = timedelta(minutes=2)
_NAMES = {"cpu": "CPU", "memory": "memory"}
# The metrics API answers, but has no metrics of these pods.
_NOTHING_YET = ("did not receive metrics for targeted pods", "no metrics returned")
_NO_ANSWER = (
    "unable to fetch metrics",
    "unable to get external metric",
    "the server could not find",
)

_SAME_PODS = re.compile(r"controlled by multiple HPAs: \[([^\]]+)\]")


@dataclass(frozen=True, slots=True)
class Load:
    """One metric of an autoscaler against its target: the workers' average use in percent of their requests, or the number of workers that
    the framework would like to have, against the maximum. `current` is None while it is not known."""

    name: str
    target: int
    current: int | None
    is_demand: bool = False

    @property
    def is_over(self) -> bool:
        return self.current is not None and self.current > self.target * _TOLERANCE

    @property
    def now(self) -> str:
        return "not known" if self.current is None else self._amount(self.current)

    @property
    def against(self) -> str:
        return f"{'maximum' if self.is_demand else 'target'} {self._amount(self.target)}"

    @property
    def words(self) -> str:
        if self.is_demand and self.current is not None:
            return f"the framework would like to have {self.now}"
        return f"{self.name} {self.now}, {self.against}"

    def _amount(self, count: int) -> str:
        return plural(count, "worker") if self.is_demand else f"{count} %"


def loads(autoscaler: Autoscaler, *, maximum: int) -> tuple[Load, ...]:
    """Return the metrics that the autoscaler follows, with their last measured values. `maximum` is the cluster's own, because the
    autoscaler's is lower while workers end."""
    known = autoscaler.status.current_metrics or ()
    found = (
        _demand(metric.external, known, autoscaler.status.current_replicas, maximum)
        if metric.external is not None
        else _use(metric, known)
        for metric in autoscaler.spec.metrics
    )
    return tuple(load for load in found if load is not None)


def _use(metric: Metric, known: Sequence[Metric]) -> Load | None:
    if metric.resource is None or metric.resource.target.average_utilization is None:
        return None
    name = metric.resource.name
    measured = (one.resource for one in known if one.resource is not None and one.resource.name == name)
    current = next((one.current.average_utilization for one in measured), None)
    return Load(_NAMES.get(name, name), metric.resource.target.average_utilization, current)


def _demand(metric: ExternalMetric, known: Sequence[Metric], replicas: int, maximum: int) -> Load:
    """Return the demand in workers. The metric's target is one per worker, and Kubernetes reports the demand divided by the replicas."""
    name = metric.metric.name
    measured = (one.external for one in known if one.external is not None and one.external.metric.name == name)
    each = next((_thousandths(one.current.average_value) for one in measured), None)
    wanted = None if each is None else round(each * replicas / 1000)
    return Load("Wanted by the framework", maximum, wanted, is_demand=True)


def _thousandths(amount: str) -> int | None:
    try:
        return millicores(amount)
    except ValueError:
        return None


def conditions(autoscaler: Autoscaler) -> Mapping[str, Condition]:
    return {one.type: one for one in autoscaler.status.conditions or ()}


def explain_autoscaler(autoscaler: Autoscaler, *, ready_since: datetime | None, now: datetime) -> Diagnosis | None:
    """Explain why the number of workers does not follow the load; None while it does. `ready_since` is when the first of the present
    workers became ready: before that there was nothing to measure."""
    found = conditions(autoscaler)
    able, active = found.get("AbleToScale"), found.get("ScalingActive")
    if able is not None and able.status == "False":
        sentence = "The autoscaler cannot change the number of workers, so it stays as it is."
        step = "Ask an operator to look at the autoscaler's messages below."
        return Diagnosis("cannot_scale", sentence, "problem", "operator", step, _evidence(able))
    if active is None or active.status != "False" or active.reason == "ScalingDisabled":
        return None
    return _no_metrics(active, ready_since, now)


def _no_metrics(active: Condition, ready_since: datetime | None, now: datetime) -> Diagnosis:
    evidence, message = _evidence(active), active.message
    if any(part in message for part in _NOTHING_YET):
        moments = [at for at in (active.last_transition_time, ready_since) if at is not None]
        waited = since(max(moments, default=None), now)
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
    if active.reason == "AmbiguousSelector":
        named = _SAME_PODS.search(message)
        who = f" ({', '.join(named[1].split())})" if named else ""
        sentence = (
            f"Several HorizontalPodAutoscalers select the same workers{who}, so none of them changes their number."
        )
        step = "Ask an operator to delete the others, or to change what they select."
        return Diagnosis("ambiguous_selector", sentence, "problem", "operator", step, evidence)
    if active.reason == "FailedGetExternalMetric":
        sentence = "The framework's waiting work cannot be read, so the number of workers does not follow it."
        step = "It recovers by itself when the head answers; if it does not, ask an operator."
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
