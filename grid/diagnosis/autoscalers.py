"""Explains a HorizontalPodAutoscaler: what it measures against which target, and why it cannot or does not act; pure.

The reasons and messages are those of Kubernetes 1.36's own controller.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from grid.core.quantity import millicores
from grid.core.regexes import Expression
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import capitalised, folded, listed, plural
from grid.diagnosis.diagnosis import Diagnosis, quoted, since
from grid.kube.objects import Autoscaler, Condition, ExternalMetric, Metric

_TOLERANCE = 1.1  # Kubernetes does not scale within 10 percent of the target
_FIRST_MEASUREMENT = timedelta(minutes=2)
_NAMES = {"cpu": "CPU", "memory": _("memory")}
# The metrics API answers, but has no metrics of these pods.
_NOTHING_YET = ("did not receive metrics for targeted pods", "no metrics returned")
_NO_ANSWER = ("unable to fetch metrics", "unable to get external metric")
_NO_SERVER = "the server could not find"  # nobody serves metrics.k8s.io
_BY_HAND = _("until then set the number of workers by hand.")
_NOT_REQUESTED = Expression(r"missing request for (\S+)(?: in container (\S+))?")
_FRAME = Expression(r"^the HPA [\w' ]+: ")  # what the controller was about to do
_SAME_PODS = Expression(r"controlled by multiple HPAs: \[([^\]]+)\]")


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
        return _("not known") if self.current is None else self._amount(self.current)

    @property
    def against(self) -> str:
        amount = self._amount(self.target)
        return _("maximum {amount}", amount=amount) if self.is_demand else _("target {amount}", amount=amount)

    @property
    def words(self) -> str:
        if self.is_demand and self.current is not None:
            return _("the framework would like to have {now}", now=self.now)
        return f"{self.name} {self.now}, {self.against}"

    def _amount(self, count: int) -> str:
        return plural(count, "worker", "workers") if self.is_demand else f"{count} %"


def loads(autoscaler: Autoscaler, *, maximum: int) -> tuple[Load, ...]:
    """Return its metrics with their last values. `maximum` is the cluster's own, because the autoscaler's is lower while workers end."""
    known = autoscaler.status.current_metrics or ()
    all_loads = (
        _demand(metric.external, known, autoscaler.status.current_replicas, maximum)
        if metric.external is not None
        else _use(metric, known)
        for metric in autoscaler.spec.metrics
    )
    return tuple(load for load in all_loads if load is not None)


def _use(metric: Metric, known: Sequence[Metric]) -> Load | None:
    if metric.resource is None or metric.resource.target.average_utilization is None:
        return None
    name, resources = metric.resource.name, (each.resource for each in known if each.resource is not None)
    current = next((each.current.average_utilization for each in resources if each.name == name), None)
    return Load(_NAMES.get(name, name), metric.resource.target.average_utilization, current)


def _demand(metric: ExternalMetric, known: Sequence[Metric], replicas: int, maximum: int) -> Load:
    """Return the demand in workers. The metric's target is one per worker, and Kubernetes reports the demand divided by the replicas."""
    name, measured = metric.metric.name, (each.external for each in known if each.external is not None)
    amount = next((each.current.average_value for each in measured if each.metric.name == name), "")
    wanted: int | None
    try:
        wanted = round(millicores(amount) * replicas / 1000)
    except ValueError:
        wanted = None
    return Load(_("Wanted by the framework"), maximum, wanted, is_demand=True)


def conditions(autoscaler: Autoscaler) -> Mapping[str, Condition]:
    return {condition.type: condition for condition in autoscaler.status.conditions or ()}


def explain_autoscaler(autoscaler: Autoscaler, *, ready_since: datetime | None, now: datetime) -> Diagnosis | None:
    """Explain why the number of workers does not follow the load; None while it does. `ready_since` is when the first of the present
    workers became ready: before that there was nothing to measure."""
    by_type = conditions(autoscaler)
    able, active = by_type.get("AbleToScale"), by_type.get("ScalingActive")
    if able is not None and able.status == "False":
        return _cannot_scale(able)
    if active is None or active.reason == "ScalingDisabled":
        return None
    missing = _missing_metrics(autoscaler)
    if active.status != "False":
        return _partly_measured(missing, ()) if missing else None
    if missing and _is_nothing_yet(active):
        return _partly_measured(missing, _evidence(active))
    return _no_metrics(active, ready_since, now)


def _cannot_scale(able: Condition) -> Diagnosis:
    if able.reason == "FailedGetScale" and able.message.endswith("not found"):
        sentence = _("The workers' Deployment does not exist, so the autoscaler has nothing to scale.")
        step = _("Compute Grid creates a deleted Deployment again by itself; if this stays, ask an operator.")
    elif "the object has been modified" in able.message:
        sentence = _(
            "The number of workers was changed by something else at the same moment; the autoscaler tries again."
        )
        return Diagnosis("cannot_scale", sentence, "wait", "", _("Nothing to do."), _evidence(able))
    else:
        sentence = _("The autoscaler cannot change the number of workers, so it stays as it is: {says}.")
        sentence = sentence.format(says=_core(able))
        step = _("Ask an operator to look at the autoscaler's messages below.")
    return Diagnosis("cannot_scale", sentence, "problem", "operator", step, _evidence(able))


