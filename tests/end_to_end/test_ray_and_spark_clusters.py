"""Jobs with a Ray and a Spark cluster, launched without a browser: growing with the work, shrinking when it is done, nothing lost.

The script computes until there are three workers and its result is right, keeps results in the cluster, waits until idleness
has brought it down to one worker, and reads them again. With three workers and with one it waits until it was looked at: the
pool, the framework's own pages, by their answers and in Chromium, and what the cluster's page tells of the growth.

Nothing that it computes waits for one slow task: on a busy machine the first task of a new worker takes so long that all
others, idle meanwhile, would be taken away.
"""

import json
import urllib.error
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.end_to_end.grid import Grid, Session, ending, nodes, put_into_project
from tests.support.ports import rays_turn
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

PULL_SECONDS = 400.0
GROWTH_SECONDS = 600.0

RAY = """
import os, time
import ray

ray.init()

@ray.remote
def burn(number):
    return sum(k * k % 7 for k in range(1_400_000)) + number

def workers():
    return sum(1 for node in ray.nodes() if node["Alive"]) - 1

EACH = 1_400_000 // 7 * 14

begun, found, running, has_grown = 0, 0, [], False
while True:
    if not has_grown and workers() >= 3:
        has_grown = True
        print("grown to", workers(), flush=True)
    if not os.path.exists("looked-at-three"):
        more = range(begun, begun + 60 - len(running))
        running += [burn.remote(number) for number in more]
        begun += len(more)
    if not running:
        break
    done, running = ray.wait(running)
    found += sum(ray.get(done))
assert has_grown
assert found == begun * EACH + begun * (begun - 1) // 2, (found, begun)
kept = [burn.remote(number) for number in range(100)]
ray.wait(kept, num_returns=100)
while workers() > 1:
    time.sleep(2)
print("shrunk to", workers(), flush=True)
while not os.path.exists("looked-at-one"):
    time.sleep(0.5)
assert sum(ray.get(kept)) == 100 * EACH + 100 * 99 // 2
print("nothing is lost", flush=True)
"""

