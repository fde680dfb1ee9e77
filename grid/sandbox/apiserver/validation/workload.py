"""Validation of Deployments, ReplicaSets, autoscalers and disruption budgets."""

from typing import Any

from grid.core.quantity import parse_quantity
from grid.core.regexes import Expression
from grid.sandbox.apiserver.kinds import Object
from grid.sandbox.apiserver.selectors import selects
from grid.sandbox.apiserver.status import StatusCause, prohibited, required, unsupported, wrong
from grid.sandbox.apiserver.validation.pod import check_pod_spec
from grid.sandbox.apiserver.validation.selectors import check_label_selector

_NOT_NEGATIVE = "must be greater than or equal to 0"
_PERCENT = Expression(r"[0-9]+%")
_POLICIES = ("Disabled", "Max", "Min")
_SOURCES = {
    "Resource": "resource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
    "ContainerResource": "containerResource",
}
_LONGEST_WINDOW, _LONGEST_PERIOD = 3600, 1800


def check_deployment(deployment: Object) -> list[StatusCause]:
    spec = deployment["spec"]
    return _check_replicated(spec) + _check_strategy(spec.get("strategy") or {})


def check_replica_set(replica_set: Object) -> list[StatusCause]:
    return _check_replicated(replica_set["spec"])


def _check_replicated(spec: Object) -> list[StatusCause]:
    causes: list[StatusCause] = []
    if spec.get("replicas", 0) < 0:
        causes.append(wrong("spec.replicas", spec["replicas"], _NOT_NEGATIVE))
    if spec.get("minReadySeconds", 0) < 0:
        causes.append(wrong("spec.minReadySeconds", spec["minReadySeconds"], _NOT_NEGATIVE))
    selector = spec.get("selector")
    if selector is None:
        causes.append(required("spec.selector"))
    else:
        causes += check_label_selector(selector, "spec.selector")
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            detail = "empty selector is invalid for deployment"
            causes.append(wrong("spec.selector", selector, detail))
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    if selector is None or (not causes and not selects(selector, labels)):
        detail = "`selector` does not match template `labels`"
        causes.append(wrong("spec.template.metadata.labels", labels, detail))
    pod = template.get("spec") or {}
    causes += check_pod_spec(pod, "spec.template.spec")
    if pod.get("restartPolicy") in ("OnFailure", "Never"):
        causes.append(unsupported("spec.template.spec.restartPolicy", pod["restartPolicy"], ("Always",)))
    return causes


def _check_strategy(strategy: Object) -> list[StatusCause]:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind not in ("Recreate", "RollingUpdate"):
        return [unsupported("spec.strategy", strategy, ("Recreate", "RollingUpdate"))]
    if kind == "Recreate":
        detail = "may not be specified when strategy `type` is 'Recreate'"
        return [prohibited("spec.strategy.rollingUpdate", detail)] if rolling is not None else []
    causes: list[StatusCause] = []
    for field in ("maxUnavailable", "maxSurge"):
        causes += check_share((rolling or {}).get(field), f"spec.strategy.rollingUpdate.{field}")
    unavailable, surge = (rolling or {}).get("maxUnavailable"), (rolling or {}).get("maxSurge")
    if not causes and _is_zero(unavailable) and _is_zero(surge):
        path = "spec.strategy.rollingUpdate.maxUnavailable"
        causes.append(wrong(path, unavailable, "may not be 0 when `maxSurge` is 0"))
    return causes


def check_share(amount: Any, path: str) -> list[StatusCause]:
    """Check a number of pods or a percentage."""
    if isinstance(amount, int) and amount < 0:
        return [wrong(path, amount, _NOT_NEGATIVE)]
    if isinstance(amount, str) and not _PERCENT.fullmatch(amount):
        detail = (
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
            "validation is '[0-9]+%')"
        )
        return [wrong(path, amount, detail)]
    if isinstance(amount, str) and int(amount[:-1]) > 100:
        return [wrong(path, amount, "must not be greater than 100%")]
    return []


def _is_zero(amount: Any) -> bool:
    return amount in (0, "0%", "0")


def check_deployment_update(new: Object, old: Object) -> list[StatusCause]:
    selector = new["spec"].get("selector")
    return [] if selector == old["spec"].get("selector") else [wrong("spec.selector", selector, "field is immutable")]


