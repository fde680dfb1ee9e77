"""Checks and completions that need more than the object itself: its namespace, service account, addresses, and the
quota.
"""

import ipaddress

from grid.sandbox.apiserver import limits, quota, storageclasses
from grid.sandbox.apiserver.kinds import NAMESPACES, PODS, Object, ServedKind
from grid.sandbox.apiserver.pods import qos_class
from grid.sandbox.apiserver.priorities import CLASSES, check_default, give_priority, keep_priority
from grid.sandbox.apiserver.status import StatusCause, forbidden, invalid, not_found, wrong
from grid.sandbox.apiserver.store import ObjectStore
from grid.sandbox.storage import VOLUME_PROTECTION

_SERVICE_NETWORK = ipaddress.ip_network("10.96.0.0/16")
_CLAIM_PROTECTION = "kubernetes.io/pvc-protection"
_PROTECTED_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")

check_limits = limits.check
check_quota = quota.check
charge_quota = quota.charge


def check_namespace(store: ObjectStore, kind: ServedKind, namespace: str, name: str) -> None:
    """Raise `Failure` unless the namespace exists and is not terminating."""
    record = store.get("namespaces", namespace)
    if record is None:
        raise not_found(NAMESPACES, namespace)
    if "deletionTimestamp" in record.obj["metadata"]:
        cause = StatusCause("metadata.namespace", "NamespaceTerminating", f"namespace {namespace} is being terminated")
        problem = f"unable to create new content in namespace {namespace} because it is being terminated"
        raise forbidden(kind, name, problem, [cause])


def admit(store: ObjectStore, kind: ServedKind, namespace: str, obj: Object) -> None:
    if kind is PODS:
        _admit_pod(store, namespace, obj)
    elif kind.resource == "services":
        _check_address(store, obj)
        _give_address(store, obj)
    elif kind.resource == CLASSES:
        check_default(store, kind, obj)
    elif kind.resource == "persistentvolumeclaims":
        # The claim protection controller takes it away once no pod uses the claim.
        _protect(obj, _CLAIM_PROTECTION)
        storageclasses.give_class(store, obj)
    elif kind.resource == "persistentvolumes":
        _protect(obj, VOLUME_PROTECTION)


def _protect(obj: Object, finalizer: str) -> None:
    finalizers = obj["metadata"].setdefault("finalizers", [])
    if finalizer not in finalizers:
        finalizers.append(finalizer)


def carry_over(kind: ServedKind, new: Object, old: Object) -> None:
    """Fill in what an object has and its client left out: a pod's priority, a Service's address, whose changed field counts."""
    if kind is PODS:
        keep_priority(new, old)
    if kind.resource != "services":
        return
    spec, before = new["spec"], old["spec"]
    if spec.get("type") == "ExternalName":
        if before.get("type") != "ExternalName" and spec.get("clusterIP") in (None, "", before.get("clusterIP")):
            for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
                spec.pop(field, None)
        return
    for field in ("clusterIP", "clusterIPs"):
        if before.get(field) and not spec.get(field):
            spec[field] = before[field]
    if spec.get("clusterIP") != before.get("clusterIP") and spec.get("clusterIPs") == before.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    elif spec.get("clusterIPs") and spec["clusterIPs"] != before.get("clusterIPs"):
        spec["clusterIP"] = spec["clusterIPs"][0]


def admit_update(store: ObjectStore, kind: ServedKind, new: Object, old: Object, subresource: str) -> None:
    if kind.resource == "services" and not subresource:
        _check_address(store, new, old)
        _give_address(store, new)
    if kind.resource == "resourcequotas" and not subresource and new["spec"] != old["spec"]:
        quota.recount(store, new)
    if kind.resource == CLASSES:
        check_default(store, kind, new)
    if kind.resource == "persistentvolumeclaims" and not subresource and new["spec"] != old["spec"]:
        limits.check(store, kind, new["metadata"]["namespace"], new)
        storageclasses.check_growth(store, kind, new, old)


def _admit_pod(store: ObjectStore, namespace: str, pod: Object) -> None:
    name = pod["metadata"]["name"]
    account = pod["spec"]["serviceAccountName"]
    if store.get("serviceaccounts", f"{namespace}/{account}") is None:
        problem = f'error looking up service account {namespace}/{account}: serviceaccount "{account}" not found'
        raise forbidden(PODS, name, problem)
    give_priority(store, pod)
    limits.fill_in(limits.limits_of(store, namespace), pod)
    pod["status"]["qosClass"] = qos_class(pod["spec"])


def _check_address(store: ObjectStore, service: Object, old: Object | None = None) -> None:
    """Raise `Failure` when the client asks for an address that no Service can have, or that another one has."""
    spec = service["spec"]
    wanted = spec.get("clusterIP")
    if wanted in (None, "", "None") or spec.get("type") == "ExternalName":
        return
    if old is not None and old["spec"].get("clusterIP") == wanted:
        return
    try:
        outside = ipaddress.ip_address(wanted) not in _SERVICE_NETWORK
    except ValueError:
        problem = wrong("spec.clusterIPs[0]", wanted, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
        raise invalid("Service", "", service["metadata"]["name"], [problem]) from None
    if outside:
        why = "the provided network does not match the current range"
    elif any(record.obj["spec"].get("clusterIP") == wanted for record in store.records("services")):
        why = "provided IP is already allocated"
    else:
        return
    problem = wrong("spec.clusterIPs", [wanted], f"failed to allocate IP {wanted}: {why}")
    raise invalid("Service", "", service["metadata"]["name"], [problem])


def _give_address(store: ObjectStore, service: Object) -> None:
    spec = service["spec"]
    if spec.get("type") == "ExternalName":
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
    spec["clusterIPs"] = [spec["clusterIP"]]
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")


def check_deletable(kind: ServedKind, obj: Object) -> None:
    name = obj["metadata"]["name"]
    if kind is NAMESPACES and name in _PROTECTED_NAMESPACES:
        raise forbidden(kind, name, "this namespace may not be deleted")
