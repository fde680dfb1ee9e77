"""Puts the autoscaler into words: its metrics and their targets, and what it does or waits for; pure."""

from dataclasses import dataclass
from typing import Literal

from dashboard.clusters.viewmodels.clusters import ClusterRecord, workers_words
from dashboard.shell.viewmodels.format import either
from dashboard.shell.viewmodels.live import Fragment
from dashboard.shell.viewmodels.states import StatusLine
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import plural
from grid.diagnosis.autoscalers import Load, conditions, loads
from grid.kube.objects import Autoscaler, Condition

_Meaning = tuple[Literal["ok", "wait", "problem"], str]
_ABLE: dict[str, _Meaning] = {
    "ReadyForNewScale": ("ok", _("The number of workers is right for the load.")),
    "SucceededRescale": ("ok", _("It has just changed the number of workers.")),
    "SucceededGetScale": ("ok", _("It can read and change the number of workers.")),
    "ScaleDownStabilized": ("wait", _("Load is low; scaling down after the waiting period.")),
    "ScaleUpStabilized": ("wait", _("Load is high; scaling up after the waiting period.")),
    "BackoffDownscale": ("wait", _("It removed workers recently, and waits before it removes more.")),
    "BackoffUpscale": ("wait", _("It added workers recently, and waits before it adds more.")),
    "BackoffBoth": ("wait", _("It changed the number of workers recently, and waits before the next change.")),
    "FailedGetScale": ("problem", _("It cannot read how many workers there are.")),
    "FailedUpdateScale": ("problem", _("It could not change the number of workers, and tries again.")),
    "AmbiguousSelector": ("problem", _("Two autoscalers claim the same workers, so neither acts.")),
}
_ACTIVE: dict[str, _Meaning] = {
    "ValidMetricFound": ("ok", _("It can measure the workers' load.")),
    "ScalingDisabled": ("wait", _("It is idle: there are no workers.")),
    "FailedGetResourceMetric": ("problem", _("It cannot measure the workers' CPU or memory.")),
    "FailedGetExternalMetric": ("problem", _("It cannot read what the framework has waiting.")),
    "FailedGetPodsMetric": ("problem", _("It cannot measure the workers.")),
    "FailedGetObjectMetric": ("problem", _("It cannot read its metric.")),
    "FailedGetContainerResourceMetric": ("problem", _("It cannot measure the workers' CPU or memory.")),
    "FailedComputeMetricsReplicas": ("problem", _("It cannot compute how many workers are needed.")),
    "AmbiguousSelector": ("problem", _("Two autoscalers claim the same workers, so neither acts.")),
    "InvalidSelector": ("problem", _("It cannot tell which pods are its workers.")),
    "InvalidMetricSourceType": ("problem", _("It was given a metric that it does not know.")),
}
_LIMITED: dict[str, _Meaning] = {
    "DesiredWithinRange": ("ok", _("The computed number lies between minimum and maximum.")),
    "TooManyReplicas": ("wait", _("It would add more, but the maximum is reached.")),
    "TooFewReplicas": ("ok", _("It would remove more, but the minimum is reached.")),
    "ScaleUpLimit": ("wait", _("More workers are needed than may be added at once; the rest follows soon.")),
    "ScaleDownLimit": (
        "wait",
        _("Fewer workers are needed, but not all may be removed at once; the rest follows soon."),
    ),
}
_FOR_SLOTS = StatusLine("wait", _("It adds more when the ending workers are gone; until then they hold their slots."))
# What waits may be too little for one more worker, or be newer than the last measurement.
_WAITS_ALL_THE_SAME = StatusLine(
    "ok", _("It can change the number of workers; the last measurement asked for no change.")
)
_MEANINGS = {"AbleToScale": _ABLE, "ScalingActive": _ACTIVE, "ScalingLimited": _LIMITED}
_BAD_STATUS = {"AbleToScale": "False", "ScalingActive": "False", "ScalingLimited": "True"}


@dataclass(frozen=True, slots=True)
class ConditionLine:
    """A condition of the autoscaler in words; `reason` is Kubernetes' own."""

    status: StatusLine
    reason: str