def check_autoscaler(autoscaler: Object) -> list[StatusCause]:
    spec = autoscaler["spec"]
    causes: list[StatusCause] = []
    least, most = spec.get("minReplicas", 1), spec.get("maxReplicas", 0)
    if least < 1:
        causes.append(wrong("spec.minReplicas", least, "must be greater than or equal to 1"))
    if most < 1:
        causes.append(required("spec.maxReplicas", "must be set and greater than 0"))
    if most < least:
        causes.append(wrong("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
    causes += _check_scale_target(spec.get("scaleTargetRef") or {})
    causes += _check_metrics(spec.get("metrics") or [], least)
    for direction in ("scaleUp", "scaleDown"):
        rules = (spec.get("behavior") or {}).get(direction)
        if rules is not None:
            causes += _check_rules(rules, f"spec.behavior.{direction}")
    return causes


def _check_scale_target(target: Object) -> list[StatusCause]:
    causes = [required(f"spec.scaleTargetRef.{field}") for field in ("kind", "name") if not target.get(field)]
    version = target.get("apiVersion", "")
    if not version:
        causes.append(wrong("spec.scaleTargetRef.apiVersion", version, "apiVersion must specify API group"))
    return causes


def _check_metrics(metrics: list[Object], least: int) -> list[StatusCause]:
    causes: list[StatusCause] = []
    for number, metric in enumerate(metrics):
        path = f"spec.metrics[{number}]"
        kind = metric.get("type", "")
        if kind not in _SOURCES:
            causes.append(unsupported(f"{path}.type", kind, tuple(sorted(_SOURCES))))
            continue
        source = metric.get(_SOURCES[kind])
        if source is None:
            causes.append(required(f"{path}.{_SOURCES[kind]}", "must populate information for the given metric source"))
        else:
            causes += _check_metric_target(source, f"{path}.{_SOURCES[kind]}")
    if least == 0 and not any(metric.get("type") in ("Object", "External") for metric in metrics):
        detail = "must specify at least one Object or External metric to support scaling to zero replicas"
        causes.append(prohibited("spec.metrics", detail))
    return causes


def _check_metric_target(source: Object, path: str) -> list[StatusCause]:
    target = source.get("target") or {}
    utilization = target.get("averageUtilization")
    if utilization is not None and utilization < 1:
        return [wrong(f"{path}.target.averageUtilization", utilization, "must be greater than 0")]
    for field in ("averageValue", "value"):
        if field in target and parse_quantity(target[field]) <= 0:
            return [wrong(f"{path}.target.{field}", target[field], "must be positive")]
    if utilization is None and "averageValue" not in target and "value" not in target:
        detail = "must set either a target raw value or a target utilization"
        return [required(f"{path}.target.averageUtilization", detail)]
    if utilization is not None and "averageValue" in target:
        detail = "may not set both a target raw value and a target utilization"
        return [prohibited(f"{path}.target.averageValue", detail)]
    return []


def _check_rules(rules: Object, path: str) -> list[StatusCause]:
    causes: list[StatusCause] = []
    window = rules.get("stabilizationWindowSeconds", 0)
    if window < 0:
        causes.append(wrong(f"{path}.stabilizationWindowSeconds", window, "must be greater than or equal to zero"))
    if window > _LONGEST_WINDOW:
        detail = f"must be less than or equal to {_LONGEST_WINDOW}"
        causes.append(wrong(f"{path}.stabilizationWindowSeconds", window, detail))
    if rules.get("selectPolicy", "Max") not in _POLICIES:
        causes.append(unsupported(f"{path}.selectPolicy", rules["selectPolicy"], _POLICIES))
    for number, policy in enumerate(rules.get("policies") or ()):
        causes += _check_policy(policy, f"{path}.policies[{number}]")
    if "tolerance" in rules and parse_quantity(rules["tolerance"]) < 0:
        causes.append(wrong(f"{path}.tolerance", rules["tolerance"], _NOT_NEGATIVE))
    return causes


def _check_policy(policy: Object, path: str) -> list[StatusCause]:
    causes: list[StatusCause] = []
    if policy.get("type") not in ("Percent", "Pods"):
        causes.append(unsupported(f"{path}.type", policy.get("type"), ("Percent", "Pods")))
    if policy.get("value", 0) <= 0:
        causes.append(wrong(f"{path}.value", policy.get("value", 0), "must be greater than zero"))
    period = policy.get("periodSeconds", 0)
    if period <= 0:
        causes.append(wrong(f"{path}.periodSeconds", period, "must be greater than zero"))
    elif period > _LONGEST_PERIOD:
        causes.append(wrong(f"{path}.periodSeconds", period, f"must be less than or equal to {_LONGEST_PERIOD}"))
    return causes


def check_budget(budget: Object) -> list[StatusCause]:
    spec = budget.get("spec") or {}
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if least is not None and most is not None:
        given = {
            "MinAvailable": least,
            "Selector": spec.get("selector"),
            "MaxUnavailable": most,
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        return [wrong("spec", given, "minAvailable and maxUnavailable cannot be both set")]
    causes = check_share(least, "spec.minAvailable") + check_share(most, "spec.maxUnavailable")
    return causes + check_label_selector(spec.get("selector") or {}, "spec.selector")
