"""A job whose waiting tasks use no CPU, and how many workers its framework wishes for them."""

import json

from grid.clusters.registration import NAME
from tests.end_to_end.grid import Place

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


def demand_of(grid: Place) -> int:
    """As the autoscaler reads it, through the API server; 0 until the controller has registered it, up to ten seconds after the start."""
    if NAME not in grid.kubectl("get", "apiservices", "-o", "name"):
        return 0
    autoscalers = json.loads(grid.kubectl("get", "hpa", "-n", "compute-grid", "-o", "json"))["items"]
    ids = [autoscaler["metadata"]["labels"]["dominodatalab.com/execution-id"] for autoscaler in autoscalers]
    path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/compute-grid/compute_grid_wanted_workers"
    answers = [json.loads(grid.kubectl("get", "--raw", f"{path}?labelSelector=execution-id%3D{id}")) for id in ids]
    return max((int(item["value"]) for answer in answers for item in answer["items"]), default=0)
