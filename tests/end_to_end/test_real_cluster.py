"""A job with a Dask cluster on a real control plane: its own autoscaler, Deployments and scheduler, with our rights only.

It grows for what waits, which the real autoscaler reads through its aggregation layer, and shrinks when there is nothing (for CPU,
see `test_ray_and_spark_clusters.py`); and it is changed and repaired, also after the API server was away. Needs
REAL_KUBECONFIG, and for the last REAL_API_DOWN and REAL_API_UP, see
`test_real_control_plane`.
"""

import json
from collections import Counter
from collections.abc import Iterator

import pytest

from grid.kube.objects import RawObject
from tests.end_to_end.demand import SLEEPERS, demand_of
from tests.end_to_end.grid import Session, put_into_project
from tests.end_to_end.real import (
    API_DOWN,
    API_UP,
    NAMESPACE,
    RealGrid,
    cluster_of_its_own,
    is_ready,
    needs_real_cluster,
)
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200), needs_real_cluster]

PULL_SECONDS = 400.0
WORK_SECONDS = 600.0
MOST_EVENTS = 25

CLUSTER = {
    "kind": "job",
    "project": "churn",
    "environment": "dask-script",
    "tier": "small",
    "with_cluster": "on",
    "framework": "dask",
    "cluster_environment": "dask-cluster",
    "head_tier": "small",
    "worker_tier": "worker",
    "workers_minimum": "1",
    "autoscale": "on",
    "target_memory": "",
    "local_storage": "",
}


@pytest.fixture(scope="module")
def real_grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealGrid]:
    with cluster_of_its_own(tmp_path_factory.mktemp("real")) as grid:
        grid.prepare()
        grid.start_nodes("--metrics-server")
        grid.allow_demand()
        grid.start_controller(**grid.demand_settings())
        grid.start_web(**grid.demand_settings())
        wait_until(grid.demand_is_registered, 60, "external metrics")
        Session(grid, "admin").configure("com.cerebro.computegrid.clusters.scaleDownStabilisationSeconds", "15")
        yield grid


def test_a_cluster_grows_for_what_waits_in_it(real_grid: RealGrid) -> None:
    put_into_project(real_grid, "main.py", SLEEPERS)
    scientist = Session(real_grid, "scientist")
    fields = {**CLUSTER, "title": "Sleepers", "workers_maximum": "3", "target_cpu": "", "on_demand": "on"}
    job = scientist.launch(fields)
    scientist.wait_for(job, "Running", "Finishing", "Succeeded", seconds=PULL_SECONDS)
    wait_until(lambda: demand_of(real_grid) >= 3, 120, "the framework's wish for three workers")
    scientist.wait_for(job, "Succeeded", seconds=WORK_SECONDS)
    for line in ("grown", "shrunk"):
        scientist.wait_for_line(job, line, seconds=30)
    messages = rescales(real_grid)
    assert any("external metric compute_grid_wanted_workers" in text for text in messages) or is_silenced(real_grid)
    nothing_is_left(real_grid)
    real_grid.nothing_was_forbidden()


def test_a_cluster_is_changed_and_repaired_while_it_runs(real_grid: RealGrid) -> None:
    scientist = Session(real_grid, "scientist")
    size = {"workers_maximum": "1", "target_cpu": "80"}
    cluster = scientist.launch({**CLUSTER, "kind": "cluster", "title": "Shared", **size})
    scientist.wait_for(cluster, "Running", seconds=PULL_SECONDS)
    page, at = f"/executions/{cluster}/", address(real_grid, cluster)

    scientist.post(f"{page}resize/", {"minimum": "2", "maximum": "2"}, page=f"{page}resize/")
    wait_until(lambda: len(ready(real_grid, cluster, "worker")) == 2, 120, "two workers")
    heads = ready(real_grid, cluster, "head")
    scientist.post(f"{page}restart-head/", {}, page=f"{page}restart-head/")
    wait_until(lambda: "A new head answers" in scientist.get(page), 120, "another head")
    assert not heads & ready(real_grid, cluster, "head")

    name = f"cluster-{cluster}-worker"
    real_grid.kubectl("delete", f"hpa/{name}", f"deployment/{name}", "-n", NAMESPACE)
    for kind in ("HorizontalPodAutoscaler", "Deployment"):
        sentence = f"{kind} {name} had been deleted; it was created again."
        wait_until(lambda sentence=sentence: sentence in scientist.get(page), 120, sentence)  # type: ignore[misc]
    wait_until(lambda: len(ready(real_grid, cluster, "worker")) == 2, 120, "two workers again")
    assert address(real_grid, cluster) == at
    real_grid.nothing_was_forbidden()

    if API_DOWN and API_UP:
        with real_grid.without_api_server():
            pass
    assert scientist.state(cluster) == "Running"
    scientist.post(f"{page}resize/", {"minimum": "1", "maximum": "1"}, page=f"{page}resize/")
    wait_until(lambda: len(ready(real_grid, cluster, "worker")) == 1, 120, "one worker")
    scientist.post(f"{page}stop/", {}, page=f"{page}stop/")
    wait_until(lambda: scientist.state(cluster) == "Stopped", 120, "a stopped cluster")
    nothing_is_left(real_grid)
    real_grid.nothing_was_forbidden()


def address(grid: RealGrid, cluster: str) -> str:
    """Of its head's Service."""
    return grid.kubectl(
        "get", "service", f"cluster-{cluster}-head", "-n", NAMESPACE, "-o", "jsonpath={.spec.clusterIP}"
    )


def ready(grid: RealGrid, cluster: str, component: str) -> set[str]:
    """Names of its pods of this kind that are ready and not about to end."""
    labels = f"dominodatalab.com/execution-id={cluster},app.kubernetes.io/component={component}"
    pods = json.loads(grid.kubectl("get", "pods", "-n", NAMESPACE, "-l", labels, "-o", "json"))["items"]
    return {pod["metadata"]["name"] for pod in pods if is_ready(pod) and "deletionTimestamp" not in pod["metadata"]}


def rescales(grid: RealGrid) -> list[str]:
    """What the real autoscaler says that it did."""
    return [event["message"] for event in autoscaler_events(grid) if event["reason"] == "SuccessfulRescale"]


def is_silenced(grid: RealGrid) -> bool:
    """Whether the real autoscaler has told so much that the rest may be lost: client-go lets 25 events of one source about one object
    through, then one in five minutes. Where metrics come late, as on a busy machine, each of its syncs tells two."""
    counts = Counter[str]()
    for event in autoscaler_events(grid):
        counts[event["involvedObject"]["uid"]] += event.get("count") or 1
    return max(counts.values(), default=0) >= MOST_EVENTS


def autoscaler_events(grid: RealGrid) -> list[RawObject]:
    events = json.loads(grid.kubectl("get", "events", "-n", NAMESPACE, "-o", "json"))["items"]
    return [event for event in events if event["source"].get("component") == "horizontal-pod-autoscaler"]


def nothing_is_left(grid: RealGrid) -> None:
    """Of any execution."""
    kinds = "pods,deployments,replicasets,services,hpa,pdb,networkpolicies,configmaps,secrets"
    executions = ("-n", NAMESPACE, "-l", "dominodatalab.com/execution-id", "-o", "name")
    wait_until(lambda: grid.kubectl("get", kinds, *executions) == "", 120, "an empty namespace")
