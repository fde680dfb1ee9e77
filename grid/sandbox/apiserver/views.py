"""Conversion to and from other API versions: events in events.k8s.io/v1, autoscalers in autoscaling/v1."""

from collections.abc import Callable, Mapping
from typing import Any

from grid.sandbox.apiserver.kinds import Object, ServedKind

_EVENT_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_STORED_EVENT_NAMES = {view: stored for stored, view in _EVENT_NAMES.items()}


def _new_event(event: Object) -> Object:
    view = {_EVENT_NAMES.get(key, key): value for key, value in event.items()}
    for key in ("reportingController", "reportingInstance"):
        if not view.get(key):
            view.pop(key, None)
    return view


def _old_event(event: Object) -> Object:
    return {_STORED_EVENT_NAMES.get(key, key): value for key, value in event.items()}


def _old_autoscaler(autoscaler: Object) -> Object:
    """Return the autoscaler in v1, which has only the CPU utilization."""
    spec: Object = {
        key: autoscaler["spec"][key]
        for key in ("scaleTargetRef", "minReplicas", "maxReplicas")
        if key in autoscaler["spec"]
    }
    for metric in autoscaler["spec"].get("metrics") or ():
        resource = metric.get("resource") or {}
        if resource.get("name") == "cpu" and (resource.get("target") or {}).get("averageUtilization"):
            spec["targetCPUUtilizationPercentage"] = resource["target"]["averageUtilization"]
    given: dict[str, Any] = autoscaler.get("status") or {}
    status = {"currentReplicas": given.get("currentReplicas", 0), "desiredReplicas": given.get("desiredReplicas", 0)}
    return {**autoscaler, "spec": spec, "status": status}


_OUT: Mapping[str, Callable[[Object], Object]] = {
    "events.events.k8s.io": _new_event,
    "horizontalpodautoscalers.autoscaling": _old_autoscaler,
}


def outgoing(kind: ServedKind, obj: Object) -> Object:
    """Return a stored object as this kind shows it."""
    if not kind.view_of:
        return obj
    return {**_OUT[kind.resource](obj), "kind": kind.kind, "apiVersion": kind.api_version}


def incoming(kind: ServedKind, obj: Object) -> Object:
    """Return an object that a client sent as this kind in its stored form."""
    if kind.view_of != "events":
        return obj
    return {**_old_event(obj), "kind": "Event", "apiVersion": "v1"}
