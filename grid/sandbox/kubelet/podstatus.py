"""A pod's status as a real kubelet would report it, computed from the state of its containers. All pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from grid.sandbox.client import Object, format_time
from grid.sandbox.kubelet.runtime import Attempt

_OURS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


class ContainerRole(StrEnum):
    """An init container ends before the next one starts; a sidecar keeps running beside the main containers."""

    INIT = "init"
    SIDECAR = "sidecar"
    MAIN = "main"


class WaitingReason(NamedTuple):
    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class ContainerView:
    """One container now. `waiting` is why it does not run; with it, an ended attempt is shown as the last state."""

    name: str
    role: ContainerRole
    image: str
    image_id: str
    waiting: WaitingReason | None = None
    current: Attempt | None = None
    previous: Attempt | None = None
    message: str = ""  # the termination message of the current attempt
    previous_message: str = ""
    started: bool = False
    ready: bool = False

    @property
    def running(self) -> bool:
        return self.current is not None and self.current.running

    @property
    def ended_well(self) -> bool:
        return (
            self.waiting is None
            and self.current is not None
            and self.current.exit is not None
            and self.current.exit.code == 0
        )

    @property
    def initialized(self) -> bool:
        """True when the containers after it may start."""
        if self.role is ContainerRole.SIDECAR:
            return self.running and self.started
        return self.ended_well


@dataclass(frozen=True, slots=True)
class PodVerdict:
    """The kubelet's own decision on the whole pod, which overrides the state of its containers."""

    phase: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class PodFrame:
    """The facts about the pod itself rather than a container."""

    restart_policy: str
    started_at: datetime
    host_ip: str
    pod_ip: str = ""
    set_up: bool = False  # volumes are mounted and the address is assigned
    verdict: PodVerdict | None = None


def phase_of(containers: Sequence[ContainerView], restart_policy: str) -> str:
    """Return the phase as Kubernetes computes it: waiting with a last state counts as stopped; a sidecar counts only while it runs."""
    inits = [item for item in containers if item.role is ContainerRole.INIT]
    mains = [item for item in containers if item.role is ContainerRole.MAIN]
    begun = any(item.current is not None for item in mains)
    for item in inits:
        ended = item.current.exit if item.current is not None and item.waiting is None else None
        if ended is not None and ended.code != 0 and restart_policy == "Never":
            return "Failed"
    if not begun and any(not item.initialized for item in containers if item.role is not ContainerRole.MAIN):
        return "Pending"
    if any(item.current is None for item in mains):
        return "Pending"
    if any(item.running for item in containers if item.role is not ContainerRole.INIT):
        return "Running"
    return programs_phase(mains, restart_policy)


def programs_phase(mains: Sequence[ContainerView], restart_policy: str) -> str:
    """Return the phase by the programs alone: Succeeded or Failed when all have ended for good, and their sidecars may end."""
    if any(item.running or item.current is None for item in mains) or restart_policy == "Always" or not mains:
        return "Running"
    if all(item.ended_well for item in mains):
        return "Succeeded"
    return "Failed" if restart_policy == "Never" else "Running"


def build_status(frame: PodFrame, containers: Sequence[ContainerView], current: Object, now: datetime) -> Object:
    """Return the whole status. `current` is the one before, whose foreign fields and times of unchanged facts are kept."""
    phase = frame.verdict.phase if frame.verdict else phase_of(containers, frame.restart_policy)
    status: Object = {
        key: value
        for key, value in current.items()
        if key in ("qosClass", "nominatedNodeName", "resourceClaimStatuses")
    }
    status["phase"] = phase
    if frame.verdict:
        texts = (("reason", frame.verdict.reason), ("message", frame.verdict.message))
        status |= {key: text for key, text in texts if text}
    status["conditions"] = _conditions(frame, containers, phase, current.get("conditions") or (), now)
    status["hostIP"], status["hostIPs"] = frame.host_ip, [{"ip": frame.host_ip}]
    if frame.pod_ip:
        status["podIP"], status["podIPs"] = frame.pod_ip, [{"ip": frame.pod_ip}]
    status["startTime"] = format_time(frame.started_at)
    over = phase in ("Succeeded", "Failed")
    inits = [item for item in containers if item.role is not ContainerRole.MAIN]
    first = "PodInitializing" if inits else "ContainerCreating"
    if inits:
        status["initContainerStatuses"] = [_container_status(item, first, over=over) for item in inits]
    mains = [item for item in containers if item.role is ContainerRole.MAIN]
    status["containerStatuses"] = [_container_status(item, first, over=over) for item in mains]
    return status


