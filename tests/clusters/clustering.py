"""On-demand clusters for page tests: stored ones with their specs and samples, their pods and autoscalers."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec

from dashboard.clusters.viewmodels.clusters import ClusterRecord
from dashboard.clusters.viewmodels.samples import SamplePoint
from grid.core.labels import APP_COMPONENT, KEYS, MANAGED_BY, MANAGER, POD_DELETION_COST
from grid.executions.spec import ExecutionSpec, columns_of
from grid.kube.objects import RawObject
from grid.models import ClusterSample, Execution, HardwareTier, Project, State, UsageInterval, User
from grid.models.execution import new_execution_id
from tests.executions.executing import make_execution, make_tier
from tests.support import builders
from tests.support.builders import MOMENT, NAMESPACE, condition

RECORD = ClusterRecord(
    framework="dask",
    head_tier_name="Small",
    head_millicores=1000,
    head_memory_bytes=4 * 2**30,
    head_gpus=0,
    head_cost_per_hour=Decimal("0.10"),
    workers_minimum=1,
    workers_maximum=5,
    autoscale=True,
    target_cpu=80,
    target_memory=80,
    on_demand=False,
)
HEAD_TIER = {"id": "small", "name": "Small", "cores": "1", "memory": "4Gi", "gpus": 0, "cost_per_hour": "0.10"}


def cluster_spec(id: str, *, minimum: int = 1, maximum: int = 5, framework: str = "dask", **scaling: Any) -> RawObject:
    """As REQUEST stores it, as far as pages read it."""
    tier = {
        "id": "large", "name": "Large", "node_pool": "default", "cores": "2", "cores_limit": "2", "memory": "8Gi",
        "memory_limit": "8Gi", "cost_per_hour": "0.40",
    }  # fmt: skip
    head = {**HEAD_TIER, "node_pool": "default", "cores_limit": "1", "memory_limit": "4Gi"}
    return {
        "id": id,
        "kind": "cluster",
        "owner": "alice",
        "project": {"id": "churn", "volume_name": "project-churn", "volume_size": "10Gi"},
        "tier": tier,
        "environment": {"id": "dask", "name": "Dask", "image": "compute-grid/dask:2026.8"},
        "cluster": {
            "framework": framework,
            "version": "2026.8.0",
            "head_tier": head,
            "workers_minimum": minimum,
            "workers_maximum": maximum,
            "scaling": scaling,
        },
    }


def make_cluster(
    owner: User, project: Project, *, state: State = State.RUNNING, spec: Mapping[str, Any] | None = None, **fields: Any
) -> Execution:
    """`spec` are the arguments of `cluster_spec`."""
    id = new_execution_id()
    frozen = cluster_spec(id, **(spec or {}))
    values = {"kind": "cluster", "slots": 6, "spec": frozen, **cluster_columns(frozen), **fields}
    return make_execution(owner, project, state=state, id=id, **values)


def cluster_columns(spec: RawObject) -> dict[str, Any]:
    """The columns of a stored cluster with this spec."""
    head_tier = HardwareTier.objects.filter(pk="small").first() or make_tier()
    return {"head_tier": head_tier, **columns_of(msgspec.convert(spec, ExecutionSpec))}


def head_pod(id: str, **fields: Any) -> RawObject:
    values: dict[str, Any] = {"node": "node-a", "phase": "Running", "ready": True, **fields}
    labels = {KEYS.execution: id, APP_COMPONENT: "head"}
    return builders.pod(f"cluster-{id}-head-7d9f-abcde", labels=labels, **values)


def worker_pod(
    id: str,
    name: str,
    *,
    cost: int | None = None,
    tasks: int | None = None,
    held: int = 0,
    annotations: Mapping[str, str] | None = None,
    **fields: Any,
) -> RawObject:
    """Ready on node-a unless `fields` say otherwise."""
    own = dict(annotations or {})
    if cost is not None:
        own[POD_DELETION_COST] = str(cost)
    if tasks is not None:
        own[KEYS.worker_report] = f'{{"tasks": {tasks}, "bytes": {held}}}'
    values: dict[str, Any] = {
        "node": "node-a", "phase": "Running", "ready": True, "requests": {"cpu": "2", "memory": "8Gi"}, **fields,
    }  # fmt: skip
    labels = {KEYS.execution: id, APP_COMPONENT: "worker"}
    return builders.pod(f"cluster-{id}-worker-6468bd54f7-{name}", labels=labels, annotations=own, **values)


def waiting_worker(id: str, name: str, **fields: Any) -> RawObject:
    """Without a node."""
    return worker_pod(id, name, **{"node": "", "phase": "Pending", "ready": False, **fields})


def autoscaler(
    id: str,
    *,
    minimum: int = 1,
    maximum: int = 5,
    current: int = 1,
    desired: int = 1,
    cpu: int | None = 40,
    conditions: list[RawObject] | None = None,
    **meta: Any,
) -> RawObject:
    usual = [
        condition("AbleToScale", "True", "ReadyForNewScale", "recommended size matches current size"),
        condition("ScalingActive", "True", "ValidMetricFound", "the HPA was able to successfully calculate"),
        condition("ScalingLimited", "False", "DesiredWithinRange", "the desired count is within the acceptable range"),
    ]
    target = {"type": "Utilization", "averageUtilization": 80}
    measured = [] if cpu is None else [{"type": "Resource", "resource": {"name": "cpu", "current": {
        "averageUtilization": cpu, "averageValue": "100m"}}}]  # fmt: skip
    labels = {KEYS.execution: id, MANAGED_BY: MANAGER}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": builders.metadata(f"cluster-{id}-worker", namespace=NAMESPACE, labels=labels, **meta),
        "spec": {
            "minReplicas": minimum,
            "maxReplicas": maximum,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        },
        "status": {
            "currentReplicas": current,
            "desiredReplicas": desired,
            "currentMetrics": measured,
            "conditions": usual if conditions is None else conditions,
        },
    }


def sample(minute: float, *, ready: int, wanted: int, cpu: int | None = 50, memory: int | None = 30) -> SamplePoint:
    return SamplePoint(MOMENT + timedelta(minutes=minute), ready, wanted, cpu, memory, None)


def make_samples(execution: Execution, *points: SamplePoint) -> None:
    ClusterSample.objects.bulk_create(
        ClusterSample(
            execution=execution, at=point.at, ready=point.ready, wanted=point.wanted,
            cpu_percent=point.cpu_percent, memory_percent=point.memory_percent, pending_tasks=point.pending_tasks,
        )
        for point in points
    )  # fmt: skip


def make_interval(
    execution: Execution, uid: str, *, price: str, began: float, ended: float | None = None
) -> UsageInterval:
    """Of a pod with one core and 4 GiB, from one minute to another; `ended` None: it still holds its node."""
    return UsageInterval.objects.create(
        execution=execution, pod_uid=uid, pod_name=uid, node_name="node-a", owner=execution.owner,
        project=execution.project, tier=execution.tier, node_pool="default", millicores=1000, mebibytes=4096, gpus=0,
        price_per_hour=Decimal(price), began_at=minutes(began), ended_at=None if ended is None else minutes(ended),
        seconds=None if ended is None else round((ended - began) * 60),
    )  # fmt: skip


def minutes(count: float) -> datetime:
    return MOMENT + timedelta(minutes=count)
