"""Jobs with a Ray and a Spark cluster, without a browser: growing with the work, shrinking when it is done, nothing lost.

The script computes until there are five workers and its result is right, keeps results in the cluster, waits until idleness
has brought it down to one worker, and reads them again.
"""

from collections.abc import Iterator

import pytest

from tests.end_to_end.grid import Grid, wait_until
from tests.end_to_end.scripts import Session, put_into_project

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

PULL_SECONDS = 400.0
GROWTH_SECONDS = 600.0

RAY = """
import time
import ray

ray.init()

@ray.remote(num_cpus=0.25)
def burn(number):
    return sum(k * k % 7 for k in range(1_400_000)) + number

def workers():
    return sum(1 for node in ray.nodes() if node["Alive"]) - 1

EACH = 1_400_000 // 7 * 14
rounds = 0
while workers() < 5:
    rounds += 1
    found = sum(ray.get([burn.remote(number) for number in range(60)]))
    assert found == 60 * EACH + 60 * 59 // 2, found
print("grown to", workers(), "after", rounds, "rounds", flush=True)
kept = [burn.remote(number) for number in range(100)]
ray.wait(kept, num_returns=100)
while workers() > 1:
    time.sleep(2)
print("shrunk to", workers(), flush=True)
assert sum(ray.get(kept)) == 100 * EACH + 100 * 99 // 2
print("nothing is lost", flush=True)
"""

SPARK = """
import time
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
context = spark.sparkContext

def burn(number):
    return sum(k * k % 7 for k in range(700_000)) + number

def workers():
    return context._jsc.sc().getExecutorMemoryStatus().size() - 1

EACH = 700_000 // 7 * 14
rounds = 0
while workers() < 5:
    rounds += 1
    found = context.parallelize(range(60), 20).map(burn).sum()
    assert found == 60 * EACH + 60 * 59 // 2, found
print("grown to", workers(), "after", rounds, "rounds", flush=True)
kept = context.parallelize(range(100), 20).map(burn).cache()
assert kept.count() == 100
while workers() > 1:
    time.sleep(2)
print("shrunk to", workers(), flush=True)
assert kept.sum() == 100 * EACH + 100 * 99 // 2
print("nothing is lost", flush=True)
"""


@pytest.fixture
def running(grid: Grid) -> Iterator[Grid]:
    grid.node_idle_seconds = 20
    grid.start()
    admin = Session(grid, "admin")
    # Little work makes a worker busy, and three of them fill a node: growing needs another one.
    tier = {"id": "wide", "name": "Wide", "node_pool": "default", "cores": "100m", "memory": "10Gi"}
    rest = {"gpus": "0", "gpu_resource": "nvidia.com/gpu", "cost_per_hour": "0.1", "is_visible": "on"}
    admin.post("/tiers/new/", tier | rest, page="/tiers/new/")
    patience = "com.cerebro.computegrid.clusters.scaleDownStabilisationSeconds"
    admin.post("/configuration/change/", {"key": patience, "value": "20"}, page="/configuration/")
    yield grid


@pytest.mark.parametrize(("framework", "script"), [("ray", RAY), ("spark", SPARK)])
def test_a_job_s_cluster_grows_and_shrinks_and_loses_nothing(running: Grid, framework: str, script: str) -> None:
    grid, scientist = running, Session(running, "scientist")
    put_into_project(grid, "main.py", script)
    job = scientist.launch(
        {
            "kind": "job",
            "project": "churn",
            "title": f"{framework} grows",
            "environment": f"{framework}-script",
            "tier": "small",
            "with_cluster": "on",
            "framework": framework,
            "cluster_environment": f"{framework}-cluster",
            "head_tier": "small",
            "worker_tier": "wide",
            "workers_minimum": "1",
            "workers_maximum": "5",
            "autoscale": "on",
            "target_cpu": "80",
            "target_memory": "",
            "local_storage": "",
        }
    )
    scientist.wait_for(job, "Running", "Finishing", "Succeeded", seconds=PULL_SECONDS)
    scientist.wait_for(job, "Succeeded", seconds=GROWTH_SECONDS)
    log = scientist.get(f"/executions/{job}/?tab=log")
    for line in ("grown to 5", "shrunk to 1", "nothing is lost"):
        assert line in log
    wait_until(lambda: grid.kubectl("get", "pods", "-n", "compute-grid", "-o", "name") == "", 120, "an empty cluster")
    assert grid.kubectl("get", "deployments,services,hpa", "-n", "compute-grid", "-o", "name") == ""
