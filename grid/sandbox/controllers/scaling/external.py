"""External metrics: replicas from numbers about something outside the pods, such as queued work.

Several values of one metric are added up. A target `value` is for the whole workload: the size is the ratio times the number of
ready pods. A target `averageValue` is per pod: the size is the sum divided by it.
"""

import math
from collections.abc import Mapping
from typing import Any

from grid.core.quantity import millicores
from grid.sandbox.controllers.scaling.model import CannotCompute, External, MetricView

_NO_TARGET = "invalid external metric source: neither a value target nor an average value target was set"


def name_of_metric(metric: Mapping[str, Any]) -> str:
    return str(metric["external"]["metric"]["name"])


def query_of(metric: Mapping[str, Any]) -> str:
    """Return the metric's selector as a query: `queue=blue,tier in (a,b)`."""
    selector = metric["external"]["metric"].get("selector") or {}
    parts = {key: f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()}
    for item in selector.get("matchExpressions") or ():
        key, operator, values = item["key"], item["operator"], ",".join(sorted(item.get("values") or ()))
        negation = "notin" if operator == "NotIn" else "in"
        texts = {"Exists": key, "DoesNotExist": f"!{key}"}
        parts[f"{key} {operator}"] = texts.get(operator, f"{key} {negation} ({values})")
    return ",".join(text for _, text in sorted(parts.items()))


def shown_selector(metric: Mapping[str, Any]) -> str:
    """Return the selector as Go prints it, because the real controller's messages contain it in this form."""
    selector = metric["external"]["metric"].get("selector")
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    requirements = "".join(
        f"LabelSelectorRequirement{{Key:{item['key']},Operator:{item['operator']},"
        f"Values:[{' '.join(item.get('values') or ())}],}},"
        for item in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{requirements}}},}}"
    )


def shown_name(metric: Mapping[str, Any]) -> str:
    return f"external metric {name_of_metric(metric)}({shown_selector(metric)})"


def propose_external(metric: Mapping[str, Any], view: MetricView) -> tuple[int, dict[str, int]]:
    """Return the replicas, and the current value for the status, in thousandths. Raise `CannotCompute`."""
    target = metric["external"].get("target") or {}
    if target.get("averageValue") is not None:
        return _per_pod(_total(metric, view), millicores(target["averageValue"]), view)
    if target.get("value") is not None:
        return _for_all(_total(metric, view), millicores(target["value"]), view)
    raise CannotCompute(_NO_TARGET)


def _total(metric: Mapping[str, Any], view: MetricView) -> int:
    external = view.external.get((name_of_metric(metric), query_of(metric)), External())
    problem = external.problem or ("" if external.values else "no metrics returned from external metrics API")
    if problem:
        where = f"{view.usage.namespace}/{name_of_metric(metric)}/{shown_selector(metric)}"
        raise CannotCompute(f"unable to get external metric {where}: {problem}")
    return sum(external.values)


def _per_pod(total: int, wanted: int, view: MetricView) -> tuple[int, dict[str, int]]:
    # Without pods there is no average, so any demand is out of tolerance.
    present = view.present
    steady = present and view.tolerance.holds(total / (wanted * present))
    replicas = present if steady else math.ceil(total / wanted)
    return replicas, {"averageValue": math.ceil(total / present) if present else 0}


def _for_all(total: int, wanted: int, view: MetricView) -> tuple[int, dict[str, int]]:
    ratio, current = total / wanted, {"value": total}
    if view.current == 0:
        return math.ceil(ratio), current
    if view.tolerance.holds(ratio):
        return view.current, current
    if not view.pods:
        problem = "no pods returned by selector while calculating replica count"
        raise CannotCompute(f"unable to calculate ready pods: {problem}")
    ready = sum(1 for pod in view.pods if pod.phase == "Running" and pod.ready)
    return math.ceil(ratio * ready), current
