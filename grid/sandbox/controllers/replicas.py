"""The pods of a ReplicaSet: which are active, their counts, and the order of deletion at scale-down. All pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from grid.core.pod_ranking import RankedPod, rank_for_deletion, read_cost
from grid.sandbox.client import Object, annotations_of, condition_of, is_terminating, labels_of, parse_time, uid_of
from grid.sandbox.controllers.podresources import is_finished

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


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
    """Return the seconds until the pod is available; 0 or less: it is, None: it is not ready, so that is unknown."""
    if not is_ready(pod):
        return None
    since = ready_since(pod)
    if not min_ready_seconds or since is None:
        return 0.0
    return min_ready_seconds - (now - since).total_seconds()


@dataclass(frozen=True, slots=True)
class ReplicaCounts:
    """The counts of one ReplicaSet's pods; `check_again` is the seconds until the next ready one counts as available."""

    replicas: int
    fully_labeled: int
    ready: int
    available: int
    terminating: int
    check_again: float | None


def tally(
    pods: Iterable[Mapping[str, Any]], template_labels: Mapping[str, str], min_ready_seconds: int, now: datetime
) -> ReplicaCounts:
    owned = list(pods)
    active = [pod for pod in owned if is_active(pod)]
    waits = [seconds_until_available(pod, min_ready_seconds, now) for pod in active]
    later = [wait for wait in waits if wait is not None and wait > 0]
    return ReplicaCounts(
        replicas=len(active),
        fully_labeled=sum(template_labels.items() <= labels_of(pod).items() for pod in active),
        ready=sum(is_ready(pod) for pod in active),
        available=sum(wait is not None and wait <= 0 for wait in waits),
        terminating=sum(is_terminating(pod) and not is_finished(pod) for pod in owned),
        check_again=min(later, default=None),
    )


def status_of(counts: ReplicaCounts, generation: int, conditions: Sequence[Object]) -> Object:
    """Return a ReplicaSet's status; zeros are left out as by the real controller, except the first and terminating."""
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
    """Return the pods in the order of their deletion at scale-down; `related` are the pods of the same Deployment."""
    by_uid = {uid_of(pod): pod for pod in pods}
    nodes = (pod["spec"].get("nodeName") or "" for pod in related if is_active(pod))
    return [by_uid[ranked.uid] for ranked in rank_for_deletion([_ranked(pod) for pod in pods], nodes, now)]


def _ranked(pod: Object) -> RankedPod:
    statuses = pod.get("status", {}).get("containerStatuses") or ()
    return RankedPod(
        uid=uid_of(pod),
        node=pod["spec"].get("nodeName") or "",
        phase=pod.get("status", {}).get("phase", "Pending"),
        is_ready=is_ready(pod),
        cost=read_cost(annotations_of(pod).get(DELETION_COST)),
        ready_since=ready_since(pod),
        restarts=max((item.get("restartCount", 0) for item in statuses), default=0),
        created=parse_time(pod["metadata"].get("creationTimestamp")),
    )
