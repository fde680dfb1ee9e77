"""Parsing of Kubernetes' objects into the data that the rules read, and formatting of amounts."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from grid.core.quantity import millicores
from grid.core.regexes import RepeatedExpression
from grid.sandbox.client import condition_of, is_terminating, name_of, parse_time
from grid.sandbox.controllers.scaling.model import NamespaceUsage, PodMetrics, PodState
from grid.sandbox.controllers.scaling.proposal import MetricTarget

_EPOCH = datetime.fromtimestamp(0, UTC)
_DURATION = RepeatedExpression(r"(\d+(?:\.\d+)?)(ms|us|µs|ns|h|m|s)")
_UNIT_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_SET_REQUIREMENT = RepeatedExpression(r"([^\s,]+)\s+(in|notin)\s+\(([^)]*)\)")
_BINARY = (("Ei", 2**60), ("Pi", 2**50), ("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))
_DECIMAL = (("P", 10**18), ("T", 10**15), ("G", 10**12), ("M", 10**9), ("k", 10**6), ("", 10**3))


def read_pod(pod: Mapping[str, Any]) -> PodState:
    status = pod.get("status") or {}
    ready = condition_of(pod, "Ready")
    return PodState(
        name=name_of(pod),
        phase=str(status.get("phase", "")),
        terminating=is_terminating(pod),
        ready=None if ready is None else ready.get("status") != "False",
        ready_since=parse_time(ready.get("lastTransitionTime")) if ready else None,
        started=parse_time(status.get("startTime")),
        requests=read_requests(pod.get("spec") or {}),
    )


def read_requests(spec: Mapping[str, Any]) -> tuple[tuple[str, Mapping[str, int]], ...]:
    """Return the requests of the containers that run as long as the pod: the main ones and sidecars."""
    sidecars = [item for item in spec.get("initContainers") or () if item.get("restartPolicy") == "Always"]
    return tuple(
        (item["name"], _thousandths((item.get("resources") or {}).get("requests")))
        for item in [*(spec.get("containers") or ()), *sidecars]
    )


def read_usage(namespace: str, items: Iterable[Mapping[str, Any]]) -> NamespaceUsage:
    """Parse PodMetrics objects."""
    return NamespaceUsage(namespace, {name_of(item): _pod_usage(item) for item in items})


def _pod_usage(item: Mapping[str, Any]) -> PodMetrics:
    containers = {entry["name"]: _thousandths(entry.get("usage")) for entry in item.get("containers") or ()}
    return PodMetrics(
        containers, parse_time(item.get("timestamp")) or _EPOCH, read_duration(item.get("window") or "0s")
    )


def read_duration(text: str) -> timedelta:
    """Parse a duration as Go writes it: `10s`, `1m0s`, `15.2s`."""
    return timedelta(seconds=sum(float(number) * _UNIT_SECONDS[unit] for number, unit in _DURATION.findall(text)))


def read_target(metric: Mapping[str, Any]) -> MetricTarget:
    """Return the target of a metric of type Resource or ContainerResource."""
    source = metric.get("resource") or metric.get("containerResource") or {}
    target = source.get("target") or {}
    average = target.get("averageValue")
    return MetricTarget(
        resource=str(source.get("name", "")),
        utilisation=target.get("averageUtilization"),
        average=None if average is None else millicores(average),
        container=str(source.get("container", "")),
    )


def read_selector(text: str) -> dict[str, Any]:
    """Parse the text of a scale's selector, like `app=web,tier in (a,b),!old`, into a LabelSelector."""
    expressions = []
    for key, operator, values in _SET_REQUIREMENT.findall(text):
        names = [value.strip() for value in values.split(",")]
        expressions.append({"key": key, "operator": "In" if operator == "in" else "NotIn", "values": names})
    for part in filter(None, (part.strip() for part in _SET_REQUIREMENT.sub("", text).split(","))):
        if part.startswith("!"):
            expressions.append({"key": part[1:], "operator": "DoesNotExist"})
        elif "!=" in part:
            key, _, value = part.partition("!=")
            expressions.append({"key": key, "operator": "NotIn", "values": [value]})
        elif "=" in part:
            key, _, value = part.partition("=")
            expressions.append({"key": key, "operator": "In", "values": [value.removeprefix("=")]})
        else:
            expressions.append({"key": part, "operator": "Exists"})
    return {"matchExpressions": expressions}


def _thousandths(quantities: Mapping[str, Any] | None) -> dict[str, int]:
    # Bytes need no thousandths, but one unit for all resources keeps the rules free of exceptions.
    return {name: millicores(text) for name, text in (quantities or {}).items()}


def write_amount(resource: str, thousandths: int) -> str:
    """Return a quantity in its shortest exact form: memory in powers of 1024, everything else in powers of 1000."""
    if resource == "memory":
        whole = -(-thousandths // 1000)
        for suffix, size in _BINARY:
            if whole and whole % size == 0:
                return f"{whole // size}{suffix}"
        return str(whole)
    for suffix, size in _DECIMAL:
        if thousandths % size == 0:
            return f"{thousandths // size}{suffix}" if thousandths else "0"
    return f"{thousandths}m"
