"""A Dask cluster with faults: its controller dies while a worker drains, its API server while it grows.

One job goes through all of it with the same results in the cluster's memory, and its page says afterwards what happened. In the embedded
cluster the API server's process also carries the connections through Services, workers' to their scheduler too; so the script connects
anew then, and Dask may compute again what it needs. Nothing is computed again when only the controller dies.
"""

import json
import re
import time
from typing import Any

import pytest

from tests.end_to_end.grid import Grid
from tests.end_to_end.pages import ready_workers, words
from tests.end_to_end.scripts import Session, put_into_project, with_dask
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

PATIENCE = 240.0  # seconds for whatever the script waits for

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
while not os.path.exists(here + "/looked-at"):
    time.sleep(0.5)
"""


def test_work_survives_what_happens_around_it(grid: Grid) -> None:
    grid.start()
    put_into_project(grid, "main.py", SCRIPT)
    scientist = Session(grid, "scientist")
    job = scientist.launch(with_dask("With faults", least=3, most=3))
    scientist.wait_for(job, "Running", seconds=400)
    cluster = scientist.cluster_of(job)
    scientist.wait_for_line(job, "kept", seconds=PATIENCE)
    the_controller_dies_while_workers_drain(grid, scientist, job, cluster)
    the_api_server_dies_while_workers_come(grid, scientist, job, cluster)
    put_into_project(grid, "looked-at", "")
    scientist.wait_for(job, "Succeeded", seconds=120)
    wait_until(lambda: scientist.state(cluster) == "Stopped", 120, "the cluster to end with its job")
    assert pods(grid) == ""


def the_controller_dies_while_workers_drain(grid: Grid, person: Session, job: str, cluster: str) -> None:
    before = workers(grid)
    resize(person, cluster, 1)
    wait_until(lambda: "Terminating" in pods(grid), 60, "workers that drain")
    grid.kill_part("controller")
    killed_at = time.time()
    person.wait_for_line(job, "drained", seconds=PATIENCE)

    def is_charted() -> bool:
        """By a controller that leads again: the killed one may have seen the two leave."""
        chart = samples(person, cluster)
        ready = chart["charts"]["workers"]["lines"]["ready"]["values"]
        return bool(ready[-1:] == [1] and chart["times"][-1] > killed_at)

    wait_until(is_charted, 180, "a chart that goes on and shows the one worker that is left")
    # Dask's scheduler forgets a worker some seconds before its pod is gone.
    wait_until(lambda: len(workers(grid)) == 1, 60, "the two pods to go")
    wait_until(
        lambda: "The controller was not running Until" in words(read(person, cluster)), 10, "a page that says what was"
    )
    page = read(person, cluster)
    assert ready_workers(page) == 1
    assert "scientist changed it from 3 workers to 1 worker" in words(page)
    drained = before - workers(grid)
    assert len(drained) == 2
    for name in drained:
        assert f"Pod deleted Kubernetes: SuccessfulDelete Deleted pod: {name}" in words(page)


def the_api_server_dies_while_workers_come(grid: Grid, person: Session, job: str, cluster: str) -> None:
    outage = re.compile(
        r"The cluster does not answer The cluster has not answered for \d+ s; what you see is from \d\d:\d\d:\d\d UTC"
    )

    def is_said() -> bool:
        return outage.search(words(read(person, cluster))) is not None

    resize(person, cluster, 3)
    wait_until(lambda: len(workers(grid)) == 3, 60, "workers that come")
    expected = "a page that says that the cluster does not answer, and how old it is"
    grid.kill_part("sandbox", meanwhile=lambda: wait_until(is_said, 10, expected))
    person.wait_for_line(job, "grown", seconds=PATIENCE)

    def is_over() -> bool:
        """The watches come back one by one."""
        page = read(person, cluster)
        return ready_workers(page) == 3 and "The cluster does not answer" not in words(page)

    wait_until(is_over, 120, "a page that shows three workers and is up to date")


def read(person: Session, cluster: str) -> str:
    return person.get(f"/executions/{cluster}/")


def samples(person: Session, cluster: str) -> dict[str, Any]:
    """What its chart draws."""
    chart: dict[str, Any] = json.loads(person.get(f"/executions/{cluster}/samples/"))
    return chart


def resize(person: Session, cluster: str, workers: int) -> None:
    page = f"/executions/{cluster}/resize/"
    person.post(page, {"minimum": str(workers), "maximum": str(workers)}, page=page)


def workers(grid: Grid) -> set[str]:
    """Names of their pods, those that still drain among them."""
    return {line.split()[0] for line in pods(grid).splitlines() if "-worker-" in line}


def pods(grid: Grid) -> str:
    return grid.kubectl("get", "pods", "-n", "compute-grid", "--no-headers", "--ignore-not-found")