def _missing_metrics(autoscaler: Autoscaler) -> Sequence[Load]:
    """Return the metrics that are not known while others are; () when all or none are known."""
    all_loads = loads(autoscaler, maximum=autoscaler.spec.max_replicas)
    missing = [load for load in all_loads if load.current is None]
    return missing if len(missing) < len(all_loads) else ()


def _partly_measured(missing: Sequence[Load], evidence: tuple[str, ...]) -> Diagnosis:
    """Explain an autoscaler that knows some of its metrics only: Kubernetes scales up by those, but never down."""
    names = listed(
        _("the framework's waiting work") if load.is_demand else _("the workers' {name} use", name=load.name)
        for load in missing
    )
    singular = _("{metrics} is not known now, so the cluster may grow but does not shrink.")
    several = _("{metrics} are not known now, so the cluster may grow but does not shrink.")
    sentence = ngettext(singular, several, len(missing), metrics=capitalised(names))
    step = _("It recovers with the next measurement; if this stays, ask an operator to look at the metrics.")
    return Diagnosis("partly_measured", sentence, "wait", "operator", step, evidence)


def _is_nothing_yet(active: Condition) -> bool:
    return any(part in active.message for part in _NOTHING_YET)


def _no_metrics(active: Condition, ready_since: datetime | None, now: datetime) -> Diagnosis:
    evidence, message = _evidence(active), active.message
    if _is_nothing_yet(active):
        moments = [at for at in (active.last_transition_time, ready_since) if at is not None]
        waited = since(max(moments, default=None), now)
        if waited < _FIRST_MEASUREMENT:
            sentence = _("There are no measurements of the workers now, so their number does not follow the load.")
            step = _("Nothing to do: new workers are measured within a minute or two.")
            return Diagnosis("not_measured_yet", sentence, "wait", "", step, evidence)
        sentence = _("The metrics server has no measurements of the workers, so their number does not follow the load.")
        step = _("Ask an operator to look at the metrics server (metrics.k8s.io); {by_hand}", by_hand=_BY_HAND)
        return Diagnosis("metrics_missing", sentence, "problem", "operator", step, evidence)
    if unrequested := _NOT_REQUESTED.search(message):
        container, resource = unrequested[2], _NAMES.get(unrequested[1], unrequested[1])
        request = _("container {name} requests", name=container) if container else _("pods request")
        sentence = _(
            "The workers' {request} no {resource}, so there is nothing to compare their {resource} use with, "
            "and their number does not follow the load."
        )
        sentence = sentence.format(request=request, resource=resource)
        step = _("Ask your admin to add the request; then launch again.")
        return Diagnosis("requests_missing", sentence, "problem", "admin", step, evidence)
    if active.reason == "AmbiguousSelector":
        named = _SAME_PODS.search(message)
        who = f" ({', '.join(named[1].split())})" if named else ""
        sentence = _(
            "Several HorizontalPodAutoscalers select the same workers{names}, so none of them changes their number."
        )
        sentence = sentence.format(names=who)
        step = _("Ask an operator to delete the others, or to change what they select.")
        return Diagnosis("ambiguous_selector", sentence, "problem", "operator", step, evidence)
    if active.reason == "FailedGetExternalMetric":
        sentence = _("The framework's waiting work cannot be read, so the number of workers does not follow it.")
        step = _("It recovers by itself when the head answers; if it does not, ask an operator.")
        return Diagnosis("demand_missing", sentence, "problem", "operator", step, evidence)
    code, step = "scaling_inactive", _("Ask an operator to look at the messages below.")
    sentence = _("The autoscaler cannot work out how many workers are needed, so their number stays as it is: {says}.")
    sentence = sentence.format(says=_core(active))
    if active.reason == "FailedGetResourceMetric" and _NO_SERVER in message:
        sentence = _("There is no metrics server, so the number of workers does not follow the load.")
        code, step = "metrics_missing", _("Ask an operator to install the metrics server (metrics.k8s.io); {by_hand}")
    elif active.reason == "FailedGetResourceMetric" and any(part in message for part in _NO_ANSWER):
        sentence = _("The metrics server does not answer, so the number of workers does not follow the load.")
        code, step = "metrics_missing", _("Ask an operator to look at the metrics server (metrics.k8s.io); {by_hand}")
    return Diagnosis(code, sentence, "problem", "operator", step.format(by_hand=_BY_HAND), evidence)


def _core(condition: Condition) -> str:
    """Return what the controller says of the cause, as a part of a sentence."""
    frame = _FRAME.match(condition.message)
    return folded(condition.message[frame.end() :] if frame else condition.message) or condition.reason


def _evidence(condition: Condition) -> tuple[str, ...]:
    return quoted(f"{condition.type} {condition.status}, {condition.reason}: {condition.message}")
