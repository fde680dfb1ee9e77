"""Pods' requests and nodes' allocatable amounts as exact integers: CPU in millicores, everything else in whole units."""

from collections.abc import Mapping
from typing import Any

from grid.core.quantity import millicores, whole

Amounts = dict[str, int]

_FINISHED = frozenset({"Succeeded", "Failed"})
PODS = "pods"


def amounts(quantities: Mapping[str, Any] | None) -> Amounts:
    return {name: millicores(text) if name == "cpu" else whole(text) for name, text in (quantities or {}).items()}


def add(into: Amounts, more: Mapping[str, int], times: int = 1) -> None:
    for name, amount in more.items():
        into[name] = into.get(name, 0) + amount * times


def is_finished(pod: Mapping[str, Any]) -> bool:
    """Return True for a finished pod, which keeps its node's name but none of its resources."""
    return pod.get("status", {}).get("phase") in _FINISHED


def pod_requests(pod: Mapping[str, Any]) -> Amounts:
    """Return the amounts that the scheduler counts for a pod.

    They are the larger of its containers plus sidecars and its largest init step, plus overhead. A sidecar (an init
    container that is always restarted) runs beside the init containers after it and all main ones.
    """
    spec = pod["spec"]
    sidecars: Amounts = {}
    largest_init: Amounts = {}
    for container in spec.get("initContainers") or ():
        step = _container_requests(container)
        if container.get("restartPolicy") == "Always":
            add(sidecars, step)
            step = dict(sidecars)
        else:
            add(step, sidecars)
        for name, amount in step.items():
            largest_init[name] = max(largest_init.get(name, 0), amount)
    total = dict(sidecars)
    for container in spec.get("containers") or ():
        add(total, _container_requests(container))
    for name, amount in largest_init.items():
        total[name] = max(total.get(name, 0), amount)
    add(total, amounts(spec.get("overhead")))
    return {name: amount for name, amount in total.items() if amount}


def _container_requests(container: Mapping[str, Any]) -> Amounts:
    """Return the requests, with the limit where only a limit is given."""
    resources = container.get("resources") or {}
    return amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def allocatable(node: Mapping[str, Any]) -> Amounts:
    status = node.get("status") or {}
    return amounts(status.get("allocatable") or status.get("capacity"))
