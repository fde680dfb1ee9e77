"""A Deployment's status: counts, conditions, and whether its rollout is complete, moving or stuck. All pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from grid.sandbox.client import Object, format_time, name_of, parse_time
from grid.sandbox.controllers.rollout import is_rolling, limits, spec_replicas, status_number, total

PROGRESSING, AVAILABLE, FAILURE = "Progressing", "Available", "ReplicaFailure"
_NEW_AVAILABLE, _TIMED_OUT = "NewReplicaSetAvailable", "ProgressDeadlineExceeded"
# Kubernetes writes "no deadline" as the largest int32.
_NO_DEADLINE = 2**31 - 1
_Truth = Literal["True", "False", "Unknown"]


@dataclass(frozen=True, slots=True)
class RolloutCondition:
    """A condition to be set."""

    type: str
    status: _Truth
    reason: str
    message: str


def find(conditions: Sequence[Object], kind: str) -> Object | None:
    return next((item for item in conditions if item["type"] == kind), None)


def with_condition(conditions: Sequence[Object], new: RolloutCondition, now: datetime) -> list[Object]:
    """Return the conditions with the new one at the end, as on Kubernetes; unchanged if its status and reason are the same."""
    old = find(conditions, new.type)
    if old is not None and (old["status"], old.get("reason")) == (new.status, new.reason):
        return list(conditions)
    return _replaced(conditions, old, new, now)


def _replaced(conditions: Sequence[Object], old: Object | None, new: RolloutCondition, now: datetime) -> list[Object]:
    stamp = format_time(now)
    same_status = old is not None and old["status"] == new.status
    condition = {
        "type": new.type,
        "status": new.status,
        "lastUpdateTime": stamp,
        "lastTransitionTime": old["lastTransitionTime"] if old is not None and same_status else stamp,
        "reason": new.reason,
        "message": new.message,
    }
    return [*without(conditions, new.type), condition]


def without(conditions: Sequence[Object], kind: str) -> list[Object]:
    return [item for item in conditions if item["type"] != kind]


def deadline_of(deployment: Object) -> int | None:
    deadline = deployment["spec"].get("progressDeadlineSeconds")
    return None if deadline is None or deadline >= _NO_DEADLINE else int(deadline)


def basic_status(deployment: Object, newest: Object | None, sets: Sequence[Object], now: datetime) -> Object:
    """Return the counts and the Available condition, with the other conditions unchanged."""
    counts = {
        name: sum(status_number(item, name) for item in sets)
        for name in ("replicas", "readyReplicas", "availableReplicas", "terminatingReplicas")
    }
    counts["updatedReplicas"] = status_number(newest, "replicas") if newest else 0
    counts["unavailableReplicas"] = max(0, total(sets) - counts["availableReplicas"])
    old = deployment.get("status") or {}
    status: Object = {"observedGeneration": deployment["metadata"].get("generation", 0)}
    order = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")
    status |= {name: counts[name] for name in order if counts[name]}
    status["terminatingReplicas"] = counts["terminatingReplicas"]
    wanted = spec_replicas(deployment)
    allowed = limits(deployment)[1] if is_rolling(deployment) and wanted else 0
    if counts["availableReplicas"] >= wanted - allowed:
        minimum = RolloutCondition(
            AVAILABLE, "True", "MinimumReplicasAvailable", "Deployment has minimum availability."
        )
    else:
        minimum = RolloutCondition(
            AVAILABLE, "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
        )
    status["conditions"] = with_condition(old.get("conditions") or [], minimum, now)
    if old.get("collisionCount"):
        status["collisionCount"] = old["collisionCount"]
    return status


def rollout_status(deployment: Object, newest: Object | None, sets: Sequence[Object], now: datetime) -> Object:
    """Return the whole status of a rollout: also whether it progresses, and the failure of a set that cannot create pods."""
    status = basic_status(deployment, newest, sets, now)
    conditions: list[Object] = status["conditions"]
    present = find((deployment.get("status") or {}).get("conditions") or [], PROGRESSING)
    if deadline_of(deployment) is None:
        conditions = without(conditions, PROGRESSING)
    elif not _was_complete(status, present):
        conditions = _progress(deployment, status, conditions, newest, now)
    failure = _failure(newest, sets)
    conditions = without(conditions, FAILURE) if failure is None else with_condition(conditions, failure, now)
    return {**status, "conditions": conditions}


def _was_complete(status: Object, present: Object | None) -> bool:
    up_to_date = status.get("replicas", 0) == status.get("updatedReplicas", 0)
    return up_to_date and present is not None and present.get("reason") == _NEW_AVAILABLE


def _progress(
    deployment: Object, status: Object, conditions: list[Object], newest: Object | None, now: datetime
) -> list[Object]:
    subject = f'ReplicaSet "{name_of(newest)}"' if newest else f'Deployment "{name_of(deployment)}"'
    if is_complete(deployment, status):
        done = RolloutCondition(PROGRESSING, "True", _NEW_AVAILABLE, f"{subject} has successfully progressed.")
        return with_condition(conditions, done, now)
    if _is_moving(deployment, status):
        moving = RolloutCondition(PROGRESSING, "True", "ReplicaSetUpdated", f"{subject} is progressing.")
        # The condition is written anew at each progress: the deadline counts from its update time.
        return _replaced(conditions, find(conditions, PROGRESSING), moving, now)
    if _is_late(deployment, conditions, now):
        late = RolloutCondition(PROGRESSING, "False", _TIMED_OUT, f"{subject} has timed out progressing.")
        return with_condition(conditions, late, now)
    return conditions


def is_complete(deployment: Object, status: Object) -> bool:
    wanted = spec_replicas(deployment)
    counts = (status.get(name) or 0 for name in ("updatedReplicas", "replicas", "availableReplicas"))
    current = (status.get("observedGeneration") or 0) >= deployment["metadata"].get("generation", 0)
    return current and all(count == wanted for count in counts)


def _is_moving(deployment: Object, status: Object) -> bool:
    old = deployment.get("status") or {}

    def grew(name: str) -> bool:
        return (status.get(name) or 0) > (old.get(name) or 0)

    def outdated(of: Object) -> int:
        return (of.get("replicas") or 0) - (of.get("updatedReplicas") or 0)

    return (
        grew("updatedReplicas")
        or outdated(status) < outdated(old)
        or grew("readyReplicas")
        or grew("availableReplicas")
    )


def _is_late(deployment: Object, conditions: Sequence[Object], now: datetime) -> bool:
    progressing = find(conditions, PROGRESSING)
    if progressing is None or progressing.get("reason") == _NEW_AVAILABLE:
        return False
    if progressing.get("reason") == _TIMED_OUT:
        return True
    due = _due(deployment, progressing)
    return due is not None and due < now


def _due(deployment: Object, progressing: Object) -> datetime | None:
    deadline = deadline_of(deployment)
    since = parse_time(progressing.get("lastUpdateTime"))
    return None if deadline is None or since is None else since + timedelta(seconds=deadline)


def seconds_until_late(deployment: Object, status: Object, now: datetime) -> float | None:
    """Return the seconds until a rollout without progress is late, or None when no rollout is under way."""
    progressing = find(status.get("conditions") or [], PROGRESSING)
    if progressing is None or is_complete(deployment, status) or progressing.get("reason") == _TIMED_OUT:
        return None
    due = _due(deployment, progressing)
    return None if due is None else max(0.0, (due - now).total_seconds()) + 1


def _failure(newest: Object | None, sets: Sequence[Object]) -> RolloutCondition | None:
    """Return the new set's failure, or else the first of any other set, or None."""
    for item in [*([newest] if newest else []), *sets]:
        condition = find((item.get("status") or {}).get("conditions") or [], FAILURE)
        if condition is not None:
            return RolloutCondition(
                FAILURE, condition["status"], condition.get("reason", ""), condition.get("message", "")
            )
    return None