@dataclass(frozen=True, slots=True)
class Autoscaling:
    """An autoscaler in words: `sentence` says how the number of workers is chosen, `now` what the autoscaler does now."""

    sentence: str
    now: str
    loads: tuple[Load, ...]
    demand: str
    conditions: tuple[ConditionLine, ...]


def autoscaling(cluster: ClusterRecord, autoscaler: Autoscaler | None, *, is_final: bool) -> Fragment:
    maximum, waiting = cluster.workers_maximum, None if is_final else cluster.pending_tasks
    demand = _demand(cluster, waiting)
    shown = Autoscaling(_sentence(cluster), "", (), demand, ())
    if cluster.autoscale and autoscaler is not None and not is_final:
        lines = condition_lines(autoscaler, maximum=maximum, work_waits=bool(waiting))
        shown = Autoscaling(shown.sentence, _now(autoscaler), loads(autoscaler, maximum=maximum), demand, lines)
    return Fragment("autoscaling", "clusters/fragments/autoscaling.html", shown)


def condition_lines(autoscaler: Autoscaler, *, maximum: int, work_waits: bool = False) -> tuple[ConditionLine, ...]:
    """Return the conditions in Kubernetes' order. The autoscaler's own maximum is below the cluster's `maximum` while workers end."""
    known = conditions(autoscaler)
    is_short = autoscaler.spec.max_replicas < maximum
    return tuple(_line(known[kind], is_short, work_waits) for kind in _MEANINGS if kind in known)


def _line(condition: Condition, is_short: bool, work_waits: bool) -> ConditionLine:
    bad = condition.status == _BAD_STATUS[condition.type]
    if is_short and condition.reason == "TooManyReplicas":
        return ConditionLine(_FOR_SLOTS, condition.reason)
    if work_waits and condition.reason == "ReadyForNewScale":
        return ConditionLine(_WAITS_ALL_THE_SAME, condition.reason)
    words = condition.message or _("{type} is {status}.", type=condition.type, status=condition.status)
    unknown: _Meaning = ("problem" if bad else "ok", words)
    severity, sentence = _MEANINGS[condition.type].get(condition.reason, unknown)
    return ConditionLine(StatusLine(severity, sentence), condition.reason)


def _sentence(cluster: ClusterRecord) -> str:
    words = workers_words(cluster.workers_minimum, cluster.workers_maximum, autoscale=cluster.autoscale)
    if not cluster.autoscale:
        return _("{workers}; their number changes only by “Change workers”.", workers=words)
    cpu = _("{target} % of the requested CPU", target=cluster.target_cpu)
    memory = _("{target} % of the requested memory", target=cluster.target_memory)
    targets = [words for words, target in ((cpu, cluster.target_cpu), (memory, cluster.target_memory)) if target]
    parts = [_("their average use passes {targets}", targets=either(targets))] if targets else []
    if cluster.on_demand:
        parts.append(_("more tasks wait in {framework} than they can take", framework=cluster.framework_name))
    if len(parts) > 1:
        return _("{workers}. It grows when {one}, or when {other}.", workers=words, one=parts[0], other=parts[1])
    return _("{workers}. It grows when {cause}.", workers=words, cause=parts[0]) if parts else f"{words}."


def _demand(cluster: ClusterRecord, tasks: int | None) -> str:
    if not tasks:
        return "" if tasks is None else _("No task waits for a worker.")
    waiting = ngettext("{count:,} task waits for a worker.", "{count:,} tasks wait for a worker.", tasks)
    if not cluster.autoscale or cluster.on_demand:
        return waiting
    step = _("The autoscaler does not count them; a cluster with “Also grow for waiting tasks” grows for them.")
    return f"{waiting} {step}"


def _now(autoscaler: Autoscaler) -> str:
    status = autoscaler.status
    if not status.desired_replicas:
        return _("It has not computed a number yet.")
    if status.desired_replicas == status.current_replicas:
        return _("It keeps {workers}.", workers=plural(status.current_replicas, "worker", "workers"))
    now, workers = status.current_replicas, plural(status.desired_replicas, "worker", "workers")
    if status.desired_replicas > now:
        return _("It grows from {now} to {workers}.", now=now, workers=workers)
    return _("It shrinks from {now} to {workers}.", now=now, workers=workers)
