"""A Dask cluster in bad weather: its controller dies while a worker drains, its API server while it grows, a worker for memory.

One job goes through all of it with the same results in the cluster's memory, and its page says afterwards what happened. In the embedded
cluster the API server's process also carries the connections through Services, workers' to their scheduler too; so the script connects
anew then, and Dask may compute again what it needs. Nothing is computed again when only the controller dies.
"""

import re

import pytest

from tests.end_to_end.grid import Grid, wait_until
from tests.end_to_end.scripts import Session, put_into_project

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

SCRIPT = """
import os, time
from distributed.client import FutureCancelledError
from distributed import Client, wait

def say(text):
    print(text, flush=True)

def until(number):
    # Each time with a new connection: the way through the Service ends with the program that is killed.
    while True:
        try:
            with Client(timeout=5) as client:
                if len(client.scheduler_info()["workers"]) == number:
                    return check(client)
        except (OSError, TimeoutError, FutureCancelledError) as error:
            say(f"no connection: {type(error).__name__}")
        time.sleep(0.5)

def check(client):
    if "kept" in client.list_datasets():
        assert sum(len(one) for one in client.gather(client.get_dataset("kept"))) == 60 * 100_000

def started(number, path):
    with open(path, "a") as file:
        file.write(f"{number}\\n")
    return os.urandom(100_000)

def greedy(path):
    if not os.path.exists(path):
        open(path, "w").close()
        memory = [bytearray(os.urandom(1024) * 1024) for _ in range(1500)]
        time.sleep(60)
    return "enough"

here = os.getcwd()
with Client() as client:
    client.wait_for_workers(3)
    kept = client.map(started, range(60), path=here + "/started.txt", pure=False)
    wait(kept)
    client.publish_dataset(kept=kept)
say("kept")
until(1)
assert sorted(map(int, open("started.txt"))) == list(range(60)), "computed twice"
say("drained")
until(3)
say("grown")
with Client() as client:
    client.unpublish_dataset("kept")
    assert client.submit(greedy, here + "/greedy.txt", retries=5).result() == "enough"
say("survived")
until(3)
say("whole again")
"""


def test_work_survives_what_happens_around_it(grid: Grid) -> None:
    grid.start()
    put_into_project(grid, "main.py", SCRIPT)
    scientist = Session(grid, "scientist")
    job = scientist.launch(
        {
            "kind": "job",
            "project": "churn",
            "title": "In bad weather",
            "environment": "dask-script",
            "tier": "small",
            "with_cluster": "on",
            "framework": "dask",
            "cluster_environment": "dask-cluster",
            "head_tier": "tiny",
            "worker_tier": "tiny",
            "workers_minimum": "3",
            "workers_maximum": "3",
            "target_cpu": "",
            "target_memory": "",
            "local_storage": "",
        }
    )
    scientist.wait_for(job, "Running", seconds=400)
    cluster = cluster_of(scientist, job)

    wait_for_line(scientist, job, "kept")
    resize(scientist, cluster, 1)
    wait_until(lambda: "Terminating" in pods(grid), 60, "workers that drain")
    grid.kill_part("controller")
    wait_for_line(scientist, job, "drained")

    resize(scientist, cluster, 3)
    grid.kill_part("sandbox")
    wait_for_line(scientist, job, "grown")

    wait_for_line(scientist, job, "whole again")
    scientist.wait_for(job, "Succeeded", seconds=120)
    story = scientist.get(f"/executions/{cluster}/")
    assert re.search(r"out of memory|more memory than", story)
    wait_until(lambda: scientist.state(cluster) == "Stopped", 120, "the cluster to end with its job")
    assert pods(grid) == ""


def cluster_of(person: Session, execution_id: str) -> str:
    """The id of its cluster, from the link on its page."""
    page = person.get(f"/executions/{execution_id}/")
    found: set[str] = set(re.findall(r'href="/executions/(\w+)/"', page)) - {execution_id}
    assert len(found) == 1, found
    return found.pop()


def resize(person: Session, cluster: str, workers: int) -> None:
    page = f"/executions/{cluster}/resize/"
    person.post(page, {"minimum": str(workers), "maximum": str(workers)}, page=page)


def wait_for_line(person: Session, execution_id: str, line: str) -> None:
    """In its log, while it runs or after."""

    def is_there() -> bool:
        assert person.state(execution_id) not in ("Failed", "Error", "Stopped"), log()
        return line in log()

    def log() -> str:
        return person.get(f"/executions/{execution_id}/log/")

    wait_until(is_there, 240, f"“{line}” in the log")


def pods(grid: Grid) -> str:
    return grid.kubectl("get", "pods", "-n", "compute-grid", "--no-headers", "--ignore-not-found")
