"""Binding and eviction: the two things that only a subresource may do to a pod."""

from collections.abc import Mapping

from grid.sandbox.apiserver.deletion import DeleteOptions
from grid.sandbox.apiserver.kinds import PODS, Object, stored_kinds
from grid.sandbox.apiserver.pods import is_scheduled
from grid.sandbox.apiserver.registry import Registry, timestamp
from grid.sandbox.apiserver.selectors import selects
from grid.sandbox.apiserver.status import Failure, bad_request, conflict, server_error
from grid.sandbox.apiserver.store import Record


def bind(registry: Registry, key: str, binding: Object) -> None:
    """Bind a pod to a node. Raise `Failure` if the pod has a node already, is gated or is being deleted."""
    record = registry.read(PODS, key)
    target = binding.get("target") or {}
    if target.get("kind") not in (None, "", "Node"):
        kind = target["kind"]
        raise server_error(f'target.kind: Unsupported value: "{kind}": supported values: "Node", "<empty>"')
    if not target.get("name"):
        raise server_error("target.name: Required value")
    name = record.obj["metadata"]["name"]
    if is_scheduled(record.obj):
        raise _unbindable(name, f'pod {name} is already assigned to node "{record.obj["spec"]["nodeName"]}"')
    if record.obj["spec"].get("schedulingGates"):
        raise _unbindable(name, f"pod {name} has non-empty .spec.schedulingGates")
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


def _unbindable(name: str, problem: str) -> Failure:
    failure = conflict(PODS, name, problem)
    message = failure.message.replace("pods ", "pods/binding ", 1)
    return Failure(409, failure.reason, message, {"name": name, "kind": "pods/binding"})


def evict(registry: Registry, key: str, eviction: Object, query: Mapping[str, str]) -> None:
    """Delete a pod if its disruption budget allows that now; raise `Failure` otherwise."""
    record = registry.read(PODS, key)
    name = record.obj["metadata"]["name"]
    if (eviction.get("metadata") or {}).get("name") not in (None, "", name):
        raise bad_request("name in URL does not match name in Eviction object")
    options = DeleteOptions.parse(eviction.get("deleteOptions") or {}, query)
    running = record.obj["status"].get("phase") not in ("Pending", "Succeeded", "Failed")
    protected = running and "deletionTimestamp" not in record.obj["metadata"]
    if protected:
        _spend_budget(registry, record, dry_run=options.dry_run)
    if options.dry_run:
        return
    if protected:
        registry.update(
            PODS, key, lambda pod: _mark_disrupted(pod, timestamp(registry.clock())), subresource="eviction"
        )
    registry.delete(PODS, key, options)


def _spend_budget(registry: Registry, pod: Record, *, dry_run: bool) -> None:
    """Take one from the allowed disruptions and record the pod's name, so that no two evictions share an allowance."""
    metadata = pod.obj["metadata"]
    kind = stored_kinds()["poddisruptionbudgets.policy"]
    budgets = [
        each
        for each in registry.store.records(kind.resource, prefix=f"{metadata['namespace']}/")
        if selects(each.obj["spec"].get("selector"), metadata.get("labels"))
    ]
    if not budgets:
        return
    if len(budgets) > 1:
        raise server_error(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    budget = budgets[0].obj
    name, status = budget["metadata"]["name"], budget.get("status") or {}
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 1):
        raise _too_many(f"The disruption budget {name} is still being processed by the server.", retry_after=10)
    if status.get("disruptionsAllowed", 0) < 1:
        raise _too_many(why_not_now(name, status))

    def spend(obj: Object) -> Object:
        granted = {**(status.get("disruptedPods") or {}), metadata["name"]: timestamp(registry.clock())}
        obj["status"]["disruptionsAllowed"] -= 1
        obj["status"]["disruptedPods"] = granted
        return obj

    registry.update(kind, budgets[0].key, spend, subresource="status", dry_run=dry_run)


def why_not_now(name: str, status: Object) -> str:
    """Return why a budget allows no disruption. The counts of one that cannot be kept up to date say nothing."""
    conditions = status.get("conditions") or ()
    refused: Object = next((each for each in conditions if each["type"] == "DisruptionAllowed"), {})
    message = refused.get("message", "") if refused.get("status") == "False" else ""
    not_now = f"The disruption budget {name} does not allow evicting pods currently"
    if message and refused.get("reason") == "SyncFailed":
        return f"{not_now} because it failed sync: {message}"
    needed, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    if healthy <= needed:
        return f"The disruption budget {name} needs {needed} healthy pods and has {healthy} currently"
    return f"{not_now} ({refused.get('reason', '')}): {message}" if message else not_now


def _too_many(why: str, *, retry_after: int | None = None) -> Failure:
    details: Object = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    if retry_after is not None:
        details["retryAfterSeconds"] = retry_after
    problem = "Cannot evict pod as it would violate the pod's disruption budget."
    return Failure(429, "TooManyRequests", problem, details, retry_after=retry_after)


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