def _conditions(
    frame: PodFrame,
    containers: Sequence[ContainerView],
    phase: str,
    before: Sequence[Mapping[str, object]],
    now: datetime,
) -> list[Object]:
    mains = [item for item in containers if item.role is not ContainerRole.INIT]
    inits = [item for item in containers if item.role is not ContainerRole.MAIN]
    unready = [item.name for item in mains if not item.ready]
    pending = (
        [item.name for item in inits if not item.initialized] if phase == "Pending" or not _begun(containers) else []
    )
    facts: dict[str, tuple[bool, str, str]] = {
        "PodReadyToStartContainers": (frame.set_up and phase not in ("Succeeded", "Failed"), "", ""),
        "Initialized": _fact(
            not pending, "ContainersNotInitialized", f"containers with incomplete status: [{_join(pending)}]"
        ),
        "PodScheduled": (True, "", ""),
    }
    ready = _fact(not unready, "ContainersNotReady", f"containers with unready status: [{_join(unready)}]")
    if phase in ("Succeeded", "Failed"):
        ready = (False, "PodCompleted" if phase == "Succeeded" else "PodFailed", "")
        facts["Initialized"] = (not pending, "PodCompleted" if phase == "Succeeded" else "", "")
    facts["Ready"] = facts["ContainersReady"] = ready
    old = {str(item.get("type")): item for item in before}
    conditions: list[Object] = []
    for kind in _OURS:
        holds, reason, message = facts[kind]
        condition: Object = {"type": kind, "status": "True" if holds else "False", "lastProbeTime": None}
        condition |= {key: text for key, text in (("reason", reason), ("message", message)) if text}
        unchanged = old.get(kind, {}).get("status") == condition["status"] and old[kind].get("lastTransitionTime")
        condition["lastTransitionTime"] = unchanged or format_time(now)
        conditions.append(condition)
    return conditions + [dict(item) for kind, item in old.items() if kind not in _OURS]


def _begun(containers: Sequence[ContainerView]) -> bool:
    return any(item.current is not None for item in containers if item.role is ContainerRole.MAIN)


def _fact(holds: bool, reason: str, message: str) -> tuple[bool, str, str]:
    return (True, "", "") if holds else (False, reason, message)


def _join(names: Sequence[str]) -> str:
    return " ".join(names)


def _container_status(item: ContainerView, first_reason: str, *, over: bool) -> Object:
    current, previous, last_message = item.current, item.previous, item.previous_message
    state: Object = {"waiting": {"reason": first_reason}}
    if current is not None and current.running:
        state = {"running": {"startedAt": format_time(current.started_at)}}
    elif item.waiting is not None and not (over and current is not None):
        state = {"waiting": {key: text for key, text in item.waiting._asdict().items() if text}}
        previous, last_message = current, item.message
    elif current is not None:
        state = {"terminated": _terminated(current, item.message)}
    status: Object = {
        "name": item.name,
        "state": state,
        "lastState": {"terminated": _terminated(previous, last_message)} if previous and previous.exit else {},
        "ready": item.ready or (item.role is ContainerRole.INIT and item.ended_well),
        "restartCount": current.spec.number if current is not None else 0,
        "image": item.image,
        "imageID": item.image_id,
        "started": item.started and item.running,
    }
    if current is not None:
        status["containerID"] = f"process://{current.id}"
    return status


def _terminated(attempt: Attempt, message: str) -> Object:
    ending = attempt.exit
    if ending is None:
        return {}
    text = ending.message or message
    return {
        "exitCode": ending.code,
        "reason": ending.reason,
        **({"message": text} if text else {}),
        "startedAt": format_time(attempt.started_at),
        "finishedAt": format_time(ending.finished_at),
        "containerID": f"process://{attempt.id}",
    }
