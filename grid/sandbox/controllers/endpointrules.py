"""The EndpointSlices that a Service has, from its pods. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from grid.sandbox.client import Object, is_terminating, labels_of, name_of, namespace_of, uid_of
from grid.sandbox.controllers.podresources import is_finished
from grid.sandbox.controllers.replicas import is_ready
from grid.sandbox.serviceproxy.endpoints import target_port

SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
SLICE_MANAGER = "endpointslice-controller.k8s.io"
_HEADLESS = "service.kubernetes.io/headless"
_MOST_PER_SLICE = 100
Ports = tuple[tuple[str, str, int, str], ...]  # name, protocol, number, appProtocol


def facts(pod: Object | None) -> object:
    """Return all on which endpoints depend: while it is the same, so are they."""
    if pod is None:
        return None
    status, spec = pod.get("status") or {}, pod["spec"]
    fixed = (uid_of(pod), labels_of(pod), spec.get("nodeName"), spec.get("hostname"), spec.get("subdomain"))
    return (*fixed, status.get("podIP"), is_finished(pod), is_ready(pod), is_terminating(pod))


def has_endpoints(pod: Mapping[str, Any]) -> bool:
    return bool((pod.get("status") or {}).get("podIP")) and not is_finished(pod)


def slices(service: Object, pods: Iterable[Object]) -> list[Object]:
    """Return the wanted slices: for each set of port numbers that pods have, as few as a hundred endpoints each allow."""
    groups: dict[Ports, list[Object]] = defaultdict(list)
    for pod in sorted(pods, key=name_of):
        if has_endpoints(pod):
            groups[_ports_of(service, pod)].append(_endpoint(service, pod))
    return [
        _slice(service, ports, endpoints[first : first + _MOST_PER_SLICE])
        for ports, endpoints in sorted(groups.items()) or [((), [])]
        for first in range(0, max(1, len(endpoints)), _MOST_PER_SLICE)
    ]


def _slice(service: Object, ports: Ports, endpoints: Sequence[Object]) -> Object:
    labels = {**labels_of(service), SERVICE_NAME: name_of(service), MANAGED_BY: SLICE_MANAGER}
    if service["spec"].get("clusterIP") == "None":
        labels[_HEADLESS] = ""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"labels": labels},
        "addressType": "IPv4",
        "endpoints": list(endpoints),
        "ports": [_port(port) for port in ports],
    }


def _endpoint(service: Object, pod: Object) -> Object:
    serves = is_ready(pod)
    everyone = bool(service["spec"].get("publishNotReadyAddresses"))
    ready = everyone or (serves and not is_terminating(pod))
    made: Object = {
        "addresses": [pod["status"]["podIP"]],
        "conditions": {"ready": ready, "serving": serves, "terminating": is_terminating(pod)},
        "targetRef": {"kind": "Pod", "namespace": namespace_of(pod), "name": name_of(pod), "uid": uid_of(pod)},
    }
    spec = pod["spec"]
    if spec.get("nodeName"):
        made["nodeName"] = spec["nodeName"]
    if spec.get("hostname") and spec.get("subdomain") == name_of(service):
        made["hostname"] = spec["hostname"]
    return made


def _ports_of(service: Object, pod: Object) -> Ports:
    ports = []
    for port in service["spec"].get("ports") or ():
        protocol = port.get("protocol", "TCP")
        number = target_port(port, pod)
        if number is not None:
            ports.append((port.get("name", ""), protocol, number, port.get("appProtocol", "")))
    return tuple(ports)


def _port(port: tuple[str, str, int, str]) -> Object:
    name, protocol, number, application = port
    made: Object = {"name": name, "protocol": protocol, "port": number}
    return made | ({"appProtocol": application} if application else {})


def match(
    wanted: Sequence[Object], existing: Sequence[Object]
) -> tuple[list[tuple[Object, Object]], list[Object], list[Object]]:
    """Return which slice becomes which (pairs that differ), which wanted ones are new, and which existing ones are left over.

    A slice keeps what it can: each wanted one takes the existing one with the same ports that shares most endpoints.
    """
    left, changed, new = list(existing), [], []
    for wish in wanted:
        uids = {item["targetRef"]["uid"] for item in wish["endpoints"]}
        fitting = [item for item in left if (item.get("ports") or []) == wish["ports"] or not item.get("endpoints")]
        best = max(fitting, key=lambda item: _shared(item, uids), default=None)
        if best is None:
            new.append(wish)
            continue
        left.remove(best)
        if not _same(best, wish):
            changed.append((best, wish))
    return changed, new, left


def _shared(existing: Object, uids: set[str]) -> int:
    return sum((item.get("targetRef") or {}).get("uid") in uids for item in existing.get("endpoints") or ())


def _same(existing: Object, wanted: Object) -> bool:
    return labels_of(existing) == labels_of(wanted) and all(
        (existing.get(key) or []) == wanted[key] for key in ("endpoints", "ports")
    )
