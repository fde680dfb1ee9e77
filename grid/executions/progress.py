"""The states of an execution, as a pure function of its row and of what is observed of its pod.

    deploying --a node is chosen--> preparing --ready--> running --program ends--> finishing
    deploying, preparing --too long--> error         any of them --pod gone or taken away--> error

Requests to stop, admission and clean-up are not decided here; see `grid.controller.controller`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import msgspec

from grid.diagnosis.beside import programs
from grid.diagnosis.held import is_unplaced
from grid.diagnosis.placement import SchedulingContext
from grid.diagnosis.pods import Diagnosis, explain_end, explain_pod
from grid.diagnosis.run_report import FILES_MISSING, has_ended_before_its_pod
from grid.executions.ledger import LedgerRecord
from grid.executions.lifecycle import Transition
from grid.executions.manifests import CONTAINER
from grid.kube.objects import Event, Pod, is_ready, true_condition
from grid.models import State

CREATED = "created"  # reason of a deploying execution whose objects were all created once
COMPLETED = "completed"
IMAGE_ID_LENGTH = 500
_BY_USER_CODE = frozenset({COMPLETED, "deadline", "exit_code", "out_of_memory", "storage_limit"})
_TIMEOUTS = {State.DEPLOYING: "deploying_timeout", State.PREPARING: "preparing_timeout"}


@dataclass(frozen=True, slots=True)
class ObservedPod:
    """The pod now, None when it is certain that there is none, with its events; `scheduling` is for the message of a timeout only."""

    pod: Pod | None
    events: Sequence[Event] = ()
    scheduling: SchedulingContext | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a reconcile: the next state, if it is time, and the pod whose node and log are the execution's."""

    change: Transition | None
    pod: Pod | None = None
    again: float | None = None


def next_change(
    row: LedgerRecord, seen: ObservedPod, *, timeouts: Mapping[State, int], now: datetime
) -> Transition | None:
    """Return the next state of an execution whose objects were created, or None to go on waiting."""
    pod = seen.pod
    if pod is None:
        return Transition(State.ERROR, "pod_gone", level="Warning", values={"kind": row.kind})
    if row.state == State.DEPLOYING and pod.spec.node_name:
        return Transition(State.PREPARING, "scheduled", values={"node": pod.spec.node_name, "kind": row.kind})
    why = explain_end(pod, seen.events) or explain_pod(pod, seen.events, now=now, scheduling=seen.scheduling)
    if pod.status.phase in ("Succeeded", "Failed") or has_ended_before_its_pod(pod):
        return _ended(row, why)
    if pod.metadata.deletion_timestamp is not None:
        condition = true_condition(pod, "DisruptionTarget")
        cause = (condition.message or condition.reason) if condition else ""
        return Transition(State.ERROR, "pod_deleted", level="Warning", values={"cause": cause, "kind": row.kind})
    if row.state == State.PREPARING and why.code == FILES_MISSING:
        return Transition(State.ERROR, why.code, f"{why.sentence} {why.next_step}", level="Warning")
    if row.state == State.PREPARING and is_ready(pod):
        return Transition(State.RUNNING, "ready")
    return _too_long(row, why, timeouts, now)


def waits_for_a_node(change: Transition | None, pod: Pod) -> bool:
    """Return whether the change is a timeout that tells of a pod without a node: its message is to say what keeps it off the nodes."""
    return change is not None and change.reason in _TIMEOUTS.values() and is_unplaced(pod)


def outcome(row: LedgerRecord) -> Transition:
    """Return how a finishing execution has ended; its reason was recorded when the program ended."""
    state = State.SUCCEEDED if row.reason == COMPLETED else State.FAILED
    level = "Normal" if state == State.SUCCEEDED else "Warning"
    return Transition(state, row.reason, row.message, level=level, values=row.reason_values)


def explained_by_log(change: Transition, pod: Pod, log: str, *, now: datetime) -> Transition:
    """Return the change of a failed program with the cause that its kept log gives: Kubernetes keeps only the last 2 KiB of it."""
    if change.reason != "exit_code":
        return change
    with_log = _with_log(pod, log)
    why = explain_end(with_log) or explain_pod(with_log, (), now=now)
    return replace(change, message=f"{why.sentence} {why.next_step}".strip()) if why.code == change.reason else change


def _with_log(pod: Pod, log: str) -> Pod:
    """Return the pod as if Kubernetes had kept the whole log of its program, with what it did keep at the end."""
    statuses = []
    for status in pod.status.container_statuses:
        ended = status.state.terminated
        if ended is not None and status.name == CONTAINER:
            ended = msgspec.structs.replace(ended, message=f"{log}\n{ended.message}")
            status = msgspec.structs.replace(status, state=msgspec.structs.replace(status.state, terminated=ended))
        statuses.append(status)
    known = msgspec.structs.replace(pod.status, container_statuses=tuple(statuses))
    return msgspec.structs.replace(pod, status=known)


def ran_since(pod: Pod) -> datetime | None:
    """Return when the program first started, as far as the pod still knows."""
    states = (status.state.running or status.state.terminated for status in programs(pod))
    return next((state.started_at for state in states if state is not None and state.started_at is not None), None)


def columns_from_status(pod: Pod) -> dict[str, Any]:
    """Return the columns that the status of the program's container fills: the image that runs, and the exit code once it has ended."""
    status = next((status for status in pod.status.container_statuses if status.name == CONTAINER), None)
    if status is None:
        return {}
    columns: dict[str, Any] = {"image_id": status.image_id[:IMAGE_ID_LENGTH]} if status.image_id else {}
    if (ended := status.state.terminated) is not None:
        columns["exit_code"] = ended.exit_code
    return columns


def _ended(row: LedgerRecord, why: Diagnosis) -> Transition:
    message = f"{why.sentence} {why.next_step}".strip()
    if why.code not in _BY_USER_CODE:
        return Transition(State.ERROR, why.code, message, level="Warning")
    if row.state == State.PREPARING:
        return Transition(State.RUNNING, "ran", values={})
    level = "Normal" if why.code == COMPLETED else "Warning"
    return Transition(State.FINISHING, why.code, message, level=level)


def _too_long(row: LedgerRecord, why: Diagnosis, timeouts: Mapping[State, int], now: datetime) -> Transition | None:
    limit = timeouts.get(row.state)
    if limit is None or now - row.state_since <= timedelta(seconds=limit):
        return None
    values = {"of": "", "seconds": limit, "last_known": f"{why.sentence} {why.next_step}".strip()}
    return Transition(State.ERROR, _TIMEOUTS[row.state], level="Warning", values=values)
