"""A cluster's frozen spec to build objects from: a GPU tier for its workers, attached to the workspace xyz."""

from typing import Any

from grid.executions.spec import ClusterSpec, EnvironmentSpec, ExecutionSpec, ProjectSpec, TierSpec

LABELS = {
    "app.kubernetes.io/name": "science",
    "app.kubernetes.io/instance": "cluster-abc",
    "app.kubernetes.io/component": "cluster",
    "app.kubernetes.io/managed-by": "compute-grid",
    "dominodatalab.com/workload-type": "cluster",
    "dominodatalab.com/hardware-tier-id": "gpu",
    "dominodatalab.com/project-id": "churn",
    "dominodatalab.com/starting-user-username": "alice",
    "dominodatalab.com/execution-id": "abc",
}
OWNER = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "name": "cluster-abc",
    "uid": "anchor-uid",
    "controller": True,
    "blockOwnerDeletion": True,
}
WORKER_PODS = {"dominodatalab.com/execution-id": "abc", "app.kubernetes.io/component": "worker"}


def tier(cores: str = "1", memory: str = "1Gi", **more: Any) -> TierSpec:
    return TierSpec(
        id="small",
        name="Small",
        node_pool="default",
        cores=cores,
        cores_limit=cores,
        memory=memory,
        memory_limit=memory,
        **more,
    )


HEAD_TIER = tier(memory="4Gi", ephemeral_storage="10Gi")
WORKER_TIER = TierSpec(
    id="gpu",
    name="GPU",
    node_pool="default-gpu",
    cores="3",
    cores_limit="4",
    memory="12Gi",
    memory_limit="14Gi",
    gpus=1,
    gpu_resource="nvidia.com/gpu",
    shared_memory="2Gi",
    ephemeral_storage="20Gi",
    tolerations=({"key": "team", "operator": "Equal", "value": "vision"},),
    extra_labels={"team": "vision", "app.kubernetes.io/component": "them"},
    extra_annotations={"cost-centre": "42", "cluster-autoscaler.kubernetes.io/safe-to-evict": "true"},
)


def cluster(name: str = "dask", **changes: Any) -> ClusterSpec:
    whole: dict[str, Any] = {
        "framework": name,
        "version": "1.0",
        "head_tier": HEAD_TIER,
        "workers_minimum": 2,
        "workers_maximum": 5,
        "local_storage": "20Gi",
        "drain_seconds": 60,
        "attached_to": "xyz",
    }
    return ClusterSpec(**(whole | changes))


def spec(*, of: ClusterSpec | None = None, **changes: Any) -> ExecutionSpec:
    whole: dict[str, Any] = {
        "id": "abc",
        "kind": "cluster",
        "owner": "alice",
        "title": "Explore “all” of it",
        "address": "https://abc.ws.test/",
        "project": ProjectSpec(id="churn", volume_name="project-churn", volume_size="10Gi"),
        "environment": EnvironmentSpec(
            id="science", name="Science", image="science:1", variables={"THREADS": "2", "POD_IP": "theirs"}
        ),
        "tier": WORKER_TIER,
        "cluster": of or cluster(),
    }
    return ExecutionSpec(**(whole | changes))


def small_spec(
    framework: str,
    *,
    id: str = "abc",
    head: TierSpec | None = None,
    workers: TierSpec | None = None,
    drain_seconds: int = 60,
) -> ExecutionSpec:
    """A cluster by itself, of small tiers unless others are given."""
    head_tier = head or tier()
    of = cluster(framework, head_tier=head_tier, workers_minimum=1, drain_seconds=drain_seconds, attached_to="")
    return spec(of=of, id=id, tier=workers or tier())


def ray_spec(id: str = "c1", **changes: Any) -> ExecutionSpec:
    return small_spec("ray", id=id, head=tier(memory="2Gi"), **changes)
