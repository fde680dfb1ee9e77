"""Changes of a pod or a node as Kubernetes' own components would write them: each function changes its object in place.

Times are Kubernetes' text.
"""

from grid.sandbox.client import Object
from grid.sandbox.population.objects import POD_CONDITIONS

MISSING_IMAGE = "registry.example.org/team/missing:1"
_UNREACHABLE = "node.kubernetes.io/unreachable"
_UNREADY = ("ContainersNotReady", "containers with unready status: [run]")


def scheduled(pod: Object, node_name: str, now: str) -> None:
    pod["spec"]["nodeName"] = node_name
    pod["status"]["startTime"] = now
    _set_conditions(pod, {"PodScheduled": True, "Initialized": True, "PodReadyToStartContainers": False}, now)
    waiting(pod, "ContainerCreating", "", now)


def unschedulable(pod: Object, message: str, now: str) -> None:
    condition = {"type": "PodScheduled", "status": "False", "lastProbeTime": None, "lastTransitionTime": now}
    pod["status"]["conditions"] = [{**condition, "reason": "Unschedulable", "message": message}]


def running(pod: Object, address: str, now: str) -> None:
    status = pod["status"]
    status["phase"] = "Running"
    status["podIP"], status["podIPs"] = address, [{"ip": address}]
    status["hostIP"] = f"10.128.{address.split('.')[2]}.1"
    _container_state(pod, {"running": {"startedAt": now}}, started=True)
    _set_conditions(pod, {"PodReadyToStartContainers": True, "Ready": False, "ContainersReady": False}, now)


def ready(pod: Object, now: str) -> None:
    _container_state(pod, pod["status"]["containerStatuses"][0]["state"], started=True, is_ready=True)
    _set_conditions(pod, {"Ready": True, "ContainersReady": True}, now)


def waiting(pod: Object, reason: str, message: str, now: str) -> None:
    state = {"waiting": {"reason": reason, **({"message": message} if message else {})}}
    _container_state(pod, state)
    _set_conditions(pod, {"Ready": False, "ContainersReady": False}, now)


def crashed(pod: Object, code: int, reason: str, back_off: str, now: str) -> None:
    """End the container with a failure and let it wait for its next start."""
    known = (pod["status"].get("containerStatuses") or [{}])[0]
    ended = _ended(known, code, reason, now)
    waiting(pod, "CrashLoopBackOff", f"back-off {back_off} restarting failed container=run", now)
    status = pod["status"]["containerStatuses"][0]
    status["lastState"] = {"terminated": ended}
    status["restartCount"] = known.get("restartCount", 0) + 1


def finished(pod: Object, code: int, reason: str, now: str) -> None:
    """Finish a pod that is not started again."""
    known = (pod["status"].get("containerStatuses") or [{}])[0]
    pod["status"]["phase"] = "Succeeded" if code == 0 else "Failed"
    _container_state(pod, {"terminated": _ended(known, code, reason, now)})
    _set_conditions(pod, {"Ready": False, "ContainersReady": False, "PodReadyToStartContainers": False}, now)


def unready(pod: Object, now: str) -> None:
    """Mark a pod as not ready, because its node is silent."""
    _set_conditions(pod, {"Ready": False, "ContainersReady": False}, now)


def terminating(pod: Object, now: str) -> None:
    pod["metadata"]["deletionTimestamp"] = now
    pod["metadata"]["deletionGracePeriodSeconds"] = 30


def lost(node: Object, now: str) -> None:
    """Mark a node whose kubelet is silent, as the node lifecycle controller does."""
    for condition in node["status"]["conditions"]:
        condition |= {"status": "Unknown", "lastTransitionTime": now, "reason": "NodeStatusUnknown"}
        condition["message"] = "Kubelet stopped posting node status."
    taints = [{"key": _UNREACHABLE, "effect": effect, "timeAdded": now} for effect in ("NoSchedule", "NoExecute")]
    node["spec"]["taints"] = [*node["spec"].get("taints", ()), *taints]


def _ended(known: Object, code: int, reason: str, now: str) -> Object:
    since = known.get("state", {}).get("running", {}).get("startedAt", now)
    return {
        "exitCode": code,
        "reason": reason,
        "startedAt": since,
        "finishedAt": now,
        "containerID": known.get("containerID", ""),
    }


def _container_state(pod: Object, state: Object, *, started: bool = False, is_ready: bool = False) -> None:
    known = (pod["status"].get("containerStatuses") or [{}])[0]
    image = pod["spec"]["containers"][0]["image"]
    pod["status"]["containerStatuses"] = [
        {
            "name": "run",
            "state": state,
            "lastState": known.get("lastState", {}),
            "ready": is_ready,
            "restartCount": known.get("restartCount", 0),
            "image": image,
            "imageID": f"simulated://{image}" if started else "",
            "containerID": f"simulated://{pod['metadata']['uid']}" if started else "",
            "started": started,
        }
    ]


def _set_conditions(pod: Object, changes: dict[str, bool], now: str) -> None:
    known = {item["type"]: item for item in pod["status"].get("conditions") or ()}
    for kind, holds in changes.items():
        status = "True" if holds else "False"
        if known.get(kind, {}).get("status") == status:
            continue
        known[kind] = {"type": kind, "status": status, "lastProbeTime": None, "lastTransitionTime": now}
        if kind in ("Ready", "ContainersReady") and not holds:
            known[kind]["reason"], known[kind]["message"] = _UNREADY
    pod["status"]["conditions"] = [known[kind] for kind in POD_CONDITIONS if kind in known]
