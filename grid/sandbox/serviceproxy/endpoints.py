"""The endpoints of a Service: its pods and their ports. Pure.

Endpoints and EndpointSlices are not read, because a real API server refuses the addresses of our pods (127/8) there. Instead this
decides as the endpoints controller does: pods of the Service's namespace that match its selector, have an address, are ready
and are not terminating; `publishNotReadyAddresses` also takes unready and terminating ones.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from grid.sandbox.client import Object, condition_of, is_terminating, labels_of, namespace_of


class Backend(NamedTuple):
    """The target of a connection."""

    address: str
    port: int


def cluster_ip(service: Object) -> str:
    """Return the cluster IP to forward from, or "" for a Service without one or without a selector."""
    spec = service["spec"]
    address = spec.get("clusterIP") or ""
    if address == "None" or spec.get("type") == "ExternalName" or not spec.get("selector"):
        return ""
    return str(address)


def selects(service: Object, pod: Object) -> bool:
    labels = labels_of(pod)
    wanted: Mapping[str, str] = service["spec"].get("selector") or {}
    return (
        bool(wanted)
        and namespace_of(pod) == namespace_of(service)
        and all(labels.get(key) == value for key, value in wanted.items())
    )


def backends_of(service: Object, pods: Iterable[Object]) -> dict[int, Sequence[Backend]]:
    """Return the backends of each TCP port of the Service, in a fixed order; ports without any are left out."""
    if not cluster_ip(service):
        return {}
    everyone = bool(service["spec"].get("publishNotReadyAddresses"))
    chosen = [pod for pod in pods if selects(service, pod) and _takes_connections(pod, everyone=everyone)]
    result: dict[int, Sequence[Backend]] = {}
    for port in service["spec"].get("ports") or ():
        if port.get("protocol", "TCP") != "TCP":
            continue
        backends = {
            Backend(str(pod["status"]["podIP"]), number)
            for pod in chosen
            if (number := target_port(port, pod)) is not None
        }
        if backends:
            result[int(port["port"])] = sorted(backends)
    return result


def _takes_connections(pod: Object, *, everyone: bool) -> bool:
    status = pod.get("status") or {}
    if not status.get("podIP") or status.get("phase") in ("Succeeded", "Failed"):
        return False
    ready = condition_of(pod, "Ready")
    return everyone or (ready is not None and ready["status"] == "True" and not is_terminating(pod))


def target_port(port: Object, pod: Object) -> int | None:
    """Return the port's number in this pod, or None when no container has a port of that name and protocol."""
    target = port.get("targetPort") or port["port"]
    if isinstance(target, int):
        return target
    spec, protocol = pod["spec"], port.get("protocol", "TCP")
    sidecars = [item for item in spec.get("initContainers") or () if item.get("restartPolicy") == "Always"]
    for container in [*spec["containers"], *sidecars]:
        for item in container.get("ports") or ():
            if item.get("name") == target and item.get("protocol", "TCP") == protocol:
                return int(item["containerPort"])
    return None


def endpoint_facts(pod: Object | None) -> object:
    """Return the facts of a pod on which backends depend: while these are equal, so are the backends."""
    if pod is None:
        return None
    status = pod.get("status") or {}
    ready = condition_of(pod, "Ready") or {}
    return (
        labels_of(pod),
        status.get("podIP"),
        status.get("phase") in ("Succeeded", "Failed"),
        ready.get("status") == "True",
        is_terminating(pod),
    )
