"""Real Spark processes on loopback addresses: a plain session uses the cluster, and a cluster that shrinks loses no work."""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from grid.clusters.frameworks import framework
from grid.clusters.frameworks.base import ClusterReport, Program, WorkerPod
from grid.clusters.frameworks.spark import MASTER_PORT
from grid.sandbox.imagestore import ImageStore
from grid.sandbox.serviceproxy.endpoints import Backend
from grid.sandbox.serviceproxy.forwarding import ForwardedConnections, Listener
from tests.clusters.cluster_specs import small_spec
from tests.clusters.frameworks.spark_processes import Container, Machine, reported

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

IMAGES = Path(os.environ.get("GRID_TEST_IMAGES") or Path(__file__).parents[3] / "var" / "test-images")
SPARK = framework("spark")
DRAIN_SECONDS = 60
PATIENCE_SECONDS = 240  # for machines that start a dozen Java processes at once

# Counts on the driver how often each number was worked on: more than once means that cached or shuffled data was lost.
JOB = """
import json, os, time, urllib.request
from pyspark.sql import SparkSession

session = SparkSession.builder.getOrCreate()
context = session.sparkContext
work = context.accumulator(0)
numbers = 1000

def triple(number):
    work.add(1)
    time.sleep(0.05)
    return 3 * number

def slowly(pair):
    time.sleep(0.1)
    return pair

cached = context.parallelize(range(numbers), 20).map(triple).cache()
shuffled = cached.map(lambda number: (number % 50, number)).reduceByKey(lambda one, other: one + other, 10)

def total():
    return sum(value for _, value in shuffled.map(slowly).collect())

results = {total()}
print("READY", flush=True)
rounds = 0
while not os.path.exists("finish") or rounds < 2:
    results |= {total(), cached.sum()}
    rounds += 1
url = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages"
with urllib.request.urlopen(url) as answer:
    stages = json.load(answer)
print("RESULT " + json.dumps({
    "master": context.master,
    "right": results == {3 * sum(range(numbers))},
    "rounds": rounds,
    "worked": work.value,
    "numbers": numbers,
    "failures": sum(stage["numFailedTasks"] for stage in stages),
    "reasons": [stage.get("failureReason", "")[:200] for stage in stages if stage["status"] == "FAILED"],
}), flush=True)
"""


@pytest.fixture(scope="module")
def image() -> Path:
    pulled, _ = asyncio.run(ImageStore(IMAGES).pull("compute-grid/spark:4.3"))
    return pulled.environment


@pytest.fixture
def machine(tmp_path: Path, image: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path, image, small_spec("spark", drain_seconds=DRAIN_SECONDS))
    yield machine
    machine.end_all()


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session:
        yield session


@dataclass
class Cluster:
    """A head, its workers and whoever asks. Workers and programs know the head by an address that is not its own, which a
    Service's never is."""

    machine: Machine
    http: aiohttp.ClientSession
    address: str
    service: Listener
    head: Container
    workers: list[Container]

    def attach(self, script: str) -> Container:
        """A workspace's program that knows nothing but its environment."""
        variables = SPARK.client_variables(self.machine.spec, self.address)
        return self.machine.start("driver", Program(("python3", "-c", script), (), {}, variables))

    async def ask(self) -> ClusterReport:
        pods = [WorkerPod(worker.name, worker.address) for worker in self.workers]
        return await SPARK.ask(self.http, self.head.address, self.machine.spec, pods)

    async def until(self, right: Callable[[ClusterReport], bool], what: str) -> ClusterReport:
        return await reported(self.ask, what, holds=right, within=PATIENCE_SECONDS)

    async def joined(self, count: int) -> ClusterReport:
        return await self.until(lambda report: len(report.workers) == count, f"{count} workers joined")


@pytest.fixture
async def start(machine: Machine, http: aiohttp.ClientSession) -> AsyncIterator[Callable[[int], Cluster]]:
    connections = ForwardedConnections()
    services = []

    def cluster(workers: int) -> Cluster:
        address = machine.address()
        head = machine.start("head", SPARK.head(machine.spec))
        service = Listener(address, MASTER_PORT, [Backend(head.address, MASTER_PORT)], connections)
        services.append(service)
        made = [machine.start(f"worker-{number}", SPARK.worker(machine.spec, address)) for number in range(workers)]
        return Cluster(machine, http, address, service, head, made)

    yield cluster
    for service in services:
        await service.close()
    await connections.close()


async def says(container: Container, word: str) -> str:
    """The line that starts with the word, once it is written."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        lines = [line for line in container.text.replace("\r", "\n").splitlines() if line.startswith(word)]
        if lines:
            return lines[0].removeprefix(word)
        assert container.process.poll() is None, container.text[-3000:]
        assert time.monotonic() < deadline, container.text[-3000:]
        await asyncio.sleep(0.2)


async def finish(driver: Container) -> dict[str, Any]:
    (Path(driver.environment["HOME"]) / "finish").touch()
    result = json.loads(await says(driver, "RESULT "))
    assert await asyncio.to_thread(driver.process.wait, 60) == 0
    assert isinstance(result, dict)
    return result


async def remove(workers: Sequence[Container]) -> list[float]:
    """As the kubelet ends pods: all hooks at once, then SIGTERM; how long each hook took."""

    def drained(worker: Container) -> float:
        started = time.monotonic()
        assert worker.run_hook(DRAIN_SECONDS + 15) == 0
        seconds = time.monotonic() - started
        worker.end()
        return seconds

    return await asyncio.gather(*(asyncio.to_thread(drained, worker) for worker in workers))


async def test_long_job_loses_nothing_while_cluster_shrinks_to_one(start: Callable[[int], Cluster]) -> None:
    cluster = start(5)
    idle = await cluster.joined(5)
    assert (idle.pending_tasks, idle.wanted_workers) == (0, 0)
    driver = cluster.attach(JOB)
    busy = await cluster.until(lambda report: report.pending_tasks > 5, "a backlog is told")
    assert busy.wanted_workers > 5
    await cluster.until(lambda report: all(worker.bytes_held for worker in report.workers.values()), "all hold data")
    await says(driver, "READY")
    took = await remove(cluster.workers[3:]) + await remove(cluster.workers[2:3]) + await remove(cluster.workers[1:2])
    assert max(took) < DRAIN_SECONDS, f"drained in {took}"
    await cluster.joined(1)
    result = await finish(driver)
    assert result["master"] == f"spark://{cluster.address}:7077"
    assert result["right"] is True
    assert result["worked"] == result["numbers"], "nothing that was cached or shuffled was computed again"
    # Spark moves shuffled data without telling tasks that run; they look again where it is, which is no failure of theirs.
    assert all("FetchFailed" in reason or "fetch failure" in reason for reason in result["reasons"]), result
    after = await cluster.until(lambda report: report.wanted_workers == 0, "nothing is wanted when all is done")
    assert [worker.tasks for worker in after.workers.values()] == [0]