SPARK = """
import os, time
from concurrent.futures import ThreadPoolExecutor
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
context = spark.sparkContext

def burn(number):
    return sum(k * k % 7 for k in range(700_000)) + number

def workers():
    return context._jsc.sc().getExecutorMemoryStatus().size() - 1

EACH = 700_000 // 7 * 14

def compute():
    while not os.path.exists("looked-at-three"):
        found = context.parallelize(range(60), 20).map(burn).sum()
        assert found == 60 * EACH + 60 * 59 // 2, found

with ThreadPoolExecutor() as pool:
    computed = [pool.submit(compute) for _ in range(2)]
    while workers() < 3 and not any(one.done() for one in computed):
        time.sleep(0.5)
    print("grown to", workers(), flush=True)
for one in computed:
    one.result()
kept = context.parallelize(range(100), 20).map(burn).cache()
assert kept.count() == 100
while workers() > 1:
    time.sleep(2)
print("shrunk to", workers(), flush=True)
while not os.path.exists("looked-at-one"):
    time.sleep(0.5)
assert kept.sum() == 100 * EACH + 100 * 99 // 2
print("nothing is lost", flush=True)
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    with ending(Grid(tmp_path_factory.mktemp("grid") / "var", node_idle_seconds=20)) as grid:
        grid.start()
        furnish(Session(grid, "admin"))
        yield grid


def furnish(admin: Session) -> None:
    # Little work makes a worker busy, and each fills a node: three need two nodes more than the pool has at rest.
    tier = {"id": "wide", "name": "Wide", "node_pool": "default", "cores": "100m", "memory": "18Gi"}
    rest = {"gpus": "0", "gpu_resource": "nvidia.com/gpu", "cost_per_hour": "0.1", "is_visible": "on"}
    rest["ephemeral_storage"] = "10Gi"
    admin.post("/tiers/new/", tier | rest, page="/tiers/new/")
    admin.configure("com.cerebro.computegrid.clusters.scaleDownStabilisationSeconds", "20")


def look_at_ray(address: str, tab: Page) -> None:
    """Its dashboard, which asks for the nodes by itself: a head and three workers."""
    tab.goto(f"{address}#/cluster")
    expect(tab.locator("body")).to_contain_text("ALIVE x 4", timeout=90_000)


def look_at_spark(address: str, tab: Page) -> None:
    """The master's page, and through it an application's."""

    def has_three_workers() -> bool:
        tab.goto(address)
        return "Workers: 3 Alive" in " ".join(tab.locator("body").inner_text().split())

    wait_until(has_three_workers, 60, "three workers on the master's page")
    tab.locator("a[href*='/proxy/app-']").first.click()
    tab.goto(f"{tab.url.partition('/jobs/')[0]}/executors/")
    expect(tab.locator("#active-executors-table tbody tr")).to_have_count(4, timeout=60_000)


def tab_of(browser: Browser, person: Session, address: str) -> Page:
    """In which the person has opened that cluster."""
    secret = person.cookie("grid_workspace", urllib.parse.urlsplit(address).hostname or "")
    context = browser.new_context()
    context.add_cookies([{"name": "grid_workspace", "value": secret, "url": address}])
    return context.new_page()


@pytest.fixture
def alone(framework: str) -> Iterator[None]:
    with rays_turn() if framework == "ray" else nullcontext():
        yield


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(
    ("framework", "script", "look_at_cluster"), [("ray", RAY, look_at_ray), ("spark", SPARK, look_at_spark)]
)
def test_a_jobs_cluster_grows_and_shrinks_and_loses_nothing(
    running: Grid, browser: Browser, framework: str, script: str, look_at_cluster: Callable[[str, Page], None]
) -> None:
    grid, scientist, operator = running, Session(running, "scientist"), Session(running, "operator")
    put_into_project(grid, "main.py", script)
    for name in ("looked-at-three", "looked-at-one"):
        (grid.folder_of("project-churn") / name).unlink(missing_ok=True)
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
            "workers_maximum": "3",
            "autoscale": "on",
            "target_cpu": "80",
            "target_memory": "",
            "local_storage": "",
        }
    )
    scientist.wait_for(job, "Running", seconds=PULL_SECONDS)
    cluster = scientist.cluster_of(job)
    scientist.wait_for_line(job, "grown to 3", seconds=GROWTH_SECONDS)
    assert len(pool(operator)) >= 3
    address = scientist.open(cluster)
    look_at_cluster(address, tab_of(browser, scientist, address))
    a_stranger_does_not_get_in(operator, cluster, address)
    # The framework knows a worker before Kubernetes calls it ready, and the chart has a point every 15 seconds.
    wait_until(lambda: 3 in ready(chart(scientist, cluster)), GROWTH_SECONDS, "three ready workers in the chart")
    put_into_project(grid, "looked-at-three", "")
    scientist.wait_for_line(job, "shrunk to 1", seconds=GROWTH_SECONDS)
    growth_and_its_cause_are_told(scientist, cluster)
    put_into_project(grid, "looked-at-one", "")
    scientist.wait_for(job, "Succeeded", seconds=120)
    scientist.wait_for_line(job, "nothing is lost", seconds=30)
    wait_until(lambda: grid.kubectl("get", "pods", "-n", "compute-grid", "-o", "name") == "", 120, "an empty cluster")
    assert grid.kubectl("get", "deployments,services,hpa", "-n", "compute-grid", "-o", "name") == ""
    wait_until(lambda: len(pool(operator)) == 1, 120, "a pool that is back at its minimum")


def pool(operator: Session) -> list[str]:
    """The nodes for executions, as the Infrastructure page lists them."""
    return nodes(operator.get("/infrastructure/?pool=default"))


def a_stranger_does_not_get_in(stranger: Session, cluster: str, address: str) -> None:
    assert stranger.fetch(address)[0] == 403
    with pytest.raises(urllib.error.HTTPError) as refused:
        stranger.open(cluster)
    with refused.value as refusal:
        assert refusal.code == 403


def chart(person: Session, cluster: str) -> dict[str, Any]:
    """What the cluster's chart is drawn from."""
    samples: dict[str, Any] = json.loads(person.get(f"/executions/{cluster}/samples/"))
    return samples


def ready(chart: dict[str, Any]) -> list[int | None]:
    """Its line of ready workers."""
    values: list[int | None] = chart["charts"]["workers"]["lines"]["ready"]["values"]
    return values


def growth_and_its_cause_are_told(person: Session, cluster: str) -> None:
    """In the autoscaler's words in the stored history, and in ours beside the chart."""
    wait_until(lambda: ready(chart(person, cluster))[-1:] == [1], 60, "a chart that ends with one worker")
    events = [(event["grows"], event["words"]) for event in chart(person, cluster)["events"]]
    assert any(grows and "to 3 workers: CPU use is above its target." in sentence for grows, sentence in events), events
    assert any(
        not grows and "to 1 worker: everything that is measured is below" in sentence for grows, sentence in events
    ), events
    history = person.get(f"/executions/{cluster}/lifecycle/")
    above = "SuccessfulRescale: New size: 3; reason: cpu resource utilization (percentage of request) above target"
    assert above in history
    assert "SuccessfulRescale: New size: 1; reason: All metrics below target" in history
