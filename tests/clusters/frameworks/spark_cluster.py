"""A small Spark cluster as `grid.executions.spec` describes it, for tests."""

from grid.executions.spec import ClusterSpec, EnvironmentSpec, ExecutionSpec, ProjectSpec, TierSpec


def tier(memory: str = "1Gi", cores: str = "1") -> TierSpec:
    return TierSpec(
        id="small",
        name="Small",
        node_pool="default",
        cores=cores,
        cores_limit=cores,
        memory=memory,
        memory_limit=memory,
    )


def spark_spec(
    *, workers: TierSpec | None = None, head: TierSpec | None = None, drain_seconds: int = 60
) -> ExecutionSpec:
    return ExecutionSpec(
        id="abcde12345",
        kind="cluster",
        owner="scientist",
        project=ProjectSpec(id="churn", volume_name="project-churn", volume_size="10Gi"),
        tier=workers or tier(),
        environment=EnvironmentSpec(id="spark-cluster", name="Spark cluster", image="compute-grid/spark:4.3"),
        cluster=ClusterSpec(
            framework="spark",
            version="4.3.0",
            head_tier=head or tier(),
            workers_minimum=1,
            workers_maximum=5,
            drain_seconds=drain_seconds,
        ),
    )
