"""The pods of a ReplicaSet: which count, how they stand, and which go first when there are too many. All pure."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cmp_to_key
from typing import Any

from grid.sandbox.client import (
    Object,
    annotations_of,
    condition_of,
    is_terminating,
    labels_of,
    parse_time,
    uid_of,
)
from grid.sandbox.controllers.podresources import is_finished

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASE_ORDER = {"Pending": 0, "Unknown": 1, "Running": 2}


def is_active(pod: Mapping[str, Any]) -> bool:
    return not is_finished(pod) and not is_terminating(pod)


def is_ready(pod: Mapping[str, Any]) -> bool:
    condition = condition_of(pod, "Ready")
    return condition is not None and condition.get("status") == "True"


def ready_since(pod: Mapping[str, Any]) -> datetime | None:
    condition = condition_of(pod, "Ready")
    if condition is None or condition.get("status") != "True":
        return None
    return parse_time(condition.get("lastTransitionTime"))


def seconds_until_available(pod: Mapping[str, Any], min_ready_seconds: int, now: datetime) -> float | None:
    """0 or less: available; None: not ready, so nobody knows."""
    if not is_ready(pod):
        return None
    since = ready_since(pod)
    if not min_ready_seconds or since is None:
        return 0.0
    return min_ready_seconds - (now - since).total_seconds()


@dataclass(frozen=True, slots=True)
class Tally:
    """How the pods of one ReplicaSet stand; `check_again` is when the next ready one counts as available."""

    replicas: int
    fully_labeled: int
    ready: int
    available: int
    terminating: int
    check_again: float | None


def tally(
    pods: Iterable[Mapping[str, Any]], template_labels: Mapping[str, str], min_ready_seconds: int, now: datetime
) -> Tally:
    owned = list(pods)
    active = [pod for pod in owned if is_active(pod)]
    waits = [seconds_until_available(pod, min_ready_seconds, now) for pod in active]
    later = [wait for wait in waits if wait is not None and wait > 0]
    return Tally(
        replicas=len(active),
        fully_labeled=sum(template_labels.items() <= labels_of(pod).items() for pod in active),
        ready=sum(is_ready(pod) for pod in active),
        available=sum(wait is not None and wait <= 0 for wait in waits),
        terminating=sum(is_terminating(pod) and not is_finished(pod) for pod in owned),
        check_again=min(later, default=None),
    )


def status_of(counts: Tally, generation: int, conditions: Sequence[Object]) -> Object:
    """A ReplicaSet's status; zeros are left out as the real controller leaves them out, except the first and terminating."""
    status: Object = {"replicas": counts.replicas}
    optional = {
        "fullyLabeledReplicas": counts.fully_labeled,
        "readyReplicas": counts.ready,
        "availableReplicas": counts.available,
    }
    status |= {name: value for name, value in optional.items() if value}
    status["terminatingReplicas"] = counts.terminating
    status["observedGeneration"] = generation
    if conditions:
        status["conditions"] = list(conditions)
    return status


def deletion_order(pods: Sequence[Object], related: Iterable[Mapping[str, Any]], now: datetime) -> list[Object]:
    """Pods in the order in which they are deleted at scale-down: the least useful first.

    Unassigned, pending, not ready, cheap by `pod-deletion-cost`, on a node with many `related` pods (those of the same
    Deployment), ready for a shorter time, restarted more often, younger. Ages compare by their logarithm, so that pods of
    about the same age are chosen without preference.
    """
    doubled = Counter(pod["spec"].get("nodeName") or "" for pod in related if is_active(pod))

    def compare(left: Object, right: Object) -> int:
        for one, other in zip(_first_criteria(left, doubled), _first_criteria(right, doubled), strict=True):
            if one != other:
                return -1 if one < other else 1
        if is_ready(left):
            by_age = _compare_age(ready_since(left), ready_since(right), left, right, now)
            if by_age:
                return by_age
        restarts = _restarts(right) - _restarts(left)
        if restarts:
            return restarts
        born = [parse_time(pod["metadata"].get("creationTimestamp")) for pod in (left, right)]
        return _compare_age(born[0], born[1], left, right, now)

    return sorted(pods, key=cmp_to_key(compare))


def _first_criteria(pod: Object, doubled: Mapping[str, int]) -> tuple[int, ...]:
    node = pod["spec"].get("nodeName") or ""
    return (
        1 if node else 0,
        _PHASE_ORDER.get(pod.get("status", {}).get("phase", "Pending"), 0),
        int(is_ready(pod)),
        _deletion_cost(pod),
        -doubled[node],
    )


def _deletion_cost(pod: Object) -> int:
    try:
        return int(annotations_of(pod).get(DELETION_COST, "0"))
    except ValueError:
        return 0


def _restarts(pod: Object) -> int:
    return max(
        (item.get("restartCount", 0) for item in pod.get("status", {}).get("containerStatuses") or ()), default=0
    )


def _compare_age(
    left_time: datetime | None, right_time: datetime | None, left: Object, right: Object, now: datetime
) -> int:
    if left_time == right_time:
        return 0
    if left_time is None or right_time is None:
        return -1 if left_time is None else 1
    difference = _log_age(left_time, now) - _log_age(right_time, now)
    if difference:
        return difference
    return -1 if uid_of(left) < uid_of(right) else 1


def _log_age(moment: datetime, now: datetime) -> int:
    nanoseconds = (now - moment).total_seconds() * 1e9
    return int(math.log2(nanoseconds)) if nanoseconds >= 1 else -1
