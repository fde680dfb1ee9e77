"""Clusters at one moment, with as many workers of each kind as a test says."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from grid.diagnosis.clusters import ClusterSnapshot, Member, explain_cluster
from grid.diagnosis.pods import explain_pod
from grid.kube.objects import Autoscaler, Event, Pod, RawObject
from tests.clusters.clustering import autoscaler, head_pod, waiting_worker, worker_pod
from tests.support import builders
from tests.support.builders import MOMENT, condition, container_status, decode, stamp

NOW = MOMENT + timedelta(minutes=5)
UNSCHEDULED = condition("PodScheduled", "False", "Unschedulable", "0/1 nodes are available: 1 Insufficient cpu.")


def member(pod: RawObject, *events: RawObject) -> Member:
    decoded = decode(pod, Pod)
    own_events = tuple(decode(event, Event) for event in events)
    return Member(decoded, explain_pod(decoded, own_events, now=NOW), own_events)


def event(pod: RawObject, reason: str, message: str) -> RawObject:
    return builders.event(f"{pod['metadata']['name']}-{reason}", about=pod, reason=reason, message=message, at=NOW)


def growing(name: str, size: str = "1->3") -> Member:
    pod = waiting_worker("c", name, conditions=[UNSCHEDULED])
    return member(pod, event(pod, "TriggeredScaleUp", f"pod triggered scale-up: [{{default {size} (max: 5)}}]"))


def pulling(name: str) -> Member:
    waits = container_status(state={"waiting": {"reason": "ContainerCreating"}})
    pod = worker_pod("c", name, ready=False, phase="Pending", statuses=[waits])
    return member(pod, event(pod, "Pulling", 'Pulling image "dask:1"'))


def starting(name: str, **fields: Any) -> RawObject:
    return worker_pod(
        "c", name, ready=False, statuses=[container_status(state={"running": {"startedAt": stamp(NOW)}})], **fields
    )


def ready(count: int, first: int = 0) -> list[Member]:
    return [member(worker_pod("c", f"r{number:03}")) for number in range(first, first + count)]


HEAD = member(head_pod("c"))
LEAVING = member(worker_pod("c", "gone", deletionTimestamp=stamp(NOW + timedelta(seconds=20))))


def snapshot(
    workers: Sequence[Member], *, desired: int = 0, head: Member | None = HEAD, **fields: Any
) -> ClusterSnapshot:
    values: dict[str, Any] = {"minimum": 1, "maximum": 20, "autoscales": True, "ready_nodes": 1, **fields}
    if "autoscaler" not in values and desired:
        values["autoscaler"] = decode(autoscaler("c", current=desired, desired=desired, maximum=20), Autoscaler)
    return ClusterSnapshot(head=head, workers=tuple(workers), **values)


def scaler(*conditions: RawObject, **fields: Any) -> Autoscaler:
    return decode(autoscaler("c", conditions=list(conditions) or None, **fields), Autoscaler)


def codes(seen: ClusterSnapshot) -> list[str]:
    return [diagnosis.code for diagnosis in explain_cluster(seen, now=NOW)]


def on_demand(*, maximum: int, current: int, each: str = "") -> Autoscaler:
    """It follows nothing but what the framework would like to have; `each` is what Kubernetes says of that for each worker."""
    raw = autoscaler("c", maximum=maximum, current=current, desired=current)
    metric = {"metric": {"name": "compute_grid_wanted_workers"}}
    target = {"type": "AverageValue", "averageValue": "1"}
    raw["spec"]["metrics"] = [{"type": "External", "external": {**metric, "target": target}}]
    measured = [{"type": "External", "external": {**metric, "current": {"averageValue": each}}}] if each else []
    raw["status"]["currentMetrics"] = measured
    return decode(raw, Autoscaler)
