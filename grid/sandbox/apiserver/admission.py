"""Checks and completions that need more than the object itself: its namespace, service account, addresses, and the
quota.
"""

import ipaddress

from grid.sandbox.apiserver import quota
from grid.sandbox.apiserver.kinds import NAMESPACES, PODS, Object, ServedKind
from grid.sandbox.apiserver.status import StatusCause, forbidden, invalid, not_found, wrong
from grid.sandbox.apiserver.store import ObjectStore

_SERVICE_NETWORK = ipaddress.ip_network("10.96.0.0/16")
_PROTECTED_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
PRIORITY_CLASSES = {"system-cluster-critical": 2000000000, "system-node-critical": 2000001000}

check_quota = quota.check
charge_quota = quota.charge


def check_namespace(store: ObjectStore, kind: ServedKind, namespace: str, name: str) -> None:
    """Raise `Failure` unless the namespace exists and is not terminating."""
    found = store.get("namespaces", namespace)
    if found is None:
        raise not_found(NAMESPACES, namespace)
    if "deletionTimestamp" in found.obj["metadata"]:
        cause = StatusCause("metadata.namespace", "NamespaceTerminating", f"namespace {namespace} is being terminated")
        problem = f"unable to create new content in namespace {namespace} because it is being terminated"
        raise forbidden(kind, name, problem, [cause])


def admit(store: ObjectStore, kind: ServedKind, namespace: str, obj: Object) -> None:
    if kind is PODS:
        _admit_pod(store, namespace, obj)
    elif kind.resource == "services":
        _check_address(store, obj)
        _give_address(store, obj)


def admit_update(store: ObjectStore, kind: ServedKind, new: Object, old: Object, subresource: str) -> None:
    if kind.resource == "services" and not subresource:
        _give_address(store, new)
    if kind.resource == "resourcequotas" and not subresource and new["spec"] != old["spec"]:
        quota.recount(store, new)


def _admit_pod(store: ObjectStore, namespace: str, pod: Object) -> None:
    spec, name = pod["spec"], pod["metadata"]["name"]
    account = spec["serviceAccountName"]
    if store.get("serviceaccounts", f"{namespace}/{account}") is None:
        problem = f'error looking up service account {namespace}/{account}: serviceaccount "{account}" not found'
        raise forbidden(PODS, name, problem)
    priority_class = spec.get("priorityClassName")
    if priority_class:
        if priority_class not in PRIORITY_CLASSES:
            raise forbidden(PODS, name, f"no PriorityClass with name {priority_class} was found")
        spec["priority"] = PRIORITY_CLASSES[priority_class]


def _check_address(store: ObjectStore, service: Object) -> None:
    """Raise `Failure` when the client asks for an address that another Service has."""
    wanted = service["spec"].get("clusterIP")
    if wanted in (None, "", "None"):
        return
    if any(record.obj["spec"].get("clusterIP") == wanted for record in store.records("services")):
        problem = f"failed to allocate IP {wanted}: provided IP is already allocated"
        raise invalid("Service", "", service["metadata"]["name"], [wrong("spec.clusterIPs", [wanted], problem)])


def _give_address(store: ObjectStore, service: Object) -> None:
    spec = service["spec"]
    if spec.get("type") == "ExternalName" or spec.get("clusterIP") == "None":
        if spec.get("clusterIP") == "None":
            spec["clusterIPs"] = ["None"]
            spec.setdefault("ipFamilies", ["IPv4"])
            spec.setdefault("ipFamilyPolicy", "SingleStack")
        return
    if not spec.get("clusterIP"):
        taken = {record.obj["spec"].get("clusterIP") for record in store.records("services")}
        # Counting up from the version spreads addresses, so that a deleted service's is not given to the next one.
        for step in range(_SERVICE_NETWORK.num_addresses):
            offset = 10 + (store.version + step) % (_SERVICE_NETWORK.num_addresses - 20)
            address = str(_SERVICE_NETWORK[offset])
            if address not in taken:
                spec["clusterIP"] = address
                break
    spec["clusterIPs"] = spec.get("clusterIPs") or [spec["clusterIP"]]
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")


def check_deletable(kind: ServedKind, obj: Object) -> None:
    name = obj["metadata"]["name"]
    if kind is NAMESPACES and name in _PROTECTED_NAMESPACES:
        raise forbidden(kind, name, "this namespace may not be deleted")
