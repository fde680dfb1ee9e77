"""Rules on a node's conditions and heartbeats: which taints it gets, and when its pods must leave. All pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from grid.sandbox.client import Object, condition_of, format_time
from grid.sandbox.controllers.taints import tolerates

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_PRESSURE = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
MANAGED = frozenset({NOT_READY, UNREACHABLE, UNSCHEDULABLE, *_PRESSURE.values()})
# As cluster-autoscaler has it (utils/kubernetes, GetReadinessState).
_UNUSABLE = ("DiskPressure", "NetworkUnavailable")
_WATCHED_CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


def wanted_taints(node: Mapping[str, Any], now: datetime) -> list[Object]:
    """Return the node's taints with those that its conditions ask for; the others are kept, in their order."""
    present: Sequence[Object] = node.get("spec", {}).get("taints") or ()
    wanted = _from_conditions(node)
    kept = [item for item in present if item["key"] not in MANAGED or (item["key"], item["effect"]) in wanted]
    there = {(item["key"], item["effect"]) for item in kept}
    stamp = format_time(now)
    for key, effect in wanted:
        if (key, effect) not in there:
            timed = {"timeAdded": stamp} if effect == "NoExecute" or key == UNSCHEDULABLE else {}
            kept.append({"key": key, "effect": effect, **timed})
    return kept


def is_usable(node: Mapping[str, Any]) -> bool:
    """Return True when the node autoscaler may count on the node: it is ready, and no condition or taint objects.

    Taints count because they are removed a moment after the condition changed.
    """
    ready = condition_of(node, "Ready")
    if ready is None or ready.get("status") != "True":
        return False
    taints = {taint["key"] for taint in node.get("spec", {}).get("taints") or ()}
    pressure_taints = {
        _PRESSURE[kind] for kind in _UNUSABLE if (condition_of(node, kind) or {}).get("status") == "True"
    }
    return not (taints | pressure_taints) & {NOT_READY, *(_PRESSURE[kind] for kind in _UNUSABLE)}


def _from_conditions(node: Mapping[str, Any]) -> list[tuple[str, str]]:
    wanted: list[tuple[str, str]] = []
    ready = condition_of(node, "Ready")
    status = ready.get("status") if ready else "False"
    if status != "True":
        key = UNREACHABLE if status == "Unknown" else NOT_READY
        wanted += [(key, "NoSchedule"), (key, "NoExecute")]
    for kind, key in _PRESSURE.items():
        condition = condition_of(node, kind)
        if condition is not None and condition.get("status") == "True":
            wanted.append((key, "NoSchedule"))
    if node.get("spec", {}).get("unschedulable"):
        wanted.append((UNSCHEDULABLE, "NoSchedule"))
    return wanted


def heartbeat(node: Mapping[str, Any], lease: Mapping[str, Any] | None) -> tuple[str, str]:
    """Return the two values that change while the kubelet lives: its lease's renewal and its Ready condition's heartbeat."""
    ready = condition_of(node, "Ready") or {}
    renewed = (lease or {}).get("spec", {}).get("renewTime") or ""
    return str(renewed), str(ready.get("lastHeartbeatTime") or "")


def silent_conditions(node: Mapping[str, Any], now: datetime) -> list[Object] | None:
    """Return the conditions of a node whose kubelet is silent, or None when they are Unknown already."""
    stamp = format_time(now)
    conditions = [dict(item) for item in node.get("status", {}).get("conditions") or ()]
    changed = False
    for kind in _WATCHED_CONDITIONS:
        condition = next((item for item in conditions if item["type"] == kind), None)
        if condition is None:
            never = "Kubelet never posted node status."
            conditions.append(
                {
                    "type": kind,
                    "status": "Unknown",
                    "lastHeartbeatTime": node["metadata"].get("creationTimestamp"),
                    "lastTransitionTime": stamp,
                    "reason": "NodeStatusNeverUpdated",
                    "message": never,
                }
            )
            changed = True
        elif condition["status"] != "Unknown":
            silent = "Kubelet stopped posting node status."
            condition.update(status="Unknown", reason="NodeStatusUnknown", message=silent, lastTransitionTime=stamp)
            changed = True
    return conditions if changed else None


def leaves_after(pod: Mapping[str, Any], node: Mapping[str, Any]) -> float | None:
    """Return how many seconds NoExecute taints leave to a pod from when they are first seen; None: it may stay, 0: none.

    Of each taint the pod's first toleration that covers it counts, and of these the shortest.
    """
    tolerations = pod["spec"].get("tolerations") or ()
    shortest: float | None = None
    for taint in node.get("spec", {}).get("taints") or ():
        if taint.get("effect") != "NoExecute":
            continue
        covering = next((item for item in tolerations if tolerates(item, taint)), None)
        if covering is None:
            return 0.0
        seconds = covering.get("tolerationSeconds")
        if seconds is not None:
            left = max(0.0, float(seconds))
            shortest = left if shortest is None else min(shortest, left)
    return shortest
