"""ResourceQuota: a namespace's limits, checked when an object is created and counted again when one is removed.

Supported are pods, object counts (`count/pods`, `configmaps` ...) and requests and limits of any resource; scopes
are not.
"""

from collections.abc import Mapping
from decimal import Decimal

from grid.core.quantity import parse_quantity
from grid.sandbox.apiserver.kinds import PODS, Object, ServedKind, stored_kinds
from grid.sandbox.apiserver.pods import is_finished
from grid.sandbox.apiserver.quantities import canonical, is_binary
from grid.sandbox.apiserver.status import forbidden
from grid.sandbox.apiserver.store import ObjectStore

_PLAIN_COUNTS = ("configmaps", "persistentvolumeclaims", "pods", "resourcequotas", "secrets", "services")
_COMPUTE_SHORT = {"cpu": "requests.cpu", "memory": "requests.memory", "ephemeral-storage": "requests.ephemeral-storage"}


def usage_of(kind: ServedKind, obj: Object) -> dict[str, Decimal]:
    """Return what one object uses, by quota resource."""
    used: dict[str, Decimal] = {f"count/{kind.resource}": Decimal(1)}
    if kind is not PODS:
        if kind.resource in _PLAIN_COUNTS:
            used[kind.resource] = Decimal(1)
        if kind.resource == "persistentvolumeclaims":
            requests = ((obj.get("spec") or {}).get("resources") or {}).get("requests") or {}
            used["requests.storage"] = parse_quantity(requests.get("storage", 0))
        return used
    if is_finished(obj):
        return used
    used["pods"] = Decimal(1)
    for which in ("requests", "limits"):
        for name, amount in pod_amounts(obj["spec"], which).items():
            used[f"{which}.{name}"] = amount
            if which == "requests" and name in _COMPUTE_SHORT:
                used[name] = amount
    return used


def pod_amounts(spec: Object, which: str) -> dict[str, Decimal]:
    """Return the sum over the containers, or the largest init container where that is more, plus the overhead."""
    total: dict[str, Decimal] = {}
    for container in spec.get("containers") or ():
        for name, text in ((container.get("resources") or {}).get(which) or {}).items():
            total[name] = total.get(name, Decimal(0)) + parse_quantity(text)
    for container in spec.get("initContainers") or ():
        for name, text in ((container.get("resources") or {}).get(which) or {}).items():
            total[name] = max(total.get(name, Decimal(0)), parse_quantity(text))
    for name, text in (spec.get("overhead") or {}).items():
        total[name] = total.get(name, Decimal(0)) + parse_quantity(text)
    return total


def check(store: ObjectStore, kind: ServedKind, namespace: str, obj: Object) -> None:
    """Raise `Failure` if the object would exceed a quota of its namespace, or does not state what a quota limits."""
    asked = usage_of(kind, obj) if kind.namespaced else {}
    for record in store.records("resourcequotas", prefix=f"{namespace}/") if asked else ():
        hard: Mapping[str, str] = record.obj["spec"].get("hard") or {}
        name = record.obj["metadata"]["name"]
        if kind is PODS and not is_finished(obj):
            _check_specified(kind, obj, name, hard)
        used = (record.obj.get("status") or {}).get("used") or {}
        over = [
            resource
            for resource in sorted(hard)
            if asked.get(resource, Decimal(0)) > 0
            and parse_quantity(used.get(resource, 0)) + asked[resource] > parse_quantity(hard[resource])
        ]
        if over:
            parts = (
                ",".join(f"{resource}={canonical(asked[resource], binary=is_binary(resource))}" for resource in over),
                ",".join(f"{resource}={used.get(resource, '0')}" for resource in over),
                ",".join(f"{resource}={hard[resource]}" for resource in over),
            )
            problem = f"exceeded quota: {name}, requested: {parts[0]}, used: {parts[1]}, limited: {parts[2]}"
            raise forbidden(kind, obj["metadata"]["name"], problem)


def _check_specified(kind: ServedKind, pod: Object, quota: str, hard: Mapping[str, str]) -> None:
    lacking: list[str] = []
    for resource in sorted(hard):
        which, name = _compute(resource)
        if not which or name not in ("cpu", "memory"):
            continue
        silent = [
            container["name"]
            for container in pod["spec"].get("containers") or ()
            if name not in ((container.get("resources") or {}).get(which) or {})
        ]
        if silent:
            lacking.append(f"{resource} for: {','.join(silent)}")
    if lacking:
        raise forbidden(kind, pod["metadata"]["name"], f"failed quota: {quota}: must specify {'; '.join(lacking)}")


def _compute(resource: str) -> tuple[str, str]:
    if resource in ("cpu", "memory"):
        return "requests", resource
    which, _, name = resource.partition(".")
    return (which, name) if which in ("requests", "limits") else ("", "")


def charge(store: ObjectStore, kind: ServedKind, namespace: str, obj: Object) -> None:
    """Count a new object in the quotas' status, so that the next creation sees it."""
    if kind.resource == "resourcequotas":
        recount_stored(store, f"{namespace}/{obj['metadata']['name']}")
        return
    asked = usage_of(kind, obj) if kind.namespaced else {}
    for record in list(store.records("resourcequotas", prefix=f"{namespace}/")) if asked else ():
        if any(resource in asked for resource in record.obj["spec"].get("hard") or {}):
            recount_stored(store, record.key)


def recount_stored(store: ObjectStore, key: str) -> None:
    """Bring the stored status of one quota up to date."""
    record = store.get("resourcequotas", key)
    if record is None:
        return
    quota = record.fresh()
    recount(store, quota)
    if quota != record.obj:
        store.put("resourcequotas", key, quota)


def recount(store: ObjectStore, quota: Object) -> None:
    """Set the status of a quota from all objects of its namespace."""
    hard: Mapping[str, str] = quota["spec"].get("hard") or {}
    totals = dict.fromkeys(hard, Decimal(0))
    prefix = f"{quota['metadata']['namespace']}/"
    for kind in stored_kinds().values():
        if not kind.namespaced or not _counts(kind, hard):
            continue
        for record in store.records(kind.resource, prefix=prefix):
            for resource, amount in usage_of(kind, record.obj).items():
                if resource in totals:
                    totals[resource] += amount
    used = {resource: canonical(amount, binary=is_binary(resource)) for resource, amount in sorted(totals.items())}
    quota["status"] = {"hard": dict(sorted(hard.items())), "used": used}


def _counts(kind: ServedKind, hard: Mapping[str, str]) -> bool:
    if f"count/{kind.resource}" in hard or kind.resource in hard:
        return True
    if kind.resource == "persistentvolumeclaims":
        return "requests.storage" in hard
    return kind is PODS and any(_compute(resource)[0] for resource in hard)
