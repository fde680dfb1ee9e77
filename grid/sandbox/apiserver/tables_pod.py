"""The row of a pod in `kubectl get pods`: its STATUS is a summary of phase, containers and deletion that users know
by heart.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from grid.sandbox.apiserver.ages import age, human_duration, parse_time
from grid.sandbox.apiserver.kinds import Object
from grid.sandbox.apiserver.pods import is_ready

POD_COLUMNS = (
    ("Name", 0),
    ("Ready", 0),
    ("Status", 0),
    ("Restarts", 0),
    ("Age", 0),
    ("IP", 1),
    ("Node", 1),
    ("Nominated Node", 1),
    ("Readiness Gates", 1),
)


def pod_cells(pod: Object, now: datetime) -> list[Any]:
    spec, status = pod["spec"], pod.get("status") or {}
    sidecars = _sidecars(pod)
    initial = [each for each in status.get("initContainerStatuses") or () if each["name"] in sidecars]
    ready = sum(1 for each in initial if each.get("ready"))
    counted = [*initial, *(status.get("containerStatuses") or ())]
    if _is_initialized(pod):
        running = (each for each in status.get("containerStatuses") or () if "running" in (each.get("state") or {}))
        ready += sum(1 for each in running if each.get("ready"))
    else:
        counted = list(status.get("initContainerStatuses") or ())
    return [
        pod["metadata"]["name"],
        f"{ready}/{len(spec.get('containers') or ()) + len(sidecars)}",
        pod_status(pod),
        _restarts(counted, now),
        age(pod, now),
        status.get("podIP") or "<none>",
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
        "<none>",
    ]


def pod_status(pod: Object) -> str:
    status = pod.get("status") or {}
    words = status.get("reason") or status.get("phase") or "Unknown"
    if any(
        each["type"] == "PodScheduled" and each.get("reason") == "SchedulingGated"
        for each in status.get("conditions") or ()
    ):
        words = "SchedulingGated"
    words = _init_status(pod) or words
    if _is_initialized(pod):
        words = _container_status(pod, words)
    if "deletionTimestamp" in pod["metadata"]:
        if status.get("reason") == "NodeLost":
            return "Unknown"
        # One that has ended and is kept by a finalizer goes on saying how it ended.
        return words if status.get("phase") in ("Succeeded", "Failed") else "Terminating"
    return words


def _sidecars(pod: Object) -> set[str]:
    return {each["name"] for each in pod["spec"].get("initContainers") or () if each.get("restartPolicy") == "Always"}


def _is_initialized(pod: Object) -> bool:
    """Return whether the table goes by the containers: also after the end of a pod whose sidecars ended after them, by a signal."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return not _init_status(pod) or any(
        condition["type"] == "Initialized" and condition["status"] == "True" for condition in conditions
    )


def _init_status(pod: Object) -> str:
    specs, sidecars = pod["spec"].get("initContainers") or [], _sidecars(pod)
    for number, each in enumerate((pod.get("status") or {}).get("initContainerStatuses") or ()):
        state = each.get("state") or {}
        terminated, waiting = state.get("terminated"), state.get("waiting") or {}
        if terminated and terminated.get("exitCode") == 0:
            continue
        if each["name"] in sidecars and each.get("started"):
            continue
        if terminated:
            return f"Init:{_ended(terminated)}"
        if waiting.get("reason") and waiting["reason"] != "PodInitializing":
            return f"Init:{waiting['reason']}"
        return f"Init:{number}/{len(specs)}"
    return ""


def _container_status(pod: Object, words: str) -> str:
    running = False
    for each in reversed((pod.get("status") or {}).get("containerStatuses") or ()):
        state = each.get("state") or {}
        if (state.get("waiting") or {}).get("reason"):
            words = state["waiting"]["reason"]
        elif state.get("terminated"):
            words = _ended(state["terminated"])
        elif each.get("ready") and "running" in state:
            running = True
    if words == "Completed" and running:
        return "Running" if is_ready(pod) else "NotReady"
    return words


def _ended(terminated: Object) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _restarts(containers: Sequence[Object], now: datetime) -> str:
    count = sum(each.get("restartCount", 0) for each in containers)
    ends = [((each.get("lastState") or {}).get("terminated") or {}).get("finishedAt") for each in containers]
    latest = max((parse_time(end) for end in ends if end), default=None)
    return f"{count} ({human_duration(now - latest)} ago)" if count and latest else str(count)
