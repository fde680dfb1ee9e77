"""A cluster grows for work that uses no CPU: what its framework has waiting reaches the autoscaler as an external metric."""

import json

import pytest

from grid.clusters.registration import NAME
from tests.end_to_end.grid import Grid, Place
from tests.end_to_end.scripts import Session, put_into_project, with_dask
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

# Each task sleeps: nothing that a metrics server measures tells that there is work.
SLEEPERS = """
import time
from distributed import Client

client = Client()
futures = client.map(lambda number: time.sleep(2) or number, range(400), pure=False)
while len(client.scheduler_info()["workers"]) < 3:
    time.sleep(1)
print("grown", flush=True)
client.cancel(futures)
while len(client.scheduler_info()["workers"]) > 1:
    time.sleep(1)
print("shrunk", flush=True)
"""


def test_cluster_grows_for_waiting_work_and_shrinks_when_idle(grid: Grid) -> None:
    grid.start()
    put_into_project(grid, "main.py", SLEEPERS)
    scientist = Session(grid, "scientist")
    job = scientist.launch(with_dask("Sleepers", least=1, most=3) | {"autoscale": "on", "on_demand": "on"})
    scientist.wait_for(job, "Running", "Finishing", "Succeeded", seconds=400)
    wait_until(lambda: demand_of(grid) >= 3, 120, "the framework's wish for three workers")
    scientist.wait_for(job, "Succeeded", seconds=400)
    for line in ("grown", "shrunk"):
        scientist.wait_for_line(job, line, seconds=30)


def demand_of(grid: Place) -> int:
    """As the autoscaler reads it, through the API server; 0 until the controller has registered it, up to ten seconds after the start."""
    if NAME not in grid.kubectl("get", "apiservices", "-o", "name"):
        return 0
    autoscalers = json.loads(grid.kubectl("get", "hpa", "-n", "compute-grid", "-o", "json"))["items"]
    ids = [autoscaler["metadata"]["labels"]["dominodatalab.com/execution-id"] for autoscaler in autoscalers]
    path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/compute-grid/compute_grid_wanted_workers"
    answers = [json.loads(grid.kubectl("get", "--raw", f"{path}?labelSelector=execution-id%3D{id}")) for id in ids]
    return max((int(item["value"]) for answer in answers for item in answer["items"]), default=0)
