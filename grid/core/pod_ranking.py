"""Ranks the pods of a ReplicaSet for deletion when there are too many, as Kubernetes 1.36 does; pure.

It works on plain values, because the embedded cluster, which deletes pods in this order, and the pages, which show it, have pods in
different forms. https://github.com/kubernetes/kubernetes/blob/v1.36.0/pkg/controller/controller_utils.go, `ActivePodsWithRanks`
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cmp_to_key

_PHASE_ORDER = {"Pending": 0, "Unknown": 1, "Running": 2}


@dataclass(frozen=True, slots=True)
class RankedPod:
    """The facts of a pod that count. `ready_since` is None while the pod is not ready, or when the time is not known."""

    uid: str
    node: str
    phase: str
    is_ready: bool
    cost: int
    ready_since: datetime | None
    restarts: int
    created: datetime | None


def read_cost(annotation: str | None) -> int:
    """Return the value of `pod-deletion-cost`; 0 when it is no number, as in Kubernetes."""
    try:
        return int(annotation or "0")
    except ValueError:
        return 0


def rank_for_deletion(pods: Sequence[RankedPod], nodes: Iterable[str], now: datetime) -> list[RankedPod]:
    """Return the pods, first to be deleted first; `nodes` has the node of each active pod of the same Deployment, once per pod. The order
    is: unassigned, pending, not ready, cheap, on a node with many of them, ready for a shorter time, restarted more often, younger. Ages
    compare by their logarithm, so that pods of about the same age are chosen without preference: then the uid decides."""
    together = Counter(nodes)

    def first(pod: RankedPod) -> tuple[int, ...]:
        return bool(pod.node), _PHASE_ORDER.get(pod.phase, 0), pod.is_ready, pod.cost, -together[pod.node]

    def compare(left: RankedPod, right: RankedPod) -> int:
        left_state, right_state = first(left), first(right)
        if left_state != right_state:
            return -1 if left_state < right_state else 1
        by_readiness = _by_age(left, right, left.ready_since, right.ready_since, now) if left.is_ready else 0
        by_restarts = right.restarts - left.restarts
        return by_readiness or by_restarts or _by_age(left, right, left.created, right.created, now)

    return sorted(pods, key=cmp_to_key(compare))


def _by_age(
    left: RankedPod, right: RankedPod, left_time: datetime | None, right_time: datetime | None, now: datetime
) -> int:
    """Compare two times: unknown first, then the latest first."""
    if left_time == right_time:
        return 0
    if left_time is None or right_time is None:
        return -1 if left_time is None else 1
    difference = _log_age(left_time, now) - _log_age(right_time, now)
    return difference or (-1 if left.uid < right.uid else 1)


def _log_age(moment: datetime, now: datetime) -> int:
    nanoseconds = (now - moment).total_seconds() * 1e9
    return int(math.log2(nanoseconds)) if nanoseconds >= 1 else -1
