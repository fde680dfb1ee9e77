"""Binding and eviction: the two things that only a subresource may do to a pod."""

from collections.abc import Mapping

from grid.sandbox.apiserver import disruption
from grid.sandbox.apiserver.deletion import DeleteOptions
from grid.sandbox.apiserver.kinds import PODS, Object, stored_kinds
from grid.sandbox.apiserver.pods import is_finished, is_scheduled
from grid.sandbox.apiserver.registry import Registry, timestamp
from grid.sandbox.apiserver.status import Failure, bad_request, conflict, server_error
from grid.sandbox.apiserver.store import Record


def bind(registry: Registry, key: str, binding: Object) -> None:
    """Gives a pod its node, once."""
    record = registry.read(PODS, key)
    target = binding.get("target") or {}
    if target.get("kind") not in (None, "", "Node"):
        kind = target["kind"]
        raise server_error(f'target.kind: Unsupported value: "{kind}": supported values: "Node", "<empty>"')
    if not target.get("name"):
        raise server_error("target.name: Required value")
    name = record.obj["metadata"]["name"]
    if is_scheduled(record.obj):
        problem = f'pod {name} is already assigned to node "{record.obj["spec"]["nodeName"]}"'
        failure = conflict(PODS, name, problem)
        message = failure.message.replace("pods ", "pods/binding ", 1)
        raise Failure(409, failure.reason, message, {"name": name, "kind": "pods/binding"})
    if "deletionTimestamp" in record.obj["metadata"]:
        raise conflict(PODS, name, f"pod {name} is being deleted, cannot be assigned to a host")

    def assign(pod: Object) -> Object:
        pod["spec"]["nodeName"] = target["name"]
        annotations: Mapping[str, str] = (binding.get("metadata") or {}).get("annotations") or {}
        if annotations:
            pod["metadata"]["annotations"] = {**(pod["metadata"].get("annotations") or {}), **annotations}
        scheduled = {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": timestamp(registry.clock()),
        }
        conditions = [each for each in pod["status"].get("conditions") or () if each["type"] != "PodScheduled"]
        pod["status"]["conditions"] = [*conditions, scheduled]
        pod["status"].pop("nominatedNodeName", None)
        return pod

    registry.update(PODS, key, assign, subresource="binding")


def evict(registry: Registry, key: str, eviction: Object, query: Mapping[str, str]) -> None:
    """Deletes a pod if its disruption budget allows it now."""
    record = registry.read(PODS, key)
    name = record.obj["metadata"]["name"]
    if (eviction.get("metadata") or {}).get("name") not in (None, "", name):
        raise bad_request("name in URL does not match name in Eviction object")
    options = DeleteOptions.parse(eviction.get("deleteOptions") or {}, query)
    unprotected = (
        is_finished(record.obj) or not is_scheduled(record.obj) or "deletionTimestamp" in record.obj["metadata"]
    )
    if not unprotected:
        _spend_budget(registry, record, dry_run=options.dry_run)
    if options.dry_run:
        return
    if not unprotected:
        registry.update(
            PODS, key, lambda pod: _mark_disrupted(pod, timestamp(registry.clock())), subresource="eviction"
        )
    registry.delete(PODS, key, options)


def _spend_budget(registry: Registry, pod: Record, *, dry_run: bool) -> None:
    store = registry.store
    namespace = pod.obj["metadata"]["namespace"]
    kind = stored_kinds()["poddisruptionbudgets.policy"]
    budgets = [
        each for each in store.records(kind.resource, prefix=f"{namespace}/") if disruption.covers(each.obj, pod.obj)
    ]
    if not budgets:
        return
    if len(budgets) > 1:
        raise server_error(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    status = current_status(registry, budgets[0].obj)
    if status["disruptionsAllowed"] < 1:
        name, needed, healthy = budgets[0].obj["metadata"]["name"], status["desiredHealthy"], status["currentHealthy"]
        message = f"The disruption budget {name} needs {needed} healthy pods and has {healthy} currently"
        details = {"causes": [{"reason": "DisruptionBudget", "message": message}]}
        problem = "Cannot evict pod as it would violate the pod's disruption budget."
        raise Failure(429, "TooManyRequests", problem, details)


def current_status(registry: Registry, budget: Object) -> Object:
    """A budget's status as of now, whatever is stored."""
    store = registry.store
    prefix = f"{budget['metadata']['namespace']}/"
    pods = [record.obj for record in store.records("pods", prefix=prefix)]

    def scale_of(owner: Object) -> int | None:
        if owner.get("kind") != "ReplicaSet":
            return None
        found = store.get("replicasets.apps", prefix + owner["name"])
        return int(found.obj["spec"].get("replicas", 1)) if found else None

    return disruption.budget_status(budget, pods, scale_of, timestamp(registry.clock()))


def refresh_budget(registry: Registry, key: str) -> None:
    """Stores a budget's status if it changed."""
    kind = stored_kinds()["poddisruptionbudgets.policy"]
    record = registry.store.get(kind.resource, key)
    if record is None:
        return
    status = current_status(registry, record.obj)
    registry.update(kind, key, lambda budget: {**budget, "status": status}, subresource="status")


def _mark_disrupted(pod: Object, now: str) -> Object:
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": now,
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    conditions = [each for each in pod["status"].get("conditions") or () if each["type"] != "DisruptionTarget"]
    pod["status"]["conditions"] = [*conditions, condition]
    return pod
