"""Facts about a pod that more than one part of the API server needs. Pure functions of the object."""

from grid.core.quantity import parse_quantity
from grid.sandbox.apiserver.kinds import Object

FINISHED = ("Succeeded", "Failed")
_GUARANTEED = ("cpu", "memory")


def qos_class(spec: Object) -> str:
    """Return Guaranteed, Burstable or BestEffort, from the requests and limits of all containers."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    resources = [container.get("resources") or {} for container in containers]
    if not any(_amounts(each, "requests") or _amounts(each, "limits") for each in resources):
        return "BestEffort"
    for each in resources:
        limits, requests = _amounts(each, "limits"), _amounts(each, "requests")
        if any(name not in limits or requests.get(name, limits[name]) != limits[name] for name in _GUARANTEED):
            return "Burstable"
    return "Guaranteed"


def _amounts(resources: Object, which: str) -> dict[str, object]:
    amounts: dict[str, object] = {}
    for name in _GUARANTEED:
        text = (resources.get(which) or {}).get(name)
        if text is not None and parse_quantity(text) > 0:
            amounts[name] = parse_quantity(text)
    return amounts


def is_ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def is_finished(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in FINISHED


def is_scheduled(pod: Object) -> bool:
    return bool(pod["spec"].get("nodeName"))
